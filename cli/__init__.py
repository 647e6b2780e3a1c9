"""The DAG and the command line: the only place that knows everything below."""

import os
import sys

if os.name == "nt":
    # Processes are forked and confined by means that Windows does not have.
    sys.exit("error: the suite does not run on Windows itself; run it in WSL2 (docs/runs.md#systems)")

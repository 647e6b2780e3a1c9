"""The DAG and the command line: the only place that knows everything below."""

import os
import sys

if os.name == "nt":  # where processes are neither forked nor confined
    sys.exit("error: the suite does not run on Windows itself; run it in WSL2 (docs/runs.md#systems)")

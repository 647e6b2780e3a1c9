"""Command line and the inputs of jobs. Imports all other packages."""

import os
import sys

if os.name == "nt":  # cannot fork or confine processes
    sys.exit("error: native Windows is not supported; use WSL2 (docs/runs.md#systems)")

"""Files that this process is writing, which are deleted where it ends without unwinding."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

UNFINISHED: set[Path] = set()


def exit_now(status: int) -> NoReturn:
    """End this process at once, without its unfinished files."""
    for path in list(UNFINISHED):
        path.unlink(missing_ok=True)
    os._exit(status)

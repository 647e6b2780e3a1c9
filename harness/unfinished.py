"""Temporary files, to delete if this process exits without unwinding, or was killed."""

import os
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import psutil

UNFINISHED: set[Path] = set()


def exit_now(status: int) -> NoReturn:
    """Delete temporary files and exit at once."""
    for path in list(UNFINISHED):
        path.unlink(missing_ok=True)
    os._exit(status)


def temporary_prefix(kind: str) -> str:
    """Return a prefix for temporary files of this process. Deletes those of killed processes of this host and user."""
    host = socket.gethostname()
    for path in Path(tempfile.gettempdir()).glob(f"gmr-*-{host}-*-*"):
        with suppress(OSError, ValueError):
            if path.lstat().st_uid == os.getuid() and not psutil.pid_exists(int(path.name.split("-")[-2])):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return f"gmr-{kind}-{host}-{os.getpid()}-"

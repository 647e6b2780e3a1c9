"""Run the command ``gmr``, in this process or a new one."""

import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from cli.main import app


def gmr(*words: str, **environment: str) -> Result:
    """Run a command here; its exceptions are raised."""
    return CliRunner().invoke(app, words, catch_exceptions=False, env=environment)


def gmr_process(*words: str, folder: Path | None = None) -> str:
    """Run a command in a process of its own; return what it printed."""
    command = [sys.executable, "-m", "cli.main", *words]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout

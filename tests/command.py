"""Run ``gmr`` in this process, and programs in new ones."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from cli.main import app


def gmr(*words: str, **environment: str) -> Result:
    """Run a command here; its exceptions are raised."""
    return CliRunner().invoke(app, words, catch_exceptions=False, env=environment)


def program(
    *words: str | Path, folder: Path | None = None, status: int = 0, timeout_s: float | None = 600, **environment: str
) -> str:
    """Run a program that ends with a status; return what it printed."""
    ended = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert ended.returncode == status, ended.stdout
    return ended.stdout


def gmr_process(*words: str, folder: Path | None = None) -> str:
    return program(sys.executable, "-m", "cli.main", *words, folder=folder)


def snakemake(*words: str, folder: Path, **environment: Any) -> str:
    return program(sys.executable, "-m", "snakemake", "--cores", "2", *words, folder=folder, **environment)

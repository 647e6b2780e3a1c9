"""Command line ``gmr``: every job of the DAG, and commands around a run."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from cli.app import app
from cli.commands import exports, runs, sandbox, show  # noqa: F401  adds them to the application
from cli.parent import end_with_parent, stop_scheduling
from cli.signals import stop_cleanly
from harness.errors import UserError


def main(program: Callable[[], None] = app) -> None:
    """Run a program of commands: one line for a user's mistake, status 2; a traceback only for ours."""
    # How a sum is divided among threads shows in its last digits (harness.concurrency.use_one_thread).
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    # On a full disk the log file fails too; its traceback must not bury the line that says so.
    logging.raiseExceptions = False
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpx2", "openai", "datasets", "asyncio", "fontTools"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Its retries would be a hundred lines; the one line that counts is ours.
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    try:
        check_checkout()
        end_with_parent()
        stop_cleanly()
        program()
    except UserError as error:
        from harness.llm.budget import BudgetError

        logging.error("error: %s", error)
        if isinstance(error, BudgetError):
            stop_scheduling()
        sys.exit(2)


def check_checkout() -> None:
    """Raise UserError where the suite is not a checkout, or the current folder is another one.

    Snakemake reads the rules and the configuration of the current folder, so its ``gmr`` must be of that folder too.
    """
    here, root = Path.cwd().resolve(), Path(__file__).resolve().parents[1]
    if not (root / "config").is_dir():
        raise UserError(
            f"the suite runs from a checkout, and {root} has no config/: in a clone of it, `pip install -e .`"
        )
    is_checkout = all((here / name).is_file() for name in ("Snakefile", "cli/main.py", "harness/files.py"))
    if here != root and is_checkout:
        raise UserError(f"this is the gmr of {root}, and {here} is another checkout; activate the environment of that")


if __name__ == "__main__":
    main()

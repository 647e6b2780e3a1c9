"""The command line ``gmr``: every job of the DAG, and what one does around it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from harness.errors import UserError
from workflow.app import app
from workflow.commands import exports, jobs, sandbox, trajectories
from workflow.jobs import begin_no_more, die_with_parent
from workflow.signals import stop_cleanly

COMMANDS = (jobs, exports, sandbox, trajectories)


def main() -> None:
    """Run the command line."""
    run(app, stand_here)


def run(program: Callable[[], None], first: Callable[[], None] = lambda: None) -> None:
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
        first()
        die_with_parent()
        stop_cleanly()
        program()
    except UserError as error:
        from harness.llm.budget import BudgetError

        logging.error("error: %s", error)
        if isinstance(error, BudgetError):
            begin_no_more()
        sys.exit(2)


def stand_here() -> None:
    """Continue with the code and configuration of the current checkout, where this is another's.

    Snakemake reads those of the folder it is started in, so a ``gmr`` of another environment would not go with it.
    Raises UserError where Python takes the code from elsewhere all the same.
    """
    here, root = Path.cwd().resolve(), Path(__file__).resolve().parents[1]
    is_checkout = all((here / name).is_file() for name in ("Snakefile", "workflow/cli.py", "harness/files.py"))
    if here == root or not is_checkout:
        return
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(here) in path:
        raise UserError(f"this is the gmr of {root}, and {here} is a checkout of its own; activate its environment")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(here), *filter(None, path)])
    os.execv(sys.executable, [sys.executable, "-m", "workflow", *sys.argv[1:]])  # noqa: S606  our own interpreter

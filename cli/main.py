"""Command line ``gmr``: every job of the DAG, and commands around a run."""

import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from cli.app import app

from cli.commands import results, runs  # noqa: F401  # isort: skip  adds them, in the order of help
from cli.signals import end_with_parent, stop_cleanly, stop_scheduling
from harness.errors import UserError, explain, keyless

ROOT = Path(__file__).resolve().parents[1]


def main(program: Callable[[], None] = app) -> None:
    """Run ``gmr``. User errors are one line (status 2); other exceptions of jobs are shortened (status 1)."""
    # The number of threads changes the last digits of sums.
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    # Silences the hub client's retries, since errors are reported here.
    os.environ.setdefault("HF_HUB_VERBOSITY", "critical")
    # On a full disk the log file fails too. Its traceback must not hide the error.
    logging.raiseExceptions = False
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpx2", "openai", "datasets", "asyncio", "fontTools"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        check_checkout()
        end_with_parent()
        stop_cleanly()
        program()
    except UserError as error:
        logging.error("error: %s", error)
        from harness.llm.client import BudgetError

        if isinstance(error, BudgetError):
            stop_scheduling()
        sys.exit(2)
    except Exception as error:
        logs = [handler for handler in logging.getLogger().handlers if isinstance(handler, logging.FileHandler)]
        if not logs:
            raise
        logs[0].emit(logging.makeLogRecord({"msg": keyless(traceback.format_exc())}))
        logging.error("error: %s\n  the log of the job has the whole traceback", explain(error))
        sys.exit(1)


def check_checkout() -> None:
    """Raise a UserError if the suite is not a checkout, or the current folder is a different one.

    Snakemake reads rules and configuration from the current folder, so ``gmr`` must be the same checkout's.
    """
    here = Path.cwd().resolve()
    if not (ROOT / "config").is_dir():
        raise UserError(
            f"the suite runs from a checkout, and {ROOT} has no config/; clone it and run `pip install -e .` there"
        )
    is_checkout = all((here / name).is_file() for name in ("Snakefile", "cli/main.py", "harness/files.py"))
    if here != ROOT and is_checkout:
        raise UserError(f"this is the gmr of {ROOT}, and {here} is another checkout; activate its environment")


if __name__ == "__main__":
    main()

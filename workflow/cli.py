"""The command line ``gmr``: every job of the DAG, and what one does around it."""

from __future__ import annotations

import logging
import sys

from harness.budget import BudgetError
from harness.errors import UserError
from harness.threads import use_one_thread
from workflow.app import app
from workflow.commands import (
    bundling,
    claims,
    comparing,
    exporting,
    exporting_tables,
    flips,
    forecasting,
    grading,
    grim,
    health,
    jobs,
    proving,
    regrading,
    reports,
    routing,
    running,
    sandboxing,
    showing,
    site,
    status,
    timing,
    upkeep,
)
from workflow.jobs import begin_no_more, die_with_parent
from workflow.stopping import stop_cleanly

COMMANDS = (
    jobs,
    timing,
    reports,
    claims,
    site,
    grading,
    grim,
    health,
    routing,
    regrading,
    sandboxing,
    proving,
    upkeep,
    bundling,
    forecasting,
    flips,
    running,
    status,
    showing,
    comparing,
    exporting,
    exporting_tables,
)


def main() -> None:
    """Entry point: one line for a user's mistake, status 2; a traceback only for ours."""
    use_one_thread()
    # On a full disk the log file fails too; its traceback must not bury the line that says so.
    logging.raiseExceptions = False
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpx2", "openai", "datasets", "asyncio", "fontTools"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Its retries would be a hundred lines; the one line that counts is ours.
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
    die_with_parent()
    stop_cleanly()
    try:
        app()
    except UserError as error:
        logging.error("error: %s", error)
        if isinstance(error, BudgetError):
            begin_no_more()
        sys.exit(2)

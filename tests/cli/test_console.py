"""Terminal output for plans and jobs that are stopped, from Snakemake's log records."""

import io
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_gmr import LogHandler

STOPPED = "stopped; what is finished is kept, and the same command resumes"


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> LogHandler:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    settings: Any = SimpleNamespace(dryrun=False)
    handler = LogHandler(settings, None)
    handler._stream = io.StringIO()
    return handler


def record(handler: LogHandler, event: LogEvent | None, text: str = "", level: int = logging.INFO, **of: Any) -> None:
    plain = logging.LogRecord("snakemake", level, "", 0, text, None, None)
    handler.emit(logging.makeLogRecord({**plain.__dict__, "event": event, **of}))


def lines(handler: LogHandler) -> list[str]:
    return handler._stream.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_a_plan_that_is_stopped_says_so_in_one_line(handler: LogHandler) -> None:
    record(handler, None, "Building DAG of jobs...")
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert lines(handler) == [STOPPED]


def test_a_job_that_a_stopped_run_takes_with_it_has_not_failed(handler: LogHandler, tmp_path: Path) -> None:
    record(handler, LogEvent.RUN_INFO, stats={"cell": 3, "total": 3})
    for number, ends in enumerate(("", "stopped by SIGTERM; 7 finished calls are kept\n")):
        named = {"jobid": number, "rule_name": "cell", "wildcards": {"method": f"m{number}"}}
        record(handler, LogEvent.JOB_INFO, **named, output=[], reason="")
        log = tmp_path / f"{number}.log"
        log.write_text(f"cot gsm_hard qwen-2.5-14B seed 0: 7/16 questions\n{ends}")
        record(handler, LogEvent.JOB_ERROR, **named, log=[str(log)])
    record(handler, None, "Exiting because a job execution failed.", logging.ERROR)
    record(handler, LogEvent.ERROR, "At least one job did not complete successfully.", exception="WorkflowError")
    first, failed, cause, *end = lines(handler)
    assert first == "jobs to do: 3; cells: 3, 0 of them trained first"
    assert failed == f"failed: cell m0 ({tmp_path / '0.log'})"
    assert cause.strip().startswith("no message in its log; it may have been killed")
    assert end == [STOPPED]

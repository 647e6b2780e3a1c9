"""Terminal output for failed, killed and stopped jobs, from Snakemake's log records."""

import io
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_gmr as terminal

PROGRESS = "cot gsm_hard qwen-2.5-14B seed 0: 7/16 questions"
STOPPED = "stopped; what is finished is kept, and the same command resumes"


class Run:
    """A terminal with cells to be made."""

    def __init__(self, folder: Path, cells: int, *, started: int = 0) -> None:
        settings: Any = SimpleNamespace(dryrun=False)
        self.handler = terminal.LogHandler(settings, None)
        self._output = self.handler._stream = io.StringIO()
        self._folder = folder
        self.record(LogEvent.RUN_INFO, stats={"cell": cells, "total": cells})
        for number in range(started):
            self.start(number)

    def record(self, event: LogEvent | None, text: str = "", level: int = logging.INFO, **fields: Any) -> None:
        record = logging.LogRecord("snakemake", level, "", 0, text, None, None)
        self.handler.emit(logging.makeLogRecord({**record.__dict__, "event": event, **fields}))

    def start(self, number: int) -> None:
        names = {"preset": "smoke", "method": f"m{number}"}
        self.record(LogEvent.JOB_INFO, jobid=number, rule_name="cell", wildcards=names, output=[], reason="")
        self.record(LogEvent.JOB_STARTED, jobs=[number])

    def break_off(self, number: int, *lines: str) -> None:
        """End a job with a status that is not 0; its log has these lines."""
        log = self._folder / f"{number}.log"
        log.write_text("".join(f"{line}\n" for line in lines))
        self.record(LogEvent.JOB_ERROR, rule_name="cell", jobid=number, log=[str(log)])

    @property
    def lines(self) -> list[str]:
        return self._output.getvalue().splitlines()

    def end(self) -> list[str]:
        """Lines printed about failures when the run ends."""
        before = len(self.lines)
        self.record(None, "Exiting because a job execution failed.", logging.ERROR)
        self.record(LogEvent.ERROR, "At least one job did not complete successfully.", exception="WorkflowError")
        return self.lines[before:]


def test_a_plan_that_is_stopped_says_so_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    run = Run(tmp_path, 1)
    run.record(None, "Building DAG of jobs...")
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    run.handler.close()
    assert run.lines == ["jobs to do: 1; cells: 1, 0 of them trained first", STOPPED]


def test_a_failed_job_is_told_once_with_its_log_and_a_new_cause(tmp_path: Path) -> None:
    run = Run(tmp_path, 3, started=3)
    run.break_off(0, PROGRESS)
    run.break_off(1, PROGRESS, "error: no server", "  start one", "stopped")
    run.break_off(2, PROGRESS, "error: no server", "  start one", "stopped")
    first, killed, *failed = run.lines[1:]
    assert first == f"failed: cell m0 ({tmp_path / '0.log'})"
    assert killed.strip().startswith("no message in its log; it may have been killed")
    assert failed == [
        f"failed: cell m1 ({tmp_path / '1.log'})",
        "  error: no server",
        "    start one",
        "  stopped",
        f"failed: cell m2 ({tmp_path / '2.log'})",
    ]
    assert run.end() == ["failed jobs: 3; all else is kept: fix this and give the command again"]


def test_a_job_that_a_stopped_run_takes_with_it_has_not_failed(tmp_path: Path) -> None:
    run = Run(tmp_path, 3, started=3)
    run.break_off(0, PROGRESS)
    run.break_off(1, PROGRESS, "stopped by SIGTERM; 7 finished calls are kept")
    assert run.end() == [STOPPED]

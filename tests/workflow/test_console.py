"""What the terminal says of jobs that fail, are killed, or are told to stop: records as Snakemake makes them."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.logging import LogEvent

from workflow import console
from workflow.console import Console

PROGRESS = "cot gsm_hard qwen-2.5-14B seed 0: 7/16 questions"


class Run:
    """A console with cells to be made, whose clock stands still."""

    def __init__(self, folder: Path, cells: int) -> None:
        settings = SimpleNamespace(verbose=False, debug_dag=False, quiet=(), dryrun=False, printshellcmds=False)
        names = [{"preset": "smoke", "method": f"m{number}"} for number in range(cells)]
        self.jobs = [SimpleNamespace(rule=SimpleNamespace(name="cell"), wildcards_dict=name) for name in names]
        dag = SimpleNamespace(jobs=self.jobs, jobid=self.jobs.index, needrun_jobs=lambda: self.jobs)
        workflow = SimpleNamespace(output_settings=settings, is_main_process=True, dag=dag)
        self._console = Console(workflow)
        self._terminal = io.StringIO()
        self._console._terminal = SimpleNamespace(stream=self._terminal)
        self._folder = folder
        self._console.begin()

    def record(self, event: LogEvent | None, text: str = "", **fields: Any) -> None:
        record = logging.LogRecord("snakemake", logging.INFO, "", 0, text, None, None)
        self._console.emit(logging.makeLogRecord({**record.__dict__, "event": event, **fields}))

    def start(self, number: int) -> None:
        self.record(LogEvent.JOB_STARTED, jobs=[number])

    def finish(self, number: int) -> str:
        self.record(LogEvent.JOB_FINISHED, job_id=number)
        return self._terminal.getvalue().splitlines()[-1]

    def break_off(self, number: int, *said: str) -> None:
        """End a job with a status that is not 0; its log has these lines."""
        log = self._folder / f"{number}.log"
        log.write_text("".join(f"{line}\n" for line in said))
        self.record(LogEvent.JOB_ERROR, rule_name="cell", jobid=number, log=[str(log)])

    def end(self) -> list[str]:
        """What is said of failures at the end."""
        before = len(self._terminal.getvalue())
        self._console.fail()
        return self._terminal.getvalue()[before:].splitlines()


@pytest.fixture
def begin(tmp_path: Path) -> Callable[[int], Run]:
    return lambda cells: Run(tmp_path, cells)


def test_the_reason_of_a_killed_job_is_not_its_progress(begin: Callable[[int], Run]) -> None:
    run = begin(2)
    run.break_off(0, PROGRESS)
    run.break_off(1, PROGRESS, "error: no server", "  start one", "stopped")
    first, _, killed, _, *failed = run.end()
    assert first.startswith("2 jobs failed")
    assert killed.strip().startswith("no message in its log: it may have been killed")
    assert failed == ["  error: no server", "    start one", "  stopped"]


def test_a_job_that_a_stopped_run_takes_with_it_has_not_failed(begin: Callable[[int], Run]) -> None:
    run = begin(3)
    run.break_off(0, PROGRESS)
    run.break_off(1, PROGRESS, "stopped by SIGTERM; 7 finished calls are kept")
    run.record(None, "Will exit after finishing currently running jobs (scheduler).")
    assert run.end() == ["stopped; what is finished is kept, and the same command resumes"]
    run.break_off(2, "error: no server")
    assert run.end()[0].startswith("1 job failed")


def test_a_failed_job_takes_no_part_in_the_time_that_is_left(
    begin: Callable[[int], Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: now[0]))
    run = begin(3)
    run.start(0)
    run.start(1)
    run.break_off(0, "error: no server")
    now[0] = 10.0
    assert run.finish(1) == "[1 of 3 cells, about 10 s left] cell m1, 10 s"
    # Tried again, it runs again.
    run.start(0)
    now[0] = 15.0
    run.start(2)
    assert run.finish(0) == "[2 of 3 cells, about 8 s left] cell m0, 5 s"

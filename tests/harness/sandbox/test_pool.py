"""Concurrent programs, failures of the sandbox itself, and its cache of outcomes."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from harness.database import Cache
from harness.errors import UserError
from harness.files import ROOT
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox, pool, worker
from harness.sandbox.worker import Worker
from tests.harness.sandbox.conftest import SMALL, need

RIGHT = Program("def f(x):\n    return x + 1", checks="assert f(1) == 2")
PASSED = Execution(Outcome.PASSED, "")
RunCell = Callable[..., Awaitable[list[Program]]]


@pytest.fixture(autouse=True)
def levels_are_known() -> None:
    """Try the levels before a test changes what tries them: their state is kept for the process."""
    pool.best_level()


async def test_slow_ones_are_tried_alone_and_no_more_than_workers_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started: Counter[str] = Counter()
    alive: list[str] = []
    seen: list[list[str]] = []  # what is alive at every start
    late: list[asyncio.Task[Execution]] = []

    async def run(program: Program) -> Execution:
        started[program.source] += 1
        is_retry = started[program.source] == 2
        name = "retry" if is_retry else program.source
        alive.append(name)
        seen.append([*alive])
        if is_retry:
            late.append(asyncio.create_task(sandbox.run(Program(f"late {program.source}"))))
        await asyncio.sleep(0.001)
        alive.remove(name)
        return Execution(Outcome.WALL_LIMIT if name.startswith("slow") else Outcome.PASSED, "")

    monkeypatch.setattr(pool, "Worker", lambda level, limits: SimpleNamespace(run=run, is_spent=False))
    sandbox = Sandbox(SMALL, 3)
    async with asyncio.timeout(30):
        sources = [f"{kind} {number}" for number in range(6) for kind in ("slow", "quick", "brisk")]
        executions = await asyncio.gather(*(sandbox.run(Program(source)) for source in sources))
        await asyncio.gather(*late)
    assert executions == [PASSED] * 18
    assert [started[source] for source in sources] == [2, 1, 1] * 6
    assert max(map(len, seen)) == 3
    assert [names for names in seen if "retry" in names] == [["retry"]] * 6


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_failure_of_the_sandbox_is_tried_once_more(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "run", AsyncMock(side_effect=[*[OSError("no memory")] * failures, PASSED]))
    async with Sandbox(SMALL, 1) as sandbox:
        execution = await sandbox.run(RIGHT)
    assert execution == (PASSED if failures == 1 else Execution(Outcome.SANDBOX_ERROR, "OSError: no memory"))


async def test_a_worker_that_cannot_start_or_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    need("full")
    genuine = worker.policy
    async with Sandbox(SMALL, level="full") as sandbox:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", "/does/not/exist")
            first = await sandbox.run(RIGHT)
        for wrong in ({"readable": [("/no/such", "file")]}, {"prefix": "/no/such"}, {"checks_user": 1 << 40}):
            monkeypatch.setattr(worker, "policy", lambda *told, wrong=wrong: {**genuine(*told), **wrong})
            execution = await sandbox.run(RIGHT)
            assert execution.outcome is Outcome.SANDBOX_ERROR
            assert ("/no/such" in execution.detail) == ("checks_user" not in wrong), execution
        reason = pool.refusal.__wrapped__("full")
    assert first.outcome is Outcome.SANDBOX_ERROR
    assert "/does/not/exist" in first.detail
    assert reason == execution.detail.removeprefix("OSError: ")


STARVED = Execution(Outcome.WALL_LIMIT, "more than 120 s of wall time")
SHORT_OF_PROCESSES = OSError(f"OSError: [Errno 11] {os.strerror(11)}")


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("end", [worker.WorkerLostError("killed"), TimeoutError(), STARVED, SHORT_OF_PROCESSES])
def test_a_cut_trial_lowers_no_level(
    end: Any, trials: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    need("full")
    monkeypatch.setattr(Worker, "run", AsyncMock(side_effect=[*[end] * trials, PASSED]))
    if trials == 1:
        assert pool.refusal.__wrapped__("full") == ""
        assert "sandbox level 'full': 1 of 3 trials failed: " in caplog.text
    else:
        with pytest.raises(UserError, match=r"'full' could not be found out: 3 trials were cut short .* free it, then"):
            pool.refusal.__wrapped__("full")


async def test_a_worker_killed_meanwhile_is_replaced(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Sandbox(SMALL, workers=1, level=level) as sandbox:
        assert await sandbox.run(RIGHT) == PASSED
        os.kill(sandbox._idle[0].child.process.pid, signal.SIGKILL)
        assert await sandbox.run(RIGHT) == PASSED
    monkeypatch.setattr(worker, "_BOOT", "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(worker.WorkerLostError, match="it may have been killed"):
        await Worker(level, SMALL).run(RIGHT)


async def test_a_worker_is_kept_until_files_are_left_or_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_LIFETIME", 3)
    async with Sandbox(SMALL, workers=1) as sandbox:
        kept = []
        for source in ("x = 1", "x = 2", "x = 3", "x = 4", "open('x', 'w').close()"):
            await sandbox.run(Program(source))
            kept.append(list(sandbox._idle))
    assert kept[0] == kept[1] != []
    assert kept[2] == kept[4] == []
    assert kept[3] not in ([], kept[0])


async def test_a_cancelled_execution_leaves_nothing(level: str, descendants: Callable[[], set[int]]) -> None:
    async with Sandbox(SMALL, level=level) as sandbox:
        task = asyncio.create_task(sandbox.run(Program("import time\ntime.sleep(60)")))
        while not descendants():
            await asyncio.sleep(0.1)
        task.cancel()
        cancelled = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert descendants() == set()
        assert time.monotonic() - cancelled < SMALL.wall_s / 2, "it is not waited for"


def test_programs_die_with_a_killed_harness(
    level: str, descendants: Callable[[], set[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a killed process cannot remove goes with the directory of the test.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o711)
    harness_code = "import asyncio; from harness.sandbox import Program, Sandbox; print('ready', flush=True);"
    harness_code += f"asyncio.run(Sandbox(level={level!r}).run(Program('import time; time.sleep(60)')))"
    command = [sys.executable, "-c", harness_code]
    harness = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert harness.stdout.readline() == "ready\n"
    _wait_until(lambda: len(descendants()) > 2)
    time.sleep(0.3)
    harness.kill()
    harness.communicate()
    _wait_until(lambda: descendants() == set())


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_users_are_told_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "refusal", lambda level: "unshare: no" if level == "full" else "")
    assert pool.best_level() == "rlimit"
    monkeypatch.setattr(pool, "refusal", lambda level: "unshare: no")
    with pytest.raises(UserError, match=r"full: unshare: no; rlimit: .*run as such a user"):
        Sandbox()


FOR_GOOD = {*(Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.EXCEPTION, Outcome.NOT_PLAIN)}
FOR_GOOD |= {Outcome.NOT_EXECUTABLE, Outcome.OUTPUT_LIMIT, Outcome.CPU_LIMIT}


class Told(Sandbox):
    """Executes nothing: a program ends as told."""

    def __init__(self, ends: Callable[[Program], Execution], limits: Limits = SMALL, **caches: Cache) -> None:
        super().__init__(limits, **caches)
        self.ends, self.executed = ends, list[Program]()

    async def _execute(self, program: Program) -> Execution:
        self.executed.append(program)
        await asyncio.sleep(0)
        return self.ends(program)


@pytest.fixture
def run_cell(tmp_path: Path) -> RunCell:
    cells = itertools.count()

    async def run(programs: list[Program], outcome: Outcome = Outcome.EXCEPTION, limits: Limits = SMALL) -> Any:
        def ends(program: Program) -> Execution:
            return Execution(outcome, f"ended: {program.source}", "shown 数")

        caches = {"cache": Cache(tmp_path / "cache.sqlite"), "own": Cache(tmp_path / f"{next(cells)}.sqlite")}
        async with Told(ends, limits, **caches) as sandbox:
            assert [await sandbox.run(program) for program in programs] == [*map(ends, programs)]
        return sandbox.executed

    return run


@pytest.mark.parametrize("outcome", Outcome)
async def test_a_program_is_executed_once_for_all_unless_a_machine_decides(run_cell: RunCell, outcome: Outcome) -> None:
    first, second = Program("x = 1"), Program("x = 2")
    assert await run_cell([first, second, first], outcome) == [first, second]
    assert await run_cell([second, first], outcome) == ([] if outcome in FOR_GOOD else [second, first])


async def test_chance_clock_and_machine_are_not_remembered_for_others(run_cell: RunCell) -> None:
    sources = ["import random\nx = random.random()", "from time import time as now", "__import__('os')", "x = id(1)"]
    dependent = [*map(Program, sources), Program("", setup="import datetime"), Program("", checks="import random")]
    # Words that only look like it are no reason.
    others = [Program(source) for source in ("candidate = 1", "times = timer = oslo = []", "identity(1)", "reopen(1)")]
    assert await run_cell([*dependent, *others, *dependent, *others]) == [*dependent, *others]
    assert await run_cell([*dependent, *others]) == dependent


async def test_a_cell_that_resumes_sees_what_chance_clock_and_machine_gave_it(tmp_path: Path) -> None:
    outcomes = {"import random": Outcome.PASSED, "while True: pass": Outcome.WALL_LIMIT, "x": Outcome.SANDBOX_ERROR}
    numbers, details = itertools.count(1), []
    for cell in ("one", "one", "other"):
        caches = {"cache": Cache(tmp_path / "cache.sqlite"), "own": Cache(tmp_path / f"{cell}.sqlite")}
        async with Told(lambda program: Execution(outcomes[program.source], f"run {next(numbers)}"), **caches) as told:
            details.append([(await told.run(Program(source))).detail for source in outcomes])
    # A failure of the sandbox is no result.
    assert details == [["run 1", "run 2", "run 3"], ["run 1", "run 2", "run 4"], ["run 5", "run 6", "run 7"]]


async def test_all_that_decides_is_in_the_key(run_cell: RunCell, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [("ab", "c", "d"), ("a", "bc", "d"), ("abc", "", "d"), ("ab", "cd"), ("a'", "'", "d")]
    programs = [Program(*text) for text in texts]
    assert await run_cell(programs) == programs
    for change in ({"cpu_s": 2}, {"wall_s": 7.0}, {"memory_mib": 300}, {"threads": 3}):
        assert await run_cell(programs[:1], limits=SMALL.model_copy(update=change)) == programs[:1]
    hashed: list[Path] = []
    for name, other in (
        ("harness.sandbox.pool.fingerprint", lambda paths: hashed.extend(paths) or "other code"),
        ("sys.version", "4.0"),
        ("harness.sandbox.pool.best_level", lambda: "other"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(name, other)
            assert await run_cell(programs[:1]) == programs[:1]
    assert hashed == [ROOT / "harness" / "sandbox"]
    assert await run_cell(programs[:1]) == []

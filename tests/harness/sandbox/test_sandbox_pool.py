"""Many programs at once, and what happens when the sandbox itself fails."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox, pool, worker
from harness.sandbox.worker import Worker
from tests.harness.sandbox.conftest import need

REPOSITORY = Path(__file__).parents[3]
SMALL = Limits(cpu_s=1, wall_s=20.0, memory_mib=256)
MIXTURE = [
    Program("def f(x):\n    return x + 1", checks="assert f(1) == 2"),
    Program("def f(x):\n    return x + 2", checks="assert f(1) == 2"),
    Program("def f(x):\n    return x / 0", checks="assert f(1) == 2"),
    Program("def f(x) return x"),
    Program("x = bytearray(1 << 40)"),
    Program("import os\nos._exit(0)"),
    Program("print(sum(i * i for i in range(1_000_000)))"),
    Program("print('x' * 100_000)"),
]


async def _all(workers: int, programs: list[Program]) -> list[Execution]:
    async with Sandbox(SMALL, workers) as sandbox:
        return await asyncio.gather(*map(sandbox.run, programs))


async def test_verdicts_do_not_depend_on_how_many_run_at_once() -> None:
    alone = await _all(1, MIXTURE)
    assert [execution.outcome for execution in alone] == [
        Outcome.PASSED,
        Outcome.WRONG_ANSWER,
        Outcome.EXCEPTION,
        Outcome.NOT_EXECUTABLE,
        Outcome.MEMORY_LIMIT,
        Outcome.EXCEPTION,
        Outcome.PASSED,
        Outcome.PASSED,
    ]
    assert await _all(8, MIXTURE * 3) == alone * 3


class Pretending:
    is_spent = False

    def __init__(self, run: Callable[[Program], Awaitable[Execution]]) -> None:
        self.run = run

    def close(self) -> None:
        pass


def pretend(run: Callable[[Program], Awaitable[Execution]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "Worker", lambda level, limits: Pretending(run))


async def test_no_more_than_workers_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alive, most = 0, 0

    async def run(program: Program) -> Execution:
        nonlocal alive, most
        alive += 1
        most = max(most, alive)
        await asyncio.sleep(0.001)
        alive -= 1
        return Execution(Outcome.PASSED, "", "")

    pretend(run, monkeypatch)
    await _all(3, MIXTURE * 4)
    assert most == 3


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_failure_of_the_sandbox_is_tried_once_more(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    broken = [OSError("no memory")] * failures
    genuine = Worker.run

    async def unreliable(self: Worker, program: Program) -> Execution:
        if broken:
            raise broken.pop()
        return await genuine(self, program)

    monkeypatch.setattr(Worker, "run", unreliable)
    async with Sandbox(SMALL) as sandbox:
        execution = await sandbox.run(MIXTURE[0])
    assert execution.outcome is (Outcome.PASSED if failures == 1 else Outcome.SANDBOX_ERROR)
    assert broken == []


async def test_a_worker_that_cannot_start_is_a_sandbox_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Sandbox(SMALL) as sandbox:
        monkeypatch.setattr(sys, "executable", "/does/not/exist")
        execution = await sandbox.run(MIXTURE[0])
    assert execution.outcome is Outcome.SANDBOX_ERROR
    assert "/does/not/exist" in execution.detail


async def test_a_worker_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = worker.policy
    async with Sandbox(SMALL) as sandbox:
        if sandbox.level == "rlimit":
            pytest.skip("the level 'rlimit' has no file rules that could fail")
        unreadable = {"readable": [("/does/not/exist", "file")]}
        monkeypatch.setattr(worker, "policy", lambda *arguments: {**genuine(*arguments), **unreadable})
        execution = await sandbox.run(MIXTURE[0])
    assert execution.outcome is Outcome.SANDBOX_ERROR
    assert "FileNotFoundError" in execution.detail


async def test_a_worker_killed_meanwhile_is_replaced(level: str) -> None:
    async with Sandbox(SMALL, workers=1, level=level) as sandbox:
        assert (await sandbox.run(MIXTURE[0])).outcome is Outcome.PASSED
        os.kill(sandbox._idle[0]._process.pid, signal.SIGKILL)
        assert (await sandbox.run(MIXTURE[0])).outcome is Outcome.PASSED


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


async def test_a_limit_of_time_is_tried_once_more_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[str] = []
    beside: list[list[str]] = []

    async def run(program: Program) -> Execution:
        alive.append(program.source)
        await asyncio.sleep(0.001)
        slow_now = program.source == "slow" and not beside
        if program.source == "slow":
            beside.append([one for one in alive if one != "slow"])
        alive.remove(program.source)
        return Execution(Outcome.WALL_LIMIT if slow_now else Outcome.PASSED, "", "")

    pretend(run, monkeypatch)
    slow, *others = await _all(3, [Program("slow"), *[Program(str(number)) for number in range(9)]])
    assert slow == Execution(Outcome.PASSED, "", "", first=Outcome.WALL_LIMIT)
    assert {execution.first for execution in others} == {None}
    assert len(beside[0]) == 2
    assert beside[1] == []


async def test_all_that_pass_a_limit_of_time_are_tried_alone_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alive: list[tuple[str, bool]] = []
    started: dict[str, int] = {}
    late: list[asyncio.Task[Execution]] = []
    beside_one_again, most = 0, 0

    async def run(program: Program) -> Execution:
        nonlocal beside_one_again, most
        started[program.source] = started.get(program.source, 0) + 1
        again = started[program.source] == 2
        alive.append((program.source, again))
        most = max(most, len(alive))
        if again:
            late.append(asyncio.create_task(sandbox.run(Program(f"late {program.source}"))))
        beside_one_again += len(alive) > 1 and any(one_again for _, one_again in alive)
        await asyncio.sleep(0.001)
        alive.remove((program.source, again))
        slow = program.source.startswith("slow") and not again
        return Execution(Outcome.WALL_LIMIT if slow else Outcome.PASSED, "", "")

    pretend(run, monkeypatch)
    async with Sandbox(SMALL, 3) as sandbox, asyncio.timeout(30):
        for turn in ("a", "b"):
            most = 0
            sources = [f"{kind} {turn} {number}" for number in range(6) for kind in ("slow", "quick", "brisk")]
            executions = await asyncio.gather(*(sandbox.run(Program(source)) for source in sources))
            assert [execution.first is not None for execution in executions] == [True, False, False] * 6
            assert (beside_one_again, most) == (0, 3)
        await asyncio.gather(*late)


async def test_a_cancelled_execution_leaves_nothing(descendants: Callable[[], set[int]]) -> None:
    async with Sandbox(SMALL) as sandbox:
        task = asyncio.create_task(sandbox.run(Program("import time\ntime.sleep(60)")))
        await asyncio.sleep(0.3)
        assert descendants()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert descendants() == set()


HARNESS = """
import asyncio
from harness.sandbox import Program, Sandbox
print("ready", flush=True)
asyncio.run(Sandbox(level={level!r}).run(Program("import time; time.sleep(60)")))
"""


def test_programs_die_with_a_killed_harness(
    descendants: Callable[[], set[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("full")
    # What a killed process cannot remove goes with the directory of the test.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS.format(level="full")], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert harness.stdout is not None
    assert harness.stdout.readline() == "ready\n"
    _wait_until(lambda: len(descendants()) > 2)
    harness.kill()
    harness.communicate()
    _wait_until(lambda: descendants() == set())


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_temporary_directories_are_private_and_removed(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.parent.chmod(0o711)
    tmp_path.parent.parent.chmod(0o711)
    tmp_path.chmod(0o711)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with Sandbox(SMALL, level=level) as sandbox:
        await sandbox.run(Program("import os\nos.makedirs('a/b')\nopen('a/c', 'w').close()\nos.chmod('a', 0)"))
        left = list(tmp_path.glob("*/*"))
        assert all(os.stat(path).st_mode & 0o066 == 0 for path in tmp_path.iterdir())
    assert left == []
    assert list(tmp_path.iterdir()) == []


async def test_a_closed_sandbox_can_be_used_again(level: str) -> None:
    sandbox = Sandbox(SMALL, level=level)
    for _ in range(2):
        async with sandbox:
            assert (await sandbox.run(MIXTURE[0])).outcome is Outcome.PASSED


def test_users_are_told_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="0 workers; expected at least 1"):
        Sandbox(workers=0)
    with pytest.raises(UserError, match="cpu_s is 0; expected a number above 0"):
        Limits(cpu_s=0)
    with pytest.raises(UserError, match="unknown sandbox level 'docker'; expected one of full"):
        Sandbox(level="docker")
    monkeypatch.setattr(pool, "why_not", lambda level: "unshare: no")
    with pytest.raises(UserError, match=r"full: unshare: no; rlimit: .*run as such a user"):
        Sandbox()


def test_the_next_best_level_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "why_not", lambda level: "unshare: no" if level == "full" else "")
    assert pool.best_level() == "rlimit"
    with pytest.raises(UserError, match=r"'full' does not work here \(unshare: no\).* offers 'rlimit'"):
        Sandbox(level="full")


def test_why_a_level_does_not_work_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = worker.policy
    monkeypatch.setattr(worker, "policy", lambda *told: {**genuine(*told), "prefix": "/does/not/exist"})
    reason = pool.why_not.__wrapped__("full")
    assert "FileNotFoundError" in reason
    assert "\n" not in reason


async def test_a_program_that_no_worker_takes_is_not_executable() -> None:
    async with Sandbox(SMALL, workers=1) as sandbox:
        execution = await sandbox.run(Program("x" * (65 << 20)))
        assert (await sandbox.run(Program("x = 1"))).outcome is Outcome.PASSED
    told = f"more than 64 MiB of source, {65 << 20} characters of it the program"
    assert execution == Execution(Outcome.NOT_EXECUTABLE, told, "")

"""Programs that are executed once for all cells: what is remembered, for whom, and what damage does."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.database import Cache
from harness.files import ROOT
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox

SMALL = Limits(cpu_s=1, wall_s=20.0, memory_mib=256)
PROGRAMS = [Program(f"x = {number}") for number in range(3)]
FOR_GOOD = {*(Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.EXCEPTION, Outcome.NOT_PLAIN)}
FOR_GOOD |= {Outcome.NOT_EXECUTABLE, Outcome.OUTPUT_LIMIT}


@dataclass
class Executor:
    """Stands where programs are executed: notes them, and answers with what tells them apart."""

    outcome: Outcome = Outcome.EXCEPTION
    given: list[Program] = field(default_factory=list)

    def expected(self, program: Program) -> Execution:
        return Execution(self.outcome, f"ended: {program.source}", f"shown by {program.source} 数")

    async def run(self, sandbox: Sandbox, program: Program) -> Execution:
        self.given.append(program)
        await asyncio.sleep(0)
        return self.expected(program)


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Executor:
    executor = Executor()
    monkeypatch.setattr(Sandbox, "_execute", lambda sandbox, program: executor.run(sandbox, program))
    return executor


def cached(folder: Path, limits: Limits = SMALL) -> Sandbox:
    return Sandbox(limits, cache=Cache(folder / "cache.sqlite"))


async def fill(folder: Path, programs: list[Program], executor: Executor, limits: Limits = SMALL) -> list[Program]:
    """Run programs as one cell; which of them had to be executed."""
    executor.given.clear()
    async with cached(folder, limits) as sandbox:
        for program in programs:
            assert await sandbox.run(program) == executor.expected(program)
    return list(executor.given)


async def test_a_program_is_executed_once_for_all_cells(tmp_path: Path, executor: Executor) -> None:
    first, second, third = PROGRAMS
    assert await fill(tmp_path, [first, second, first], executor) == [first, second]
    assert await fill(tmp_path, [second, first, third], executor) == [third]
    assert await fill(tmp_path, PROGRAMS, executor) == []


@pytest.mark.parametrize("outcome", Outcome)
async def test_what_a_machine_decides_stays_here(tmp_path: Path, executor: Executor, outcome: Outcome) -> None:
    executor.outcome = outcome
    assert await fill(tmp_path, PROGRAMS[:1] * 2, executor) == PROGRAMS[:1]
    assert (await fill(tmp_path, PROGRAMS[:1], executor) == []) is (outcome in FOR_GOOD)


async def test_chance_clock_and_machine_are_not_remembered_for_others(tmp_path: Path, executor: Executor) -> None:
    sources = ["import random\nx = random.random()", "from time import time as now", "__import__('os')", "x = id(1)"]
    dependent = [*map(Program, sources), Program("", setup="import datetime"), Program("", checks="import random")]
    # Words that only look like it are no reason.
    others = [Program(source) for source in ("candidate = 1", "times = timer = oslo = []", "identity(1)", "reopen(1)")]
    assert await fill(tmp_path, [*dependent, *others, *dependent, *others], executor) == [*dependent, *others]
    assert await fill(tmp_path, [*dependent, *others], executor) == dependent


async def test_all_that_decides_is_in_the_key(
    tmp_path: Path, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program("ab", "c", "d")
    others = [Program("a", "bc", "d"), Program("abc", "", "d"), Program("ab", "cd"), Program("a'", "'", "d")]
    assert await fill(tmp_path, [program, *others], executor) == [program, *others]
    for limits in (Limits(cpu_s=2), Limits(wall_s=7.0), Limits(memory_mib=300), Limits(threads=3)):
        assert await fill(tmp_path, [program], executor, limits) == [program]
    hashed: list[Path] = []
    for place, other in (
        ("harness.sandbox.pool.fingerprint", lambda paths: hashed.extend(paths) or "other code"),
        ("sys.version", "4.0"),
        ("harness.sandbox.pool.best_level", lambda: "other"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, other)
            assert await fill(tmp_path, [program], executor) == [program]
    assert hashed == [ROOT / "harness" / "sandbox"]
    assert await fill(tmp_path, [program], executor) == []


async def test_executions_are_the_same_with_and_without_the_cache(tmp_path: Path) -> None:
    bodies = ["2 * x", "x / 0", "(", "bytearray(1 << 40)", "'\udc80'", "2 * x"]
    programs = [Program(f"def f(x):\n    return {body}", checks="assert f(2) == 4") for body in bodies]

    async def executed(sandbox: Sandbox) -> list[Execution]:
        async with sandbox:
            return await asyncio.gather(*map(sandbox.run, programs))

    assert await executed(Sandbox(SMALL)) == await executed(cached(tmp_path)) == await executed(cached(tmp_path))

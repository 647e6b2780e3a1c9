"""The cache of program outcomes: contents, scope, and damaged entries."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness.database import Cache
from harness.files import ROOT
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox
from tests.harness.sandbox.conftest import SMALL

FOR_GOOD = {*(Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.EXCEPTION, Outcome.NOT_PLAIN)}
FOR_GOOD |= {Outcome.NOT_EXECUTABLE, Outcome.OUTPUT_LIMIT, Outcome.CPU_LIMIT}

RunCell = Callable[..., Awaitable[list[Program]]]


def cached(folder: Path, limits: Limits = SMALL) -> Sandbox:
    return Sandbox(limits, cache=Cache(folder / "cache.sqlite"))


@pytest.fixture
def run_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunCell:
    async def run(
        programs: list[Program], outcome: Outcome = Outcome.EXCEPTION, limits: Limits = SMALL
    ) -> list[Program]:
        ends = {program: Execution(outcome, f"ended: {program.source}", "shown 数") for program in programs}
        executed: list[Program] = []

        async def execute(_: Sandbox, program: Program) -> Execution:
            executed.append(program)
            await asyncio.sleep(0)
            return ends[program]

        monkeypatch.setattr(Sandbox, "_execute", execute)
        async with cached(tmp_path, limits) as sandbox:
            assert [await sandbox.run(program) for program in programs] == [ends[program] for program in programs]
        return executed

    return run


@pytest.mark.parametrize("outcome", Outcome)
async def test_a_program_is_executed_once_for_all_cells_unless_a_machine_decides(
    run_cell: RunCell, outcome: Outcome
) -> None:
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


async def test_a_cell_that_resumes_sees_what_chance_clock_and_machine_gave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = {"import random": Outcome.PASSED, "while True: pass": Outcome.WALL_LIMIT, "x": Outcome.SANDBOX_ERROR}
    numbers = itertools.count(1)

    async def execute(_: Sandbox, program: Program) -> Execution:
        return Execution(ends[program.source], f"run {next(numbers)}")

    monkeypatch.setattr(Sandbox, "_execute", execute)
    details = []
    for cell in ("one", "one", "other"):
        own = Cache(tmp_path / f"{cell}.sqlite")
        async with Sandbox(SMALL, cache=Cache(tmp_path / "cache.sqlite"), own=own) as sandbox:
            details.append([(await sandbox.run(Program(source))).detail for source in ends])
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

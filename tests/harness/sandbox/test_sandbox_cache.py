"""Programs that are executed once for all cells: what is remembered, for whom, and what damage does."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import sys
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agents.code_tools import CodeTools, Value
from harness.agents.error_share import ErrorShare
from harness.agents.results import write
from harness.agents.runtime import Runtime
from harness.agents.trajectory import Context
from harness.benchmarks import Tools
from harness.benchmarks.humaneval import HumanEval
from harness.benchmarks.items import CodeTask, Item
from harness.files import ROOT
from harness.llm.database import Cache
from harness.runner.evaluation import evaluate
from harness.runner.progress import Progress
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox
from harness.sandbox import cache as module
from harness.sandbox.cache import CachedSandbox
from harness.sandbox.pool import LEVELS, why_not
from tests.scripted import ScriptedClient, backbones

SMALL = Limits(cpu_s=1, wall_s=20.0, memory_mib=256)
PROGRAMS = [Program(f"x = {number}") for number in range(3)]
FOR_GOOD = [
    Outcome.PASSED,
    Outcome.WRONG_ANSWER,
    Outcome.EXCEPTION,
    Outcome.NOT_EXECUTABLE,
    Outcome.OUTPUT_LIMIT,
]


@dataclass
class Executor:
    """Stands where programs are executed: notes them, and answers with what tells them apart."""

    outcome: Outcome = Outcome.EXCEPTION
    given: list[Program] = field(default_factory=list)
    gate: asyncio.Event | None = None

    def expected(self, program: Program) -> Execution:
        return Execution(self.outcome, f"ended: {program.source}", f"printed by {program.source} 数")

    async def run(self, sandbox: Sandbox, program: Program) -> Execution:
        self.given.append(program)
        await (self.gate.wait() if self.gate else asyncio.sleep(0))
        return self.expected(program)


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Executor:
    one = Executor()
    monkeypatch.setattr(Sandbox, "run", lambda sandbox, program: one.run(sandbox, program))
    return one


def cache_in(folder: Path) -> Cache:
    return Cache(folder / "cache.sqlite")


async def fill(folder: Path, programs: list[Program], executor: Executor) -> list[Program]:
    """Run programs as one cell; which of them had to be executed."""
    executor.given.clear()
    async with CachedSandbox(cache_in(folder), SMALL) as sandbox:
        for program in programs:
            assert await sandbox.run(program) == executor.expected(program)
    return list(executor.given)


async def test_a_program_is_executed_once_for_all_cells(tmp_path: Path, executor: Executor) -> None:
    one, two, three = PROGRAMS
    assert await fill(tmp_path, [one, two, one], executor) == [one, two]
    assert await fill(tmp_path, [two, one, three], executor) == [three]
    assert await fill(tmp_path, PROGRAMS, executor) == []


async def test_a_closed_one_can_be_used_again(tmp_path: Path, executor: Executor) -> None:
    sandbox = CachedSandbox(cache_in(tmp_path), SMALL)
    for _ in range(2):
        async with sandbox:
            await sandbox.run(PROGRAMS[0])
    assert executor.given == PROGRAMS[:1]


@pytest.mark.parametrize("outcome", Outcome)
async def test_what_a_machine_decides_stays_here(tmp_path: Path, executor: Executor, outcome: Outcome) -> None:
    executor.outcome = outcome
    twice = [PROGRAMS[0], PROGRAMS[0]]
    assert await fill(tmp_path, twice, executor) == twice[: 2 if outcome is Outcome.SANDBOX_ERROR else 1]
    assert (await fill(tmp_path, [PROGRAMS[0]], executor) == []) is (outcome in FOR_GOOD)


@pytest.mark.parametrize(
    "program",
    [
        Program("import random\nx = random.random()"),
        Program("from time import time as now"),
        Program("x = __import__('os').listdir()"),
        Program("def f(a): return id(a)"),
        Program("def f(): ...", setup="import datetime"),
        Program("def f(): ...", checks="import random\nassert f() is None"),
    ],
)
async def test_chance_clock_and_machine_are_not_remembered_for_others(
    tmp_path: Path, executor: Executor, program: Program
) -> None:
    assert await fill(tmp_path, [program, program], executor) == [program]
    assert await fill(tmp_path, [program], executor) == [program]


@pytest.mark.parametrize("source", ["candidate = 1", "times = update = timer = oslo = []", "identity(1)", "reopen(1)"])
async def test_words_that_only_look_like_it_are_no_reason(tmp_path: Path, executor: Executor, source: str) -> None:
    await fill(tmp_path, [Program(source)], executor)
    assert await fill(tmp_path, [Program(source)], executor) == []


async def test_all_that_decides_is_in_the_key(
    tmp_path: Path, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def executed(program: Program, limits: Limits = SMALL) -> bool:
        before = len(executor.given)
        async with CachedSandbox(cache_in(tmp_path), limits) as sandbox:
            await sandbox.run(program)
        return len(executor.given) > before

    assert await executed(Program("ab", "c", "d"))
    assert not await executed(Program("ab", "c", "d"))
    for other in (Program("a", "bc", "d"), Program("abc", "", "d"), Program("ab", "cd"), Program("ab", "d", "c")):
        assert await executed(other)
    for limits in (Limits(cpu_s=2), Limits(wall_s=7.0), Limits(memory_mib=300), Limits(threads=3)):
        assert await executed(Program("ab", "c", "d"), limits)
    with monkeypatch.context() as patch:
        patch.setattr(module, "fingerprint", lambda paths: "other code")
        assert await executed(Program("ab", "c", "d"))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version", "4.0")
        assert await executed(Program("ab", "c", "d"))
    with monkeypatch.context() as patch:
        patch.setattr("harness.sandbox.pool.best_level", lambda: "other")
        assert await executed(Program("ab", "c", "d"))
    assert not await executed(Program("ab", "c", "d"))


def test_the_code_of_the_sandbox_and_of_this_cache_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[Path]] = []
    monkeypatch.setattr(module, "fingerprint", lambda paths: asked.append(set(paths)) or "")
    assert CachedSandbox(Cache(Path("unused")), SMALL)._ground
    assert asked == [{ROOT / "harness" / "sandbox"}]


@given(st.lists(st.text(st.characters(), max_size=3), min_size=2, max_size=4))
def test_no_two_divisions_of_a_text_share_a_key(parts: list[str]) -> None:
    whole = "".join(parts)
    assert module._digest(*parts) == module._digest(*parts)
    assert module._digest(whole, *[""] * (len(parts) - 1)) != module._digest(*parts) or parts[0] == whole


async def test_a_text_that_is_no_unicode_is_a_program_like_any_other(tmp_path: Path, executor: Executor) -> None:
    async with CachedSandbox(cache_in(tmp_path), SMALL) as sandbox:
        executor.expected = lambda program: Execution(Outcome.NOT_EXECUTABLE, "no", "")  # type: ignore[method-assign]
        assert [(await sandbox.run(Program("x = '\udc80'"))).detail for _ in range(2)] == ["no", "no"]
    assert len(executor.given) == 1


async def test_the_end_of_a_long_output_is_kept_remembered_or_not(tmp_path: Path, executor: Executor) -> None:
    executor.expected = lambda program: Execution(  # type: ignore[method-assign]
        Outcome.OUTPUT_LIMIT, "", "".join(map(str, range(10_000)))
    )
    for _ in range(2):
        async with CachedSandbox(cache_in(tmp_path), SMALL) as sandbox:
            stdout = (await sandbox.run(PROGRAMS[0])).stdout
            assert len(stdout) == 1000
            assert stdout.endswith("99989999")


async def test_callers_at_the_same_time_share_the_execution(tmp_path: Path, executor: Executor) -> None:
    executor.gate = asyncio.Event()
    async with CachedSandbox(cache_in(tmp_path), SMALL) as sandbox:
        callers = [asyncio.create_task(sandbox.run(PROGRAMS[0])) for _ in range(20)]
        await asyncio.sleep(0)
        callers[0].cancel()  # takes nobody along
        await asyncio.sleep(0)
        executor.gate.set()
        outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert outcomes[1:] == [executor.expected(PROGRAMS[0])] * 19
    assert executor.given == PROGRAMS[:1]


async def test_closing_ends_what_nobody_gets(tmp_path: Path, executor: Executor) -> None:
    executor.gate = asyncio.Event()
    async with CachedSandbox(cache_in(tmp_path), SMALL) as sandbox:
        waiting = asyncio.create_task(sandbox.run(PROGRAMS[0]))
        await asyncio.sleep(0.001)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 5)


async def test_graders_and_tools_share_what_is_known(tmp_path: Path, executor: Executor) -> None:
    executor.outcome = Outcome.PASSED
    task = CodeTask("f", "", "assert f() == 1\n", ("assert f() == 1\n",))
    item = Item("1", "humaneval", "?", "def f(): return 1", code=task)
    text = f"```python\n{item.gold}\n```"
    # The only example is the only check, so one execution tells of both; the other is that of the value.
    async with CachedSandbox(cache_in(tmp_path), SMALL) as sandbox:
        code_tools = CodeTools(sandbox)
        await asyncio.gather(*(code_tools.examples(item, text) for _ in range(5)))
        await asyncio.gather(*(code_tools.value(f"{text}\n```python\nanswer = 1\n```") for _ in range(5)))
        assert await code_tools.passes(item, text)
        for _ in range(2):
            assert (await HumanEval("humaneval", "").grade(item, text, Tools(sandbox, None))).correct  # type: ignore[arg-type]
    assert len(executor.given) == len(set(executor.given)) == 2


class Answering:
    """A method that asks once, runs the examples, and answers with what it was told."""

    async def solve(self, item: Item, context: Context) -> str:
        text = (await context.ask("small", ())).text
        return f"{text}\n{await context.code_tools.examples(item, text)}"


async def result(sandbox: Sandbox, folder: Path, answers: list[str]) -> dict[str, bytes]:
    """The bytes a cell leaves behind."""
    task = CodeTask("f", "", "assert f(2) == 4\n", ("assert f(1) == 2", "assert f(0) == 0"))
    items = [Item(str(number), "humaneval", "?", "", code=task) for number in range(len(answers))]
    parts: dict[str, Any] = {"client": ScriptedClient(*answers), "embeddings": None}
    async with sandbox:
        runtime = Runtime(
            backbones=backbones(),
            benchmark=HumanEval("humaneval", ""),
            tools=Tools(sandbox, None),  # type: ignore[arg-type]
            code_tools=CodeTools(sandbox),
            seed=0,
            errors=ErrorShare(0.1),
            **parts,
        )
        answered = await evaluate(Answering(), items, runtime, Progress("cell", len(items)), in_flight=1)
    write(folder, answered, {"sandbox": sandbox.level})
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_a_cell_leaves_the_same_bytes_with_and_without_the_cache(tmp_path: Path) -> None:
    bodies = ["2 * x", "x + 1", "x / 0", "print('y' * 70_000)", "(", "bytearray(1 << 40)", "2 * x"]
    answers = [f"```python\ndef f(x):\n    return {body}\n```" for body in bodies]
    cache = cache_in(tmp_path)
    plain = await result(Sandbox(SMALL), tmp_path / "plain", answers)
    cold = await result(CachedSandbox(cache, SMALL), tmp_path / "cold", answers)
    with closing(sqlite3.connect(cache.path)) as database:
        (kept,) = database.execute("SELECT count(*) FROM verdicts").fetchone()
    assert kept == 4 * 3 + 2  # two examples each, and checks where there is a program to grade
    warm = await result(CachedSandbox(cache, SMALL), tmp_path / "warm", answers)
    assert plain == cold == warm


async def test_the_value_is_read_behind_any_output(tmp_path: Path) -> None:
    text = "```python\nprint('x' * 30_000)\nanswer = '数' * 300\n```"
    for _ in range(2):
        async with CachedSandbox(cache_in(tmp_path), SMALL) as sandbox:
            assert await CodeTools(sandbox).value(text) == Value(printed=f"{'数' * 200}...")


@pytest.mark.parametrize("level", LEVELS)
async def test_no_program_writes_into_the_cache(level: str, tmp_path: Path) -> None:
    if why_not(level):
        pytest.skip(f"sandbox level {level!r} is not available on this machine")
    if level == "rlimit" and os.geteuid() != 0:
        pytest.skip("at level 'rlimit' a program is the user that runs the suite, unless that is root")
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) | 0o011)  # what protects is not that nobody gets here
    cache = Cache(tmp_path / "cache" / "cache.sqlite")
    attack = f"""
import os
for action in (
    lambda: open({str(cache.path)!r}, "a"),
    lambda: open({str(cache.path.with_name("cache.sqlite-wal"))!r}, "a"),
    lambda: open({str(cache.path.with_name("forged.sqlite"))!r}, "w"),
    lambda: os.truncate({str(cache.path)!r}, 0),
    lambda: os.unlink({str(cache.path)!r}),
    lambda: os.rename({str(cache.path.parent)!r}, {str(tmp_path / "away")!r}),
):
    try:
        action()
    except OSError:
        continue
    raise SystemExit("written")
"""
    with cache:
        async with CachedSandbox(cache, SMALL, level=level) as sandbox:
            await sandbox.run(PROGRAMS[0])
            assert (await sandbox.run(Program(attack))) == Execution(Outcome.PASSED, "", "")
    assert [path.name for path in cache.path.parent.iterdir()] == ["cache.sqlite"]

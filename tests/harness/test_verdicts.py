"""Programs that are executed once for all cells: what is remembered, for whom, and what damage does."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import stat
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness import verdicts as module
from harness.agents.code_tools import CodeTools, Value
from harness.agents.error_share import ErrorShare
from harness.agents.runtime import Runtime
from harness.agents.trajectory import Context
from harness.benchmarks import Tools
from harness.benchmarks.humaneval import HumanEval
from harness.benchmarks.items import CodeTask, Item
from harness.errors import UserError
from harness.files import ROOT
from harness.results import write
from harness.runner.evaluation import evaluate
from harness.runner.progress import Progress
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox
from harness.sandbox.pool import LEVELS, why_not
from harness.verdicts import RememberingSandbox
from tests.scripted import ScriptedClient, backbones

SMALL = Limits(cpu_s=1, wall_s=20.0, memory_mib=256)
RECORD = 133  # length of what each of these leaves behind
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


async def fill(folder: Path, name: str, programs: list[Program], executor: Executor) -> list[Program]:
    """Run programs as one cell; which of them had to be executed."""
    executor.given.clear()
    async with RememberingSandbox(folder, name, SMALL) as sandbox:
        for program in programs:
            assert await sandbox.run(program) == executor.expected(program)
    return list(executor.given)


def lines(path: Path) -> list[tuple[str, list[str]]]:
    """Digest and content of every line of a file, read by the letter of its description."""
    content = path.read_bytes()
    assert content.endswith(b"\n")
    found = []
    for line in content.splitlines():
        digest, crc, record = line.split(b" ", 2)
        assert int(crc, 16) == zlib.crc32(bytes.fromhex(digest.decode()) + record)
        found.append((digest.decode(), json.loads(record)))
    return found


async def test_a_program_is_executed_once_for_all_cells(tmp_path: Path, executor: Executor) -> None:
    one, two, three = PROGRAMS
    assert await fill(tmp_path, "a", [one, two, one], executor) == [one, two]
    assert await fill(tmp_path, "a", [two, one, three], executor) == [three]
    assert await fill(tmp_path, "b", PROGRAMS, executor) == []
    assert [content for _, content in lines(tmp_path / "a.jsonl")] == [
        ["exception", f"ended: x = {number}", f"printed by x = {number} 数", None, 0] for number in range(3)
    ]
    assert (tmp_path / "b.jsonl").read_bytes() == b""


async def test_nothing_is_opened_before_the_first_program(tmp_path: Path) -> None:
    async with RememberingSandbox(tmp_path / "cache", "cell", SMALL):
        pass
    assert list(tmp_path.iterdir()) == []


async def test_a_closed_one_can_be_used_again(tmp_path: Path, executor: Executor) -> None:
    sandbox = RememberingSandbox(tmp_path, "cell", SMALL)
    for _ in range(2):
        async with sandbox:
            await sandbox.run(PROGRAMS[0])
    assert executor.given == PROGRAMS[:1]


@pytest.mark.parametrize("outcome", Outcome)
async def test_what_a_machine_decides_stays_here(tmp_path: Path, executor: Executor, outcome: Outcome) -> None:
    executor.outcome = outcome
    twice = [PROGRAMS[0], PROGRAMS[0]]
    assert await fill(tmp_path, "a", twice, executor) == twice[: 2 if outcome is Outcome.SANDBOX_ERROR else 1]
    assert len((tmp_path / "a.jsonl").read_bytes().splitlines()) == (outcome in FOR_GOOD)
    assert (await fill(tmp_path, "b", [PROGRAMS[0]], executor) == []) is (outcome in FOR_GOOD)


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
    assert await fill(tmp_path, "a", [program, program], executor) == [program]
    assert await fill(tmp_path, "b", [program], executor) == [program]


@pytest.mark.parametrize("source", ["candidate = 1", "times = update = timer = oslo = []", "identity(1)", "reopen(1)"])
async def test_words_that_only_look_like_it_are_no_reason(tmp_path: Path, executor: Executor, source: str) -> None:
    await fill(tmp_path, "a", [Program(source)], executor)
    assert await fill(tmp_path, "b", [Program(source)], executor) == []


async def test_all_that_decides_is_in_the_key(
    tmp_path: Path, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter(range(100))

    async def executed(program: Program, limits: Limits = SMALL) -> bool:
        before = len(executor.given)
        async with RememberingSandbox(tmp_path, f"cell{next(names)}", limits) as sandbox:
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
    assert RememberingSandbox(Path("unused"), "cell", SMALL)._ground
    assert asked == [{ROOT / "harness" / "sandbox", ROOT / "harness" / "verdicts.py"}]


@given(st.lists(st.text(st.characters(), max_size=3), min_size=2, max_size=4))
def test_no_two_divisions_of_a_text_share_a_key(parts: list[str]) -> None:
    whole = "".join(parts)
    assert module._digest(*parts) == module._digest(*parts)
    assert module._digest(whole, *[""] * (len(parts) - 1)) != module._digest(*parts) or parts[0] == whole


async def test_a_text_that_is_no_unicode_is_a_program_like_any_other(tmp_path: Path, executor: Executor) -> None:
    async with RememberingSandbox(tmp_path, "cell", SMALL) as sandbox:
        executor.expected = lambda program: Execution(Outcome.NOT_EXECUTABLE, "no", "")  # type: ignore[method-assign]
        assert [(await sandbox.run(Program("x = '\udc80'"))).detail for _ in range(2)] == ["no", "no"]
    assert len(executor.given) == 1


async def test_the_end_of_a_long_output_is_kept_remembered_or_not(tmp_path: Path, executor: Executor) -> None:
    executor.expected = lambda program: Execution(  # type: ignore[method-assign]
        Outcome.OUTPUT_LIMIT, "", "".join(map(str, range(10_000)))
    )
    for name in ("a", "b"):
        async with RememberingSandbox(tmp_path, name, SMALL) as sandbox:
            stdout = (await sandbox.run(PROGRAMS[0])).stdout
            assert len(stdout) == 1000
            assert stdout.endswith("99989999")


async def test_callers_at_the_same_time_share_the_execution(tmp_path: Path, executor: Executor) -> None:
    executor.gate = asyncio.Event()
    async with RememberingSandbox(tmp_path, "cell", SMALL) as sandbox:
        callers = [asyncio.create_task(sandbox.run(PROGRAMS[0])) for _ in range(20)]
        await asyncio.sleep(0)
        callers[0].cancel()  # takes nobody along
        await asyncio.sleep(0)
        executor.gate.set()
        outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert outcomes[1:] == [executor.expected(PROGRAMS[0])] * 19
    assert executor.given == PROGRAMS[:1]
    assert len(lines(tmp_path / "cell.jsonl")) == 1


async def test_closing_ends_what_nobody_gets(tmp_path: Path, executor: Executor) -> None:
    executor.gate = asyncio.Event()
    async with RememberingSandbox(tmp_path, "cell", SMALL) as sandbox:
        waiting = asyncio.create_task(sandbox.run(PROGRAMS[0]))
        await asyncio.sleep(0.001)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 5)
    assert (tmp_path / "cell.jsonl").read_bytes() == b""


@pytest.fixture(scope="module")
def whole() -> bytes:
    """The file of a cell that ran three programs."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as name:
        one = Executor()
        patch.setattr(Sandbox, "run", lambda sandbox, program: one.run(sandbox, program))
        asyncio.run(fill(Path(name), "cell", PROGRAMS, one))
        content = (Path(name) / "cell.jsonl").read_bytes()
        assert len(content) == 3 * RECORD
        return content


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(length=st.integers(0, 3 * RECORD - 1))
async def test_a_torn_last_record_is_cut_off_and_the_rest_lives(executor: Executor, whole: bytes, length: int) -> None:
    alive = whole[:length].count(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cell.jsonl"
        path.write_bytes(whole[:length])
        assert await fill(path.parent, "cell", PROGRAMS, executor) == PROGRAMS[alive:]
        assert path.read_bytes() == whole


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 3 * RECORD - 1), flip=st.integers(1, 255), owner=st.sampled_from(["cell", "other"]))
@example(at=64, flip=1, owner="other")  # between digest and check sum, which both hold
@example(at=RECORD - 1, flip=1, owner="other")
async def test_a_damaged_record_is_executed_again_and_stays_mended(
    executor: Executor, whole: bytes, at: int, flip: int, owner: str
) -> None:
    damaged = bytearray(whole)
    damaged[at] ^= flip
    hit = whole[:at].count(b"\n")
    # Without the break between them two records are one that nobody can read; the last one is torn.
    lost = PROGRAMS[hit : hit + 2] if whole[at : at + 1] == b"\n" else PROGRAMS[hit : hit + 1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / f"{owner}.jsonl").write_bytes(damaged)
        assert await fill(folder, "cell", PROGRAMS, executor) == lost
        assert await fill(folder, "cell", PROGRAMS, executor) == []
        assert await fill(folder, "third", PROGRAMS, executor) == []


async def test_damage_has_a_word(
    tmp_path: Path, executor: Executor, whole: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cell.jsonl").write_bytes(whole.replace(b"ended", b"edned", 2)[:-1])
    (tmp_path / "rubbish.jsonl").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "folder.jsonl").mkdir()
    with caplog.at_level(logging.WARNING):
        assert await fill(tmp_path, "cell", PROGRAMS, executor) == PROGRAMS
    torn = len(whole.splitlines()[-1])
    assert caplog.messages == [
        f"{tmp_path / 'folder.jsonl'}: passed over (Is a directory)",
        f"{tmp_path / 'rubbish.jsonl'}: dropped 4 damaged records",
        f"{tmp_path / 'cell.jsonl'}: dropped 2 damaged records",
        f"{tmp_path / 'cell.jsonl'}: cut off an unfinished last record ({torn} bytes)",
    ]


async def test_a_record_changed_behind_its_back_gives_no_wrong_verdict(
    tmp_path: Path, executor: Executor, whole: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(whole)
    async with RememberingSandbox(tmp_path, "cell", SMALL) as sandbox:
        await sandbox.run(PROGRAMS[0])
        other.write_bytes(whole.replace(b"exception", b"completed"))
        assert await sandbox.run(PROGRAMS[1]) == executor.expected(PROGRAMS[1])
        other.unlink()
        assert await sandbox.run(PROGRAMS[2]) == executor.expected(PROGRAMS[2])
    assert executor.given == PROGRAMS[1:]
    assert caplog.messages == [f"{other}: dropped a damaged record (byte {at})" for at in (RECORD, 2 * RECORD)]


async def test_no_two_processes_write_one_file(tmp_path: Path, executor: Executor) -> None:
    code = "import fcntl, sys\nfile = open(sys.argv[1], 'a')\nfcntl.flock(file, 2)\nprint(flush=True)\ninput()"
    command = [sys.executable, "-c", code, str(tmp_path / "cell.jsonl")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(UserError, match=r"cell\.jsonl is being written by another process; wait"):
            await fill(tmp_path, "cell", PROGRAMS, executor)
        writer.communicate("\n")
    assert await fill(tmp_path, "cell", PROGRAMS, executor) == PROGRAMS


async def test_a_full_disk_is_one_line_and_leaves_whole_records(
    tmp_path: Path, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = os.write

    def full(handle: int, content: bytes) -> int:
        if not content.endswith(b"]\n") or len(content) < 80:
            raise OSError(errno.ENOSPC, "No space left on device")
        return genuine(handle, content[:-70])

    async with RememberingSandbox(tmp_path, "cell", SMALL) as sandbox:
        await sandbox.run(PROGRAMS[0])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(UserError, match=r"cannot write .*cell\.jsonl: No space left on device; free space"):
                await sandbox.run(PROGRAMS[1])
        assert len(lines(tmp_path / "cell.jsonl")) == 1
        await sandbox.run(PROGRAMS[2])
    assert await fill(tmp_path, "cell", PROGRAMS, executor) == [PROGRAMS[1]]


async def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, executor: Executor) -> None:
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(UserError, match=r"cannot write .*cell\.jsonl"):
        await fill(tmp_path / "cache", "cell", PROGRAMS, executor)


async def test_graders_and_tools_share_what_is_known(tmp_path: Path, executor: Executor) -> None:
    executor.outcome = Outcome.PASSED
    task = CodeTask("f", "", "assert f() == 1\n", ("assert f() == 1\n",))
    item = Item("1", "humaneval", "?", "def f(): return 1", code=task)
    text = f"```python\n{item.gold}\n```"
    # The only example is the only check, so one execution tells of both; the other is that of the value.
    async with RememberingSandbox(tmp_path, "cell", SMALL) as sandbox:
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
        answered = await evaluate(Answering(), items, runtime, Progress("cell", len(items)), in_flight=1, folder=folder)
    write(folder, answered, {"sandbox": sandbox.level})
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_a_cell_leaves_the_same_bytes_with_and_without_the_cache(tmp_path: Path) -> None:
    bodies = ["2 * x", "x + 1", "x / 0", "print('y' * 70_000)", "(", "bytearray(1 << 40)", "2 * x"]
    answers = [f"```python\ndef f(x):\n    return {body}\n```" for body in bodies]
    cache = tmp_path / "cache"
    plain = await result(Sandbox(SMALL), tmp_path / "plain", answers)
    cold = await result(RememberingSandbox(cache, "cold", SMALL), tmp_path / "cold", answers)
    assert (
        len(lines(cache / "cold.jsonl")) == 4 * 3 + 2
    )  # two examples each, and checks where there is a program to grade
    warm = await result(RememberingSandbox(cache, "warm", SMALL), tmp_path / "warm", answers)
    assert (cache / "warm.jsonl").read_bytes() == b""
    assert plain == cold == warm


async def test_the_value_is_read_behind_any_output(tmp_path: Path) -> None:
    text = "```python\nprint('x' * 30_000)\nanswer = '数' * 300\n```"
    for name in ("cold", "warm"):
        async with RememberingSandbox(tmp_path, name, SMALL) as sandbox:
            assert await CodeTools(sandbox).value(text) == Value(printed=f"{'数' * 200}...")


@pytest.mark.parametrize("level", LEVELS)
async def test_no_program_writes_into_the_cache(level: str, tmp_path: Path) -> None:
    if why_not(level):
        pytest.skip(f"sandbox level {level!r} is not available on this machine")
    if level == "rlimit" and os.geteuid() != 0:
        pytest.skip("at level 'rlimit' a program is the user that runs the suite, unless that is root")
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) | 0o011)  # what protects is not that nobody gets here
    cache = tmp_path / "cache"
    attack = f"""
import os
for action in (
    lambda: open({str(cache / "cell.jsonl")!r}, "a"),
    lambda: open({str(cache / "forged.jsonl")!r}, "w"),
    lambda: os.truncate({str(cache / "cell.jsonl")!r}, 0),
    lambda: os.unlink({str(cache / "cell.jsonl")!r}),
    lambda: os.rename({str(cache)!r}, {str(tmp_path / "away")!r}),
):
    try:
        action()
    except OSError:
        continue
    raise SystemExit("written")
"""
    async with RememberingSandbox(cache, "cell", SMALL, level=level) as sandbox:
        await sandbox.run(PROGRAMS[0])
        before = (cache / "cell.jsonl").read_bytes()
        assert (await sandbox.run(Program(attack))) == Execution(Outcome.PASSED, "", "")
    assert before
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == {"cell.jsonl": before}

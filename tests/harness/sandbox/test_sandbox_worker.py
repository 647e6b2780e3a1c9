"""One worker: what it leaves, what it says at its end, and what it may be asked again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox, orders, worker
from harness.sandbox.levels import best_level
from harness.sandbox.worker import Worker

SMALL = Limits(cpu_s=1, wall_s=20.0, memory_mib=256)
HONEST = Program("def f(x):\n    return x + 1", checks="assert f(1) == 2", entry_point="f")
RIGHT = Execution(Outcome.PASSED, "", "", assertions=1)
BUSY_CHECKS = Program("def f():\n    return range(10 ** 15)", checks="assert sum(f()) == 0", entry_point="f")


@contextlib.contextmanager
def started(limits: Limits = SMALL) -> Iterator[Worker]:
    one = Worker(best_level(), limits)
    try:
        one.start()
        yield one
    finally:
        one.close()


def open_descriptors() -> set[str]:
    return set(os.listdir("/dev/fd"))


def test_a_closed_worker_leaves_nothing(
    descendants: Callable[[], set[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    best_level()
    before = open_descriptors()
    with started() as one:
        assert one.ask(HONEST) == RIGHT
        assert len(descendants()) >= 2
    assert descendants() == set()
    assert open_descriptors() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stage", ["never started", "killed", "at work"])
def test_nor_does_one_that_is_closed_early(descendants: Callable[[], set[int]], stage: str) -> None:
    best_level()
    before = open_descriptors()
    one = Worker(best_level(), SMALL)
    if stage != "never started":
        one.start()
    if stage == "killed":
        os.kill(one._process.pid, signal.SIGKILL)
    if stage == "at work":
        one._connection.setblocking(True)
        one._connection.sendall(worker._framed(worker.order(Program("import time\ntime.sleep(60)"))))
    one.close()
    assert descendants() == set()
    assert open_descriptors() == before


def test_it_is_asked_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_LIFETIME", 4)
    spent = []
    with started() as one:
        for program in (HONEST, Program("x = 1 / 0"), HONEST, HONEST):
            one.ask(program)
            spent.append(one.is_spent)
    assert spent == [False, False, False, True]


async def test_checks_that_use_up_their_time_are_the_programs_fault_and_the_end_of_the_worker(
    descendants: Callable[[], set[int]],
) -> None:
    best_level()
    with started() as one:
        execution = await one.run(BUSY_CHECKS)
        assert execution == Execution(Outcome.CPU_LIMIT, "more than 1 s of processor time in the checks", "")
        assert one.is_spent
    assert descendants() == set()


async def test_time_of_earlier_checks_does_not_count() -> None:
    checks = "import time\nstart = time.process_time()\nwhile time.process_time() < start + 1.1: pass\nassert f(1) == 2"
    async with Sandbox(Limits(cpu_s=2, memory_mib=256), workers=1) as sandbox:
        executions = [await sandbox.run(Program(HONEST.source, checks=checks)) for _ in range(3)]
        assert len(sandbox._idle) == 1
    assert executions == [RIGHT] * 3


def test_checks_that_are_no_python_are_no_fault_of_the_program() -> None:
    with started() as one, pytest.raises(OSError, match=r"setup or checks are no Python: .*line 1"):
        one.ask(Program("x = 1", checks="assert ("))


async def test_a_killed_worker_has_failed() -> None:
    with started() as one:
        os.kill(one._process.pid, signal.SIGKILL)
        with pytest.raises(OSError, match=r"the worker ended|Broken pipe|reset"):
            await one.run(HONEST)
        assert one.is_spent


async def test_one_that_takes_too_long_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    with started() as one:
        monkeypatch.setattr(worker, "_PATIENCE_S", 0.1 - SMALL.wall_s)
        with pytest.raises(TimeoutError):
            await one.run(Program("import time\ntime.sleep(60)"))
        assert one.is_spent


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import os, sys; os.read(0, 1 << 20); sys.exit('first\\nlast words\\n')", "the worker ended: last words"),
        ("import os; os.read(0, 1 << 20)", "the worker ended: it said nothing"),
        ("import os; os.read(0, 1 << 20); os.write(2, b'\\xff')", "the worker ended: \ufffd"),
        ("import sys; sys.exit('before it read')", "the worker ended: before it read"),
    ],
)
def test_its_last_words_are_told(monkeypatch: pytest.MonkeyPatch, script: str, words: str) -> None:
    genuine = worker.command
    monkeypatch.setattr(worker, "command", lambda entry: [genuine(entry)[0], "-c", script])
    one = Worker(best_level(), SMALL)
    try:
        with pytest.raises(OSError, match=f"^{words}$"):
            one.start()
    finally:
        one.close()


def test_one_that_cannot_be_started_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(worker, "command", lambda entry: ["/does/not/exist"])
    before = open_descriptors()
    with pytest.raises(FileNotFoundError):
        Worker("rlimit", SMALL)
    assert open_descriptors() == before
    assert list(tmp_path.iterdir()) == []


def test_a_level_that_needs_a_missing_program_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    orders._bubblewrap.cache_clear()
    with pytest.raises(UserError, match="bubblewrap is not installed"):
        Worker("full/bubblewrap", SMALL)


@pytest.mark.parametrize("sent", [b"", b"\x05", b"\x05\0\0\0abc"])
def test_half_a_report_is_none(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        theirs.close()
        assert worker._received(ours) == sent[4:]


async def test_a_report_arrives_whole_however_it_is_cut() -> None:
    with started() as one:
        ours, theirs = socket.socketpair()
        genuine, one._connection = one._connection, ours
        ours.setblocking(False)
        whole = asyncio.create_task(one._exactly(4))
        for byte in b"abcd":
            await asyncio.sleep(0)
            theirs.send(bytes([byte]))
        assert await whole == b"abcd"
        theirs.close()
        assert await one._exactly(1) == b""
        ours.close()
        one._connection = genuine


async def test_a_program_that_no_worker_takes_is_not_executable() -> None:
    async with Sandbox(SMALL, workers=1) as sandbox:
        execution = await sandbox.run(Program("x" * (65 << 20)))
        assert (await sandbox.run(Program("x = 1"))).outcome is Outcome.PASSED
    told = f"more than 64 MiB of source, {65 << 20} characters of it the program"
    assert execution == Execution(Outcome.NOT_EXECUTABLE, told, "")

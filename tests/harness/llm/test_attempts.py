"""The attempt log: what is noted, when it is written, and what becomes of it on a full disk."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.errors import UserError
from harness.llm import attempts as attempts_module
from harness.llm.attempts import AttemptLog


def lines(log: AttemptLog) -> list[dict[str, Any]]:
    content = log.path.read_bytes()
    assert content.endswith(b"\n") or not content
    return [orjson.loads(line) for line in content.splitlines()]


def note(log: AttemptLog, key: str) -> None:
    with log.measure(key, "url", 1):
        pass


def fail(log: AttemptLog, error: BaseException) -> None:
    with log.measure("key", "url", 1):
        raise error


async def test_every_attempt_is_noted_with_its_error(tmp_path: Path) -> None:
    log, before = AttemptLog(tmp_path / "attempts.jsonl"), time.time()
    with log.measure("key", "url", 1):
        await asyncio.sleep(0.02)
    error = ValueError("worse")
    error.__cause__ = OSError("bad")
    with pytest.raises(ValueError, match="worse"):
        fail(log, error)
    with pytest.raises(asyncio.CancelledError):
        fail(log, asyncio.CancelledError())
    assert lines(log) == []
    log.close()
    first, second, third = lines(log)
    assert (first["key"], first["endpoint"], first["attempt"], first["error"]) == ("key", "url", 1, None)
    assert first["latency_s"] >= 0.02
    assert before <= first["started"] <= time.time()
    assert [second["error"], third["error"]] == ["ValueError: worse: bad", "CancelledError: CancelledError"]
    assert log.failed == 1
    log.close()


async def test_attempts_are_written_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts_module, "FLUSH_S", 0.01)
    log = AttemptLog(tmp_path / "attempts.jsonl")
    for number in range(3):
        with log.measure(str(number), "url", 1):
            pass
        while len(lines(log)) <= number:
            await asyncio.sleep(0.01)
    log.close()
    assert [line["key"] for line in lines(log)] == ["0", "1", "2"]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[None]:
    """No file of this process may grow, as where the disk is full."""
    import signal

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


async def test_a_full_disk_is_told_to_the_next_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_disk: None
) -> None:
    monkeypatch.setattr(attempts_module, "FLUSH_S", 0.01)
    log = AttemptLog(tmp_path / "attempts.jsonl")
    with log.measure("key", "url", 1):
        pass
    while log._written is None or not log._written.done():
        await asyncio.sleep(0.01)
    with pytest.raises(UserError, match="cannot write"), log.measure("key", "url", 1):
        raise AssertionError("the attempt is not made")
    with pytest.raises(UserError, match="cannot write"):
        log.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(log._file)
    log.close()


@pytest.mark.parametrize("room", [0, 1, 150, 250])
async def test_what_did_not_fit_is_written_whole_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    log = AttemptLog(tmp_path / "attempts.jsonl")
    note(log, "first")
    log._write()
    write, left = os.write, room

    def limited(handle: int, data: bytes) -> int:
        nonlocal left
        if not left:
            raise OSError(28, "No space left on device")
        count = write(handle, data[:left])
        left -= count
        return count

    note(log, "second")
    note(log, "third")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", limited)
        with pytest.raises(UserError, match="No space left on device"):
            log._write()
    assert left == 0
    assert [line["key"] for line in lines(log)] == ["first"]
    note(log, "fourth")
    log.close()
    assert [line["key"] for line in lines(log)] == ["first", "second", "third", "fourth"]


@pytest.mark.parametrize("torn", [b"", b'{"key": "seco', b"{"])
@pytest.mark.parametrize("whole", [b"", b'{"key":"first"}\n'])
async def test_what_a_killed_process_wrote_of_a_line_is_cut_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, whole: bytes, torn: bytes
) -> None:
    path = tmp_path / "attempts.jsonl"
    path.write_bytes(whole + torn)
    log = AttemptLog(path)
    assert path.read_bytes() == whole
    assert caplog.messages == ([f"{path}: cut off an unfinished last line ({len(torn)} bytes)"] if torn else [])
    note(log, "third")
    log.close()
    assert [line["key"] for line in lines(log)] == [*(["first"] if whole else []), "third"]

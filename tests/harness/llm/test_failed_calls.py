"""Calls that ended in an error for good: counted, forgotten, asked again."""

import asyncio
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from harness.errors import UserError
from harness.llm import call_log
from harness.llm.call_log import CallLog, drop_errors, failed_calls
from harness.llm.request import Reply
from harness.places import DIGEST, Table
from tests.harness.llm.logged import answers, fill, keys, reply, request

FAILED = Reply.failed("some/model", "context too long")


async def test_errors_are_forgotten_and_answers_stay(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with CallLog(path) as log:
        await log.append(request("a"), reply("1"))
        await log.append(request("b"), FAILED)
    assert failed_calls(path) == 1
    assert drop_errors(path) == 1
    with CallLog(path) as log:
        assert log.get(request("a").key) == reply("1")
        assert log.get(request("b").key) is None
        assert len(log) == 1
    assert (failed_calls(path), drop_errors(path)) == (0, 0)


async def test_errors_in_sealed_logs_are_forgotten_too(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with CallLog(path) as log:
        await log.append(request("a"), reply("1"))
        await log.append(request("b"), FAILED)
        await log.append(request("c"), FAILED)
        log.seal(keys("ab"))
    assert failed_calls(path) == 2
    assert drop_errors(path) == 2
    with CallLog(path) as log:
        assert [log.get(request(text).key) for text in "abc"] == [reply("1"), None, None]
        assert len(log) == 1
        await log.append(request("c"), reply("2"))
        assert len(log) == 2
        with pytest.raises(UserError, match="lacks 1 calls"):
            log.seal(keys("ab"))
        log.seal(keys("a"))
    assert failed_calls(path) == 0
    assert answers(path, "abc") == {"a": "1", "c": "2"}


def test_while_somebody_writes_failures_are_counted_but_not_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, "a")
    with CallLog(path) as log:
        asyncio.run(log.append(request("b"), FAILED))
        with path.open("ab") as file:
            file.write(b'{"key": "be')
        assert failed_calls(path) == 1
        done: list[bool] = []
        with pytest.raises(UserError, match="is being written by"):
            drop_errors(path, before=lambda: done.append(True))
        assert done == []


class Many:
    """So many failed calls; remembers how much memory it took to name one of them."""

    def __init__(self, count: int) -> None:
        digests = np.array([number.to_bytes(31, "big") + b"\xff" for number in range(count)], DIGEST)
        self.table = Table(digests, np.arange(count))
        self.taken: list[int] = []

    def calls(self) -> Table:
        return self.table

    def has_failed(self, place: int) -> bool:
        now, peak = tracemalloc.get_traced_memory()
        if place:
            self.taken.append(peak - self.before)
        tracemalloc.reset_peak()
        self.before = now
        return True


def test_to_name_one_failed_call_the_others_are_not_copied() -> None:
    many = Many(5000)
    tracemalloc.start()
    try:
        found = call_log._failed([many])  # type: ignore[list-item]
    finally:
        tracemalloc.stop()
    assert found == [number.to_bytes(31, "big").hex() + "ff" for number in range(5000)]
    # All keys together are 160,000 bytes; what the list of the names grows by is in it.
    assert sorted(many.taken)[len(many.taken) // 2] < 2000

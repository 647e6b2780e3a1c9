"""Calls per second into a call log, out of it, and through its opening."""

import asyncio
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.llm.call_log import CallLog
from harness.llm.request import Message, Reply, Request
from tests.benchmarks.conftest import FEW, Measure

pytestmark = pytest.mark.timeout(3600)

APPENDED = 10_000
OPENED = 100_000
_PROMPT = "You are one of several who work on this question together. " * 20
_REPLY = "The answer follows from the second step, as was shown above. " * 10


def call(number: int, run: int = 0) -> tuple[Request, Reply]:
    """A call with one text that all share, and two of its own."""
    messages = (Message("system", _PROMPT), Message("user", f"{run} {number} {_PROMPT}"))
    return Request("some/model", "r1", messages), Reply(f"{run} {number} {_REPLY}", 300, 120, "stop", "some/model")


def append(path: Path, count: int, together: int, run: int = 0) -> None:
    async def appended(log: CallLog) -> None:
        for start in range(0, count, together):
            portion = [call(number, run) for number in range(start, min(count, start + together))]
            await asyncio.gather(*(log.append(*one) for one in portion))

    with CallLog(path) as log:
        asyncio.run(appended(log))
        assert len(log) == count


@pytest.mark.parametrize("together", [1, 64])
def test_append(together: int, benchmark: BenchmarkFixture, measure: Measure, tmp_path: Path) -> None:
    count = APPENDED if benchmark.enabled else FEW
    measure(benchmark, lambda run: append(tmp_path / str(run) / "calls.sqlite", count, together, run), count)


def test_opening_and_reading(benchmark: BenchmarkFixture, measure: Measure, tmp_path: Path) -> None:
    count = OPENED if benchmark.enabled else FEW
    append(tmp_path / "calls.sqlite", count, 64)

    def once(_: int) -> None:
        with CallLog(tmp_path / "calls.sqlite") as log:
            assert all(log.get(call(number)[0].key) for number in range(0, count, 100))

    measure(benchmark, once, count)

"""Calls per second into a call log, out of it, and through its opening.

With ``--benchmark-enable`` the sealed log holds a million calls; their texts are short, for opening reads none.
"""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.llm.call_log import CallLog
from harness.llm.log_lines import entry
from harness.llm.request import Message, Reply, Request
from harness.llm.running_log import RunningLog
from harness.llm.sealed_log import SealedFile, sealed_of
from harness.llm.sealing import write_sealed
from harness.places import merged
from tests.benchmarks.conftest import FEW, Measure

# A million calls are made first.
pytestmark = pytest.mark.timeout(3600)

APPENDED = 10_000
RUNNING = 100_000
SEALED = 1_000_000
READ = 2_000
_PORTION = 1000
_PROMPT = "You are one of several who work on this question together. " * 20
_REPLY = "The answer follows from the second step, as was shown above. " * 10


def call(number: int, run: int = 0, prompt: str = _PROMPT, answer: str = _REPLY) -> tuple[Request, Reply]:
    """A call with one text that all share, and two of its own."""
    messages = (Message("system", prompt), Message("user", f"{run} {number} {prompt}"))
    return Request("some/model", "r1", messages), Reply(f"{run} {number} {answer}", 300, 120, "stop", "some/model")


def fill(path: Path, count: int, prompt: str, answer: str) -> None:
    """A running log, written without an event loop."""
    log = RunningLog(path, is_owner=True)
    for start in range(0, count, _PORTION):
        numbers = range(start, min(count, start + _PORTION))
        log.write([entry(*call(number, 0, prompt, answer)) for number in numbers])
    log.close()


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A sealed log, and no running one."""
    path = tmp_path_factory.mktemp("sealed") / "calls.jsonl"
    fill(path, SEALED if request.config.getoption("--benchmark-enable") else FEW, "?", "!")
    log = RunningLog(path, is_owner=True)
    write_sealed(sealed_of(path), [log], merged([log.calls()]))
    log.close()
    path.unlink()
    return path


@pytest.mark.parametrize("together", [1, 64])
def test_append(together: int, benchmark: BenchmarkFixture, measure: Measure, tmp_path: Path) -> None:
    count = APPENDED if benchmark.enabled else FEW

    async def append(log: CallLog, run: int) -> None:
        for start in range(0, count, together):
            portion = [call(number, run) for number in range(start, min(count, start + together))]
            await asyncio.gather(*(log.append(*one) for one in portion))

    def once(run: int) -> None:
        with CallLog(tmp_path / str(run) / "calls.jsonl") as log:
            asyncio.run(append(log, run))
            assert len(log) == count

    measure(benchmark, once, count)


def test_opening_a_running_log(benchmark: BenchmarkFixture, measure: Measure, tmp_path: Path) -> None:
    count = RUNNING if benchmark.enabled else FEW
    fill(tmp_path / "calls.jsonl", count, _PROMPT, _REPLY)

    def once(_: int) -> None:
        with CallLog(tmp_path / "calls.jsonl") as log:
            assert len(log) == count

    measure(benchmark, once, count)


def test_opening_a_sealed_log(benchmark: BenchmarkFixture, measure: Measure, sealed: Path) -> None:
    count = SEALED if benchmark.enabled else FEW

    def once(_: int) -> None:
        with CallLog(sealed) as log:
            assert len(log) == count

    measure(benchmark, once, count)


def test_reading_a_sealed_log(benchmark: BenchmarkFixture, measure: Measure, sealed: Path) -> None:
    """At random; with a million calls hardly two that are asked for lie in one frame."""
    file = SealedFile(sealed_of(sealed))
    keys = file.calls().digests
    count = READ if benchmark.enabled else FEW

    def once(run: int) -> None:
        for at in np.random.default_rng(run).integers(0, len(keys), count).tolist():
            place = file.place(keys[at : at + 1].tobytes())
            assert place == at
            assert file.reply(place).text.endswith("!")

    measure(benchmark, once, count)
    file.close()

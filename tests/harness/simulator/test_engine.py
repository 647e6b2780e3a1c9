"""The modelled server: queueing and utilisation, against an independent schedule of the same sequences."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.simulator import engine as engine_module
from harness.simulator.engine import Engine
from harness.simulator.parameters import EngineParameters


class FixedTime(Engine):
    """Every sequence takes as many seconds as it has prompt tokens."""

    def seconds(self, prompt_tokens: int, completion_tokens: int) -> float:
        return float(prompt_tokens)


class Model:
    """Time that passes only where somebody sleeps; ``late_s`` is by how much every timer is late."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.now = 0.0
        self.late_s = late_s
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds + self.late_s, next(self._order), woken))
        await woken

    async def run(self, *work: asyncio.Task[float]) -> list[float]:
        while not all(one.done() for one in work):
            for _ in range(5):
                await asyncio.sleep(0)
            if self._sleepers:
                self.now, _, woken = heapq.heappop(self._sleepers)
                woken.set_result(None)
        return [one.result() for one in work]


@pytest.fixture
def model() -> Iterator[Model]:
    yield from modelled(Model())


def modelled(model: Model) -> Iterator[Model]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "time", model)
        patch.setattr(engine_module, "asyncio", model)
        yield model


async def ends(model: Model, engine: Engine, arrivals: list[tuple[int, int]]) -> list[float]:
    """When each of some sequences, given as arrival and length, is told to be done."""

    async def one(arrival: int, length: int) -> float:
        await model.sleep(arrival)
        await engine.occupy(length, 0)
        return model.now

    return await model.run(*[asyncio.create_task(one(*sequence)) for sequence in arrivals])


def test_time_follows_tokens_and_size() -> None:
    engine = Engine(10.0, EngineParameters(2, prefill_tokens_per_s_1b=1000.0, decode_tokens_per_s_1b=100.0))
    # 10 billion parameters: 100 prompt tokens and 10 completion tokens a second.
    assert engine.seconds(5, 0) == pytest.approx(0.05)
    assert engine.seconds(0, 1) == pytest.approx(0.1)
    assert engine.seconds(5, 1) == pytest.approx(0.15)


async def test_a_queue_of_equal_sequences(model: Model) -> None:
    engine = FixedTime(1.0, EngineParameters(2, 1.0, 1.0))
    assert await ends(model, engine, [(0, 3)] * 5) == [3, 3, 6, 6, 9]
    assert engine.report() == {
        "requests": 5,
        "concurrent_sequences": 2,
        "busy_sequence_s": 15.0,
        "span_s": 9.0,
        "utilisation": 15 / 18,
    }


async def test_a_pause_counts_as_idle(model: Model) -> None:
    engine = FixedTime(1.0, EngineParameters(1, 1.0, 1.0))
    assert await ends(model, engine, [(2, 3), (10, 5)]) == [5, 15]
    assert engine.report()["span_s"] == 13.0
    assert engine.report()["utilisation"] == 8 / 13


async def test_a_late_timer_delays_one_reply_and_not_those_behind_it() -> None:
    for model in modelled(Model(late_s=0.25)):
        engine = FixedTime(1.0, EngineParameters(1, 1.0, 1.0))
        assert await ends(model, engine, [(0, 1)] * 4) == [1.5, 2.5, 3.5, 4.5]
        assert engine.report()["span_s"] == 4.0
        assert engine.report()["utilisation"] == 1.0


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=12), st.integers(1, 4))
def test_first_come_is_first_served(arrivals: list[tuple[int, int]], places: int) -> None:
    """Against a schedule second by second."""
    arrivals = sorted(arrivals, key=lambda sequence: sequence[0])
    waiting, busy, expected = list(enumerate(arrivals)), dict[int, int](), [0] * len(arrivals)
    now = 0
    while waiting or busy:
        for number in [number for number, left in busy.items() if left == 0]:
            expected[number] = now
            del busy[number]
        while waiting and waiting[0][1][0] <= now and len(busy) < places:
            number, (_, length) = waiting.pop(0)
            busy[number] = length
        busy = {number: left - 1 for number, left in busy.items()}
        now += 1
    for model in modelled(Model()):
        engine = FixedTime(1.0, EngineParameters(places, 1.0, 1.0))
        assert asyncio.run(ends(model, engine, arrivals)) == expected
    span = max(expected) - arrivals[0][0]
    assert engine.report()["utilisation"] == pytest.approx(sum(length for _, length in arrivals) / (places * span))


def test_an_idle_engine_reports_nothing_in_use() -> None:
    assert Engine(3.0, EngineParameters(2, 1.0, 1.0)).report()["utilisation"] == 0.0

"""The limit of one process at one server."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.llm import retries
from harness.llm.limiter import PAUSE_S, Limiter
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ERROR, Kept, completion, request, served_at


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def full(most: int, clock: Clock | None = None) -> tuple[Limiter, list[int]]:
    """A limiter with all it allows in flight, and the rounds of the requests."""
    limiter = Limiter(most, clock or Clock())
    return limiter, [limiter.begin() for _ in range(most)]


def test_it_begins_with_all_that_is_allowed() -> None:
    limiter, _ = full(5)
    assert (limiter.limit, limiter.has_room) == (5, False)
    limiter.end()
    assert limiter.has_room


def test_a_round_of_refusals_shrinks_it_once() -> None:
    limiter, rounds = full(64)
    for its_round in rounds:
        limiter.refused(its_round)
        limiter.end()
    assert limiter.limit == 32
    later = [limiter.begin() for _ in range(20)]
    limiter.refused(rounds[0])
    assert limiter.limit == 32
    limiter.refused(later[0])
    assert limiter.limit == 10  # half of what was in flight, not of what was allowed


def test_it_grows_by_about_one_a_round_of_successes_up_to_where_it_began() -> None:
    limiter, rounds = full(16)
    limiter.refused(rounds[0])
    for _ in range(16 - 8):
        limiter.end()
    limits = []
    for _ in range(12):
        for _ in range(limiter.limit):
            limiter.succeeded()
            limiter.end()
            limiter.begin()
        limits.append(limiter.limit)
        while limiter.has_room:
            limiter.begin()
    # A little less than one: the limit grows within the round by which it is divided.
    assert limits == [8, 9, 10, 10, 11, 12, 12, 13, 14, 14, 15, 16]


def test_what_is_not_used_does_not_grow() -> None:
    limiter, rounds = full(16)
    limiter.refused(rounds[0])
    for _ in range(10):
        limiter.end()
    for _ in range(100):
        limiter.succeeded()
    assert (limiter.in_flight, limiter.limit) == (6, 8)


def test_trouble_stops_growth_for_a_while_and_shrinks_nothing() -> None:
    clock = Clock()
    limiter, rounds = full(16, clock)
    limiter.refused(rounds[0])
    limiter.troubled()
    clock.now = PAUSE_S - 0.01
    for _ in range(100):
        limiter.succeeded()
    assert limiter.limit == 8
    clock.now = PAUSE_S
    for _ in range(9):
        limiter.succeeded()
    assert limiter.limit == 9


@settings(deadline=None)
@given(
    most=st.integers(1, 40),
    events=st.lists(st.tuples(st.sampled_from(["begin", "good", "busy", "trouble", "tick"]), st.integers(0, 50))),
)
def test_whatever_happens_it_stays_between_one_and_the_most(most: int, events: list[tuple[str, int]]) -> None:
    clock = Clock()
    limiter = Limiter(most, clock)
    rounds: list[int] = []
    shrunk: Counter[int] = Counter()
    for event, which in events:
        before = limiter.limit
        if event == "begin" and limiter.has_room:
            rounds.append(limiter.begin())
        elif event == "tick":
            clock.now += which / 10
        elif rounds and event in ("good", "busy", "trouble"):
            its_round = rounds.pop(which % len(rounds))
            if event == "good":
                limiter.succeeded()
            elif event == "busy":
                limiter.refused(its_round)
                shrunk[its_round] += limiter.limit < before
            else:
                limiter.troubled()
            limiter.end()
        assert 1 <= limiter.limit <= most
        assert limiter.in_flight == len(rounds)
        assert limiter.limit <= before + 1
        assert limiter.limit <= before or event == "good"
    assert max(shrunk.values(), default=0) <= 1


@pytest.mark.parametrize("takes", [1, 6])
async def test_an_overloaded_server_is_met_at_what_it_takes(
    takes: int, make: Make, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that refuses all above a few; the calls are many, and all of them succeed."""
    monkeypatch.setattr(retries, "FIRST_DELAY_S", 0.01)
    now, refused, rounds = 0, 0, 40

    async def chat(http_request: web.Request) -> web.Response:
        nonlocal now, refused
        if now >= takes:
            refused += 1
            return web.json_response(ERROR, status=429)
        now += 1
        try:
            await asyncio.sleep(0.02)
            return web.json_response(completion())
        finally:
            now -= 1

    limits = []
    async with served_at(chat=chat) as url:
        client = make(None, url, max_in_flight=48)
        limiter = client._pools["m"].servers[0].limiter

        async def one(number: int) -> None:
            await client.complete("m", request(str(number)))
            limits.append(limiter.limit)

        await asyncio.gather(*(one(number) for number in range(takes * rounds)))
    assert [reply.error for reply in kept.replies] == [None] * takes * rounds
    settled = limits[len(limits) // 2 :]
    assert takes / 2 <= sum(settled) / len(settled) <= takes + 1
    # Some at the beginning, then one or two each time it tries for more.
    assert refused < 48 * 4 + 3 * rounds

"""The limit of one process at one server."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.llm import retries
from harness.llm.limiter import Limiter
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ERROR, Kept, completion, request, served_at


def full(most: int) -> Limiter:
    """A limiter with all it allows in flight."""
    limiter = Limiter(most)
    for _ in range(most):
        limiter.begin()
    return limiter


def succeed(limiter: Limiter, times: int) -> None:
    for _ in range(times):
        limiter.succeeded()
        limiter.end()
        limiter.begin()


def test_it_begins_with_all_that_is_allowed() -> None:
    limiter = full(5)
    assert (limiter.limit, limiter.has_room) == (5, False)
    limiter.end()
    assert limiter.has_room


def test_a_burst_of_refusals_leaves_what_the_server_took() -> None:
    limiter = full(64)
    for _ in range(60):
        limiter.refused()
        limiter.end()
        assert not limiter.has_room  # nobody else is sent to a server that has just refused
    assert (limiter.limit, limiter.in_flight) == (4, 4)
    for _ in range(10):
        limiter.refused()
    assert limiter.limit == 1


def test_it_grows_by_about_one_a_round_of_successes_up_to_where_it_began() -> None:
    limiter = full(16)
    for _ in range(8):
        limiter.refused()
        limiter.end()
    limits = []
    for _ in range(12):
        succeed(limiter, limiter.limit)
        limits.append(limiter.limit)
        while limiter.has_room:
            limiter.begin()
    # A little less than one: the limit grows within the round by which it is divided.
    assert limits == [8, 9, 10, 10, 11, 12, 12, 13, 14, 14, 15, 16]


def test_what_is_not_used_does_not_grow() -> None:
    limiter = full(16)
    for _ in range(8):
        limiter.refused()
    for _ in range(10):
        limiter.end()
    for _ in range(100):
        limiter.succeeded()
    assert (limiter.in_flight, limiter.limit) == (6, 8)


def test_trouble_stops_growth_until_successes_make_up_for_it_and_shrinks_nothing() -> None:
    limiter = full(16)
    for _ in range(8):
        limiter.refused()
        limiter.end()
    for _ in range(100):
        limiter.troubled()
    succeed(limiter, 100)
    assert limiter.limit == 8
    succeed(limiter, 9)
    assert limiter.limit == 9


def test_scattered_faults_leave_a_server_with_enough_to_do() -> None:
    """One attempt in twenty is refused whatever the load, and one in five fails otherwise: nobody is too busy."""
    limiter, limits = full(256), []
    for draw in np.random.default_rng(0).random(20_000):
        if draw < 0.05:
            limiter.refused()
        elif draw < 0.25:
            limiter.troubled()
        else:
            limiter.succeeded()
        limiter.end()
        while limiter.has_room:
            limiter.begin()
        limits.append(limiter.limit)
    assert sum(limits[-10_000:]) / 10_000 > 8


@settings(deadline=None)
@given(
    most=st.integers(1, 40),
    events=st.lists(st.sampled_from(["begin", "good", "busy", "trouble"])),
)
def test_whatever_happens_it_stays_between_one_and_the_most(most: int, events: list[str]) -> None:
    limiter, in_flight = Limiter(most), 0
    tell = {"good": limiter.succeeded, "busy": limiter.refused, "trouble": limiter.troubled}
    for event in events:
        before = limiter.limit
        if event == "begin":
            if limiter.has_room:
                limiter.begin()
                in_flight += 1
        elif in_flight:
            tell[event]()
            limiter.end()
            in_flight -= 1
        assert 1 <= limiter.limit <= most
        assert limiter.in_flight == in_flight
        assert before - 1 <= limiter.limit <= before + 1
        assert limiter.limit >= before or event == "busy"
        assert limiter.limit <= before or event == "good"


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

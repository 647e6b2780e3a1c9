"""How long an attempt may take where nothing says it: as long as the others make likely."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.llm import pace
from harness.llm.pace import Pace
from tests.harness.llm.conftest import Make, Tried
from tests.harness.llm.serving import ANSWER, Kept, completion, request, served_at

LATE = "no whole reply in time"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SHORTEST_S", 0.05)
    monkeypatch.setattr(pace, "_TIMES_THE_SLOWEST", 0.0)


def errors(tried: Tried) -> list[str]:
    return [error for _, error in tried() if error is not None]


@pytest.mark.usefixtures("short")
async def test_a_call_that_hangs_is_found_out_by_those_that_are_answered(make: Make, kept: Kept, tried: Tried) -> None:
    """It began before any answer told of the pace, and with the 600 s of then it would outlast this test."""
    hung = False

    async def chat(http: web.Request) -> web.Response:
        nonlocal hung
        if (await http.json())["messages"][0]["content"] == "hangs" and not hung:
            hung = True
            await asyncio.sleep(3600)
        return web.json_response(completion())

    async with served_at(chat=chat) as url:
        client = make(None, url, timeout_s=None)
        first = asyncio.create_task(client.complete("m", request("hangs")))
        while not hung:
            await asyncio.sleep(0.005)
        await asyncio.gather(*(client.complete("m", request(str(number))) for number in range(10)))
        async with asyncio.timeout(60):
            assert await first == ANSWER
    assert any(LATE in error for error in errors(tried))
    assert [reply.error for reply in kept.replies] == [None] * 11


@pytest.mark.usefixtures("short")
async def test_a_call_slower_than_the_pace_is_answered_all_the_same(make: Make, kept: Kept, tried: Tried) -> None:
    async def chat(http: web.Request) -> web.Response:
        if (await http.json())["messages"][0]["content"] == "slow":
            await asyncio.sleep(0.4)
        return web.json_response(completion())

    async with served_at(chat=chat) as url:
        client = make(None, url, timeout_s=None)
        for number in range(10):
            await client.complete("m", request(str(number)))
        assert await client.complete("m", request("slow")) == ANSWER
    assert any(LATE in error for error in errors(tried))
    assert [reply.error for reply in kept.replies] == [None] * 11


@settings(deadline=None)
@given(st.lists(st.floats(0, 2000), max_size=300), st.integers(1, 24))
def test_the_limit_is_three_times_the_slowest_of_the_last_answers_and_doubles(
    seconds: list[float], attempt: int
) -> None:
    one, stated = Pace(None), Pace(7.0)
    for took in seconds:
        one._learn(took, 0.0)
    base = 600.0 if len(seconds) < 10 else min(600.0, max(30.0, 3 * max(seconds[-200:])))
    assert one._allowed_s(attempt) == min(600.0, base * 2 ** (attempt - 1))
    assert stated._allowed_s(attempt) == 7.0
    # Whatever is answered within 600 s has its time at most of the attempts.
    assert one._allowed_s(6) == 600.0


async def test_limits_under_way_follow_the_pace() -> None:
    one = Pace(None)
    async with one.limited(1):
        ((limit, (began, _)),) = one._under_way.items()
        assert limit.when() == began + 600
        for took, expected in [(1.0, 30.0), (50.0, 150.0), (500.0, 600.0)]:
            for _ in range(10):
                one._learn(took, began)
            assert limit.when() == began + expected

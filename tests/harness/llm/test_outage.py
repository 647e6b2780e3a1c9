"""Servers that are gone for a while: what is waited for, what is said, and that nothing is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from harness.errors import UserError
from harness.llm import asking
from tests.harness.llm.conftest import Make, Tried
from tests.harness.llm.serving import ANSWER, ERROR, MODEL, Kept, completion, models, request, served_at

DEAD = "http://127.0.0.1:9/v1"
CALLS = 20


class Ill:
    """A server that answers, or meets everybody with a status; it lists its models all the while."""

    def __init__(self) -> None:
        self.status = 200
        self.asked = 0
        self.meets: Callable[[dict[str, Any]], int] = lambda body: self.status

    async def chat(self, http: web.Request) -> web.Response:
        self.asked += 1
        status = self.meets(await http.json())
        return web.json_response(completion() if status == 200 else ERROR, status=status)

    async def models(self, http: web.Request) -> web.Response:
        return web.json_response(models())


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts in an outage are so far apart that fewer are made than a call may have."""
    monkeypatch.setattr(asking, "FIRST_WAIT_S", 0.02)
    monkeypatch.setattr(asking, "MAX_WAIT_S", 0.1)


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_while_a_server_is_ill_calls_wait_and_nothing_is_recorded(
    status: int, make: Make, kept: Kept, tried: Tried, caplog: pytest.LogCaptureFixture
) -> None:
    server = Ill()
    async with served_at(server) as url:
        client = await make(url)
        await client.complete("m", request("before"))
        server.status = status
        calls = [asyncio.create_task(client.complete("m", request(str(number)))) for number in range(CALLS)]
        await until(lambda: len(tried()) > (asking.MAX_FAILURES + 2) * CALLS)
        assert len(kept.calls) == 1
        server.status = 200
        assert await asyncio.gather(*calls) == [ANSWER] * CALLS
    assert [reply.error for reply in kept.replies] == [None] * (CALLS + 1)
    first, last = (record.message for record in caplog.records if record.name == asking.__name__)
    assert first.startswith(f"m does not answer at {url} (")
    assert first.endswith("its calls wait until it does, for at most 10 minutes")
    assert last == "m answers again"


async def test_a_server_that_dies_and_comes_back_is_waited_for(make: Make, kept: Kept, tried: Tried) -> None:
    server = Ill()
    async with served_at(server) as url:
        pass
    client, port = await make(url), int(url.rsplit(":")[-1].split("/")[0])
    calls = [asyncio.create_task(client.complete("m", request(str(number)))) for number in range(CALLS)]
    await until(lambda: len(tried()) > 2 * CALLS)
    async with served_at(server, port):
        assert await asyncio.gather(*calls) == [ANSWER] * CALLS
    assert [reply.error for reply in kept.replies] == [None] * CALLS


@pytest.mark.parametrize("where", ["nobody listens", "errors"])
async def test_an_outage_that_lasts_stops_the_cell_and_nothing_is_recorded(
    where: str, make: Make, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "OUTAGE_S", 0.3)
    server = Ill()
    server.status = 500
    async with served_at(server) as url:
        client = await make(DEAD if where == "nobody listens" else url)
        calls = (client.complete("m", request(str(number))) for number in range(CALLS))
        errors = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(error) for error in errors} == {UserError}
    with pytest.raises(UserError, match=r"of m does not answer \(.*(Cannot connect|busy).*\); start the server"):
        raise errors[0]  # type: ignore[misc]
    assert kept.calls == []


async def test_trouble_with_one_call_is_no_outage(
    make: Make, kept: Kept, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "MAX_WAIT_S", 0.0)
    server = Ill()
    server.meets = lambda body: 500 if body["messages"][0]["content"] == "odd" else 200
    async with served_at(server) as url:
        client = await make(url)
        replies = await asyncio.gather(*(client.complete("m", request(text)) for text in ("odd", "even")))
    assert [reply.error is None for reply in replies] == [False, True]
    assert caplog.records == []


async def test_a_call_that_brings_its_server_down_each_time_is_recorded_in_the_end(
    make: Make, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "MAX_WAIT_S", 0.0)
    server = Ill()
    server.status = 500
    async with served_at(server) as url:
        reply = await (await make(url)).complete("m", request())
    assert kept.replies == [reply]
    assert reply.model == MODEL

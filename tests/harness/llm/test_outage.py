"""Servers that are gone for a while: what is waited for, what is said, and that nothing is recorded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from harness.concurrency import gather
from harness.errors import UserError
from harness.llm import client as client_module
from harness.llm import outage
from harness.llm.attempts import AttemptLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from harness.llm.retries import MAX_ATTEMPTS, MAX_ATTEMPTS_IN_OUTAGES
from harness.llm.servers import SILENT_AFTER
from tests.harness.llm.conftest import Make, Tried
from tests.harness.llm.serving import ANSWER, ERROR, MODEL, Kept, completion, models, request, served_at

DEAD = "http://127.0.0.1:9/v1"
# Of a server behind a proxy that lives; and of one whose keys or routes are gone for a moment.
STATUSES = [500, 502, 503, 401, 403, 404]


class Ill:
    """A server that answers, or meets everybody with a status; it lists its models all the while."""

    def __init__(self) -> None:
        self.status = 200
        self.calls = self.probes = 0
        self.meets: Callable[[dict[str, Any]], int] = lambda body: self.status

    async def chat(self, http: web.Request) -> web.Response:
        body = await http.json()
        if body["max_tokens"] == 1:
            self.probes += 1
        else:
            self.calls += 1
        status = self.meets(body)
        return web.json_response(completion() if status == 200 else ERROR, status=status)

    async def models(self, http: web.Request) -> web.Response:
        return web.json_response(models())


@asynccontextmanager
async def ill() -> AsyncIterator[tuple[Ill, str]]:
    server = Ill()
    async with served_at(chat=server.chat, models=server.models) as url:
        yield server, url


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the attempts after which a call slept."""
    numbers: list[int] = []
    monkeypatch.setattr(client_module, "delay_s", lambda key, number, wish: numbers.append(number) or 0.0)
    return numbers


@pytest.mark.parametrize("status", STATUSES)
async def test_while_a_server_is_ill_calls_wait_and_nothing_is_recorded(
    status: int, make: Make, kept: Kept, slept: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    async with ill() as (server, url):
        client = make(None, url, max_in_flight=8)
        await client.complete("m", request("before"))
        server.status = status
        calls = [asyncio.create_task(client.complete("m", request(str(number)))) for number in range(40)]
        await until(lambda: client._pools["m"].watch.is_out)
        await until(lambda: len(client._pools["m"]._line) == 40)
        tried, asked = server.calls, server.probes
        await until(lambda: server.probes >= asked + 10)
        # Who waits in line asks nothing, keeps no place from others, and sleeps no longer than it takes to come back.
        assert client._pools["m"].waiting_each == 0
        assert server.calls == tried
        assert len(kept.calls) == 1
        naps = len(slept)
        server.status = 200
        assert await asyncio.gather(*calls) == [ANSWER] * 40
    assert len(slept) == naps
    assert [reply.error for reply in kept.replies] == [None] * 41
    first, last = (record.message for record in caplog.records)
    assert first.startswith(f"m does not answer at {url} (")
    assert first.endswith("its calls wait until it does, for at most 10 minutes")
    assert last.startswith("m answers again after ")


async def test_in_an_outage_other_processes_have_the_places(make: Make, tmp_path: Path) -> None:
    async with ill() as (server, url):
        client = make(None, url, max_in_flight=8, slots=tmp_path / "slots")
        await client.complete("m", request("before"))
        [one] = client._pools["m"].servers
        slots = one._slots
        assert slots is not None
        server.status = 503
        calls = [asyncio.create_task(client.complete("m", request(str(number)))) for number in range(40)]
        await until(lambda: len(client._pools["m"]._line) == 40)
        await until(lambda: slots.held == 0)
        server.status = 200
        assert await asyncio.gather(*calls) == [ANSWER] * 40


async def test_a_server_that_dies_and_comes_back_is_waited_for(make: Make, kept: Kept) -> None:
    async with ill() as (server, url):
        pass
    client, port = make(None, url), int(url.rsplit(":")[-1].split("/")[0])
    calls = [asyncio.create_task(client.complete("m", request(str(number)))) for number in range(20)]
    await until(lambda: len(client._pools["m"]._line) == 20)
    async with served_at(port, chat=server.chat):
        assert await asyncio.gather(*calls) == [ANSWER] * 20
    assert [reply.error for reply in kept.replies] == [None] * 20


async def test_a_dead_server_stops_the_cell_in_the_end_and_nothing_is_recorded(
    make: Make, kept: Kept, tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outage, "OUTAGE_S", 0.0)
    client = make(None, DEAD)
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9/v1 of m does not answer .*Cannot connect.*start the server"):
        await client.complete("m", request())
    assert kept.calls == []
    assert all("Cannot connect" in (error or "") for _, error in tried())
    with pytest.raises(UserError, match="start the server"):
        await client.served("m", MODEL)


@pytest.mark.parametrize(("status", "said"), [(500, "does not answer .*busy"), (401, "refuses the API key of m")])
async def test_an_outage_that_lasts_stops_the_cell_and_nothing_is_recorded(
    status: int, said: str, make: Make, kept: Kept, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outage, "OUTAGE_S", 0.2)
    monkeypatch.setattr(outage, "_WARN_EVERY_S", 0.0)
    async with ill() as (server, url):
        client = make(None, url)
        await client.complete("m", request("before"))
        server.status = status
        calls = (client.complete("m", request(str(number))) for number in range(20))
        errors = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(error) for error in errors} == {UserError}
    with pytest.raises(UserError, match=said):
        raise errors[0]  # type: ignore[misc]
    assert len(kept.calls) == 1
    assert any(record.message.startswith("m has not answered for ") for record in caplog.records)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_one_refusal_of_a_run_that_works_is_an_attempt(
    status: int, make: Make, kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    async with ill() as (server, url):
        client = make(None, url)
        await client.complete("m", request("before"))
        server.meets = lambda body: status if server.calls == 2 else 200
        assert await client.complete("m", request()) == ANSWER
    assert (server.calls, server.probes) == (3, 0)
    assert caplog.records == []


async def test_an_outage_that_meets_a_last_attempt_is_none_of_the_call(make: Make, kept: Kept) -> None:
    """The call has had its own bad luck before; what it meets last says nothing of it."""
    async with ill() as (server, url):
        server.meets = lambda body: 200 if body["max_tokens"] == 1 and server.calls < MAX_ATTEMPTS else 500
        client = make(None, url)
        call = asyncio.create_task(client.complete("m", request()))
        await until(lambda: len(client._pools["m"]._line) == 1)
        assert server.calls == MAX_ATTEMPTS
        server.meets = lambda body: 200
        assert await call == ANSWER
    assert kept.replies == [ANSWER]


async def test_a_call_that_brings_its_server_down_each_time_is_recorded_in_the_end(make: Make, kept: Kept) -> None:
    down = 0

    def meets(body: dict[str, Any]) -> int:
        nonlocal down
        down = 3 if body["max_tokens"] > 1 else max(0, down - 1)
        return 500 if down else 200

    async with ill() as (server, url):
        server.meets = meets
        reply = await make(None, url).complete("m", request())
    assert kept.replies == [reply]
    assert reply.error is not None
    assert MAX_ATTEMPTS <= server.calls <= MAX_ATTEMPTS_IN_OUTAGES


class Looping(Ill):
    """Answers one token, and is down again with the first call; counts how often, and is whole after so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times, self.crashes, self._down = times, 0, 0
        self.meets = self.crash

    def crash(self, body: dict[str, Any]) -> int:
        if body["max_tokens"] == 1:
            self._down = max(0, self._down - 1)
        elif self._down or self.crashes < self.times:
            self.crashes += not self._down
            self._down = 3
        return 500 if self._down else 200


async def test_a_server_that_dies_again_and_again_stops_the_cell_and_nothing_is_recorded(
    make: Make, kept: Kept
) -> None:
    server = Looping(1000)
    async with served_at(chat=server.chat, models=server.models) as url:
        client = make(None, url, max_in_flight=8)
        with pytest.raises(UserError, match=r"of m does not answer .*start the server"):
            await gather(client.complete("m", request(str(number))) for number in range(8))
    assert kept.calls == []
    assert 1 < server.crashes <= MAX_ATTEMPTS_IN_OUTAGES


async def test_attempts_lost_to_a_server_that_dies_again_and_again_do_not_count(make: Make, kept: Kept) -> None:
    """Afterwards a call has its own bad luck, as often as any other may have it."""
    server = Looping(3)
    async with served_at(chat=server.chat, models=server.models) as url:
        client = make(None, url, max_in_flight=8)
        texts = [str(number) for number in range(8)]
        left = dict.fromkeys(texts, MAX_ATTEMPTS - 1)

        def meets(body: dict[str, Any]) -> int:
            status, text = server.crash(body), body["messages"][0]["content"]
            if status == 200 and body["max_tokens"] > 1 and left[text]:
                left[text] -= 1
                return 500
            return status

        server.meets = meets
        assert await asyncio.gather(*(client.complete("m", request(text)) for text in texts)) == [ANSWER] * 8
    assert server.crashes == 3
    assert [reply.error for reply in kept.replies] == [None] * 8


async def test_an_attempt_that_hung_in_an_outage_has_met_that_one(make: Make) -> None:
    watch = make(None, DEAD)._pools["m"].watch
    before = watch.trouble
    before.is_outage = True
    assert watch.unanswered("a", before) is before
    watch.answered()
    assert not before.is_shared_outage
    assert watch.unanswered("b", before) is before
    assert before.is_shared_outage
    assert watch.unanswered("c", watch.trouble) is watch.trouble is not before


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_refusal_of_the_very_first_calls_is_an_attempt_where_an_answer_follows(
    status: int, make: Make, kept: Kept
) -> None:
    async with ill() as (server, url):
        server.meets = lambda body: status if server.calls < SILENT_AFTER else 200
        assert await make(None, url).complete("m", request()) == ANSWER
    assert (server.calls, server.probes) == (SILENT_AFTER, 0)
    assert kept.replies == [ANSWER]


async def test_a_hiccup_that_all_first_calls_meet_at_once_is_an_attempt_of_each(make: Make, kept: Kept) -> None:
    met: set[str] = set()

    def meets(body: dict[str, Any]) -> int:
        text = body["messages"][0]["content"]
        status = 200 if text in met else 401
        met.add(text)
        return status

    async with ill() as (server, url):
        server.meets = meets
        client = make(None, url, max_in_flight=8)
        assert await gather(client.complete("m", request(str(number))) for number in range(8)) == [ANSWER] * 8
    assert (server.calls, server.probes, kept.replies) == (16, 0, [ANSWER] * 8)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_refusal_of_all_first_calls_stops_the_cell_without_an_outage(
    status: int, make: Make, kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    async with ill() as (server, url):
        server.status = status
        client = make(None, url)
        calls = (client.complete("m", request(str(number))) for number in range(8))
        errors = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 30)
    assert {type(error) for error in errors} == {UserError}
    assert (server.probes, kept.calls, caplog.records) == (0, [], [])


async def test_a_model_that_is_gone_from_a_server_that_answers_for_another(kept: Kept, attempts: AttemptLog) -> None:
    async with ill() as (server, url):
        server.meets = lambda body: server.status if body["model"] == MODEL else 200

        async def chat(http: web.Request) -> web.Response:
            body = await http.json()
            status = server.meets(body)
            return web.json_response(completion(model=body["model"]) if status == 200 else ERROR, status=status)

        async with served_at(chat=chat) as url:
            endpoints = dict.fromkeys(["m", "other"], Endpoint((url,)))
            async with ChatClient(endpoints, kept, attempts) as client:  # type: ignore[arg-type]
                server.status = 503
                call = asyncio.create_task(client.complete("m", request()))
                count = 0
                while not client._pools["m"]._line:
                    count += 1
                    other = request(str(count))
                    await client.complete("other", other.__class__("other/model", None, other.messages))
                server.status = 200
                assert await call == ANSWER
    assert all(reply.error is None for reply in kept.replies)


async def test_trouble_with_one_call_is_no_outage(make: Make, kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    async with ill() as (server, url):
        server.meets = lambda body: 500 if body["messages"][0]["content"] == "odd" and body["max_tokens"] > 1 else 200
        client = make(None, url)
        replies = await asyncio.gather(*(client.complete("m", request(text)) for text in ("odd", "even", "odder")))
    assert [reply.error is None for reply in replies] == [False, True, True]
    assert server.calls == MAX_ATTEMPTS + 2
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []

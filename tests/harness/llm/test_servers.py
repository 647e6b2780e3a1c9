"""Several servers of one backbone, several backbones at one server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from harness.errors import UserError
from harness.llm import outage
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from harness.llm.servers import SILENT_AFTER
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ANSWER, ERROR, MODEL, Kept, completion, models, request, served_at

DEAD = "http://127.0.0.1:9/v1"


class Counting:
    """A server that notes who asks it and how many do at once."""

    def __init__(self, seconds: float = 0.0, status: int = 200, **changes: Any) -> None:
        self.seconds, self.status, self.changes = seconds, status, changes
        self.now = self.most = 0
        self.asked: list[dict[str, Any]] = []
        self.holds: Callable[[], bool] = lambda: False

    async def chat(self, http_request: web.Request) -> web.Response:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            self.asked.append(await http_request.json())
            await asyncio.sleep(self.seconds)
            if self.asked[-1]["max_tokens"] == 1:
                self.asked.pop()
                return web.json_response(completion())
            while self.holds():
                await asyncio.sleep(0.01)
            return web.json_response(completion() if self.status == 200 else ERROR, status=self.status)
        finally:
            self.now -= 1

    async def models(self, http_request: web.Request) -> web.Response:
        return web.json_response(models(**self.changes))


@asynccontextmanager
async def all_at(*counting: Counting) -> AsyncIterator[list[str]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(served_at(chat=one.chat, models=one.models)) for one in counting]


async def test_calls_go_to_the_least_loaded_server(make: Make) -> None:
    quick, slow = Counting(0.01), Counting()
    slow.holds = lambda: len(quick.asked) < 48
    async with all_at(slow, quick) as urls:
        client = make(None, *urls, max_in_flight=4)
        await asyncio.gather(*(client.complete("m", request(str(number))) for number in range(60)))
    assert (quick.most, slow.most) == (4, 4)
    assert len(quick.asked) + len(slow.asked) == 60
    assert len(quick.asked) >= 48


async def test_few_calls_are_spread(make: Make) -> None:
    both = Counting(0.05), Counting(0.05)
    async with all_at(*both) as urls:
        client = make(None, *urls)
        await asyncio.gather(*(client.complete("m", request(str(number))) for number in range(10)))
    assert [len(one.asked) for one in both] == [5, 5]


async def test_a_retry_goes_to_another_server_with_the_same_request(make: Make, kept: Kept) -> None:
    broken, whole = Counting(status=500), Counting()
    async with all_at(broken, whole) as urls:
        client = make(None, *urls)
        for number in range(5):
            assert await client.complete("m", request(str(number))) == ANSWER
    assert whole.asked == [request(str(number)).body() for number in range(5)]
    # As one that is silent, it is left alone then.
    assert broken.asked == whole.asked[:SILENT_AFTER]
    assert [request.key for request, _ in kept.calls] == [request(str(number)).key for number in range(5)]


async def test_where_all_fail_a_call_is_tried_twelve_times_in_all(make: Make, kept: Kept) -> None:
    both = Counting(status=500), Counting(status=500)
    async with all_at(*both) as urls:
        assert (await make(None, *urls).complete("m", request())).error is not None
    assert [len(one.asked) for one in both] == [6, 6]
    assert len(kept.calls) == 1


async def test_a_dead_server_beside_a_living_one_costs_a_few_attempts(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    living = Counting(0.005)
    async with all_at(living) as urls:
        client = make(None, DEAD, *urls, max_in_flight=2)
        dead = client._pools["m"].servers[0]
        for number in range(30):
            assert await client.complete("m", request(str(number))) == ANSWER
        assert dead._unanswered == SILENT_AFTER
        assert len(living.asked) == 30
        dead.answered()
    assert [record.message for record in caplog.records] == [
        f"{DEAD} does not answer; calls go to the others",
        f"{DEAD} answers again",
    ]


async def test_a_server_that_was_silent_is_tried_now_and_then(make: Make) -> None:
    first, second = Counting(), Counting()
    async with all_at(first, second) as urls:
        client = make(None, *urls)
        server = client._pools["m"].servers[0]
        server._unanswered, server._next_probe = SILENT_AFTER, float("inf")
        await asyncio.gather(*(client.complete("m", request(str(number))) for number in range(10)))
        assert (len(first.asked), len(second.asked)) == (0, 10)
        server._next_probe = 0.0
        await asyncio.gather(*(client.complete("m", request(str(number))) for number in range(10, 20)))
        assert len(first.asked) == 1
        await asyncio.gather(*(client.complete("m", request(str(number))) for number in range(20, 30)))
        assert len(first.asked) == 6


async def test_where_all_are_silent_all_are_tried(make: Make, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "OUTAGE_S", 0.0)
    client = make(None, DEAD, "http://127.0.0.1:10/v1")
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9/v1, http://127\.0\.0\.1:10/v1 of m does not answer"):
        await client.complete("m", request())
    assert [server._unanswered >= SILENT_AFTER for server in client._pools["m"].servers] == [True, True]
    assert kept.calls == []


async def test_servers_of_a_backbone_have_to_serve_the_same(make: Make) -> None:
    async with all_at(Counting(), Counting(revision="r2"), Counting()) as urls:
        with pytest.raises(
            UserError, match=rf"of m are not alike: revision is 'r1' at {urls[0]} and 'r2' at {urls[1]}"
        ):
            await make(None, *urls).served("m", MODEL)
        found = await make(None, urls[0], urls[2]).served("m", MODEL)
        assert (found.revision, found.owned_by) == ("r1", "simulated")
    async with all_at(Counting(), Counting(owned_by="vllm")) as urls:
        with pytest.raises(UserError, match="owned_by is 'simulated' at"):
            await make(None, *urls).served("m", MODEL)
    async with all_at(Counting(), Counting(id="other/model")) as urls:
        with pytest.raises(UserError, match=r"does not serve 'some/model' \(it serves other/model\)"):
            await make(None, *urls).served("m", MODEL)


async def test_a_server_that_is_down_at_the_start_is_left_out(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    async with all_at(Counting()) as urls:
        client = make(None, DEAD, *urls)
        assert (await client.served("m", MODEL)).revision == "r1"
        await asyncio.gather(*(client.complete("m", request(str(number))) for number in range(20)))
        assert [server.url for server in client._pools["m"].servers] == urls
    assert f"{DEAD} of m does not answer" in caplog.text
    assert "this job does without it" in caplog.text


async def test_a_holder_and_one_who_waits_can_give_up_together(make: Make) -> None:
    async with all_at(Counting(seconds=60)) as urls:
        pool = make(None, *urls, max_in_flight=1)._pools["m"]
        holding = await pool.enter()
        waiting = [asyncio.create_task(pool.enter()) for _ in range(2)]
        await asyncio.sleep(0)
        for one in waiting:
            one.cancel()
        holding.end()
        assert [type(one) for one in await asyncio.gather(*waiting, return_exceptions=True)] == [
            asyncio.CancelledError,
            asyncio.CancelledError,
        ]
        assert pool.waiting_each == 0
        (await asyncio.wait_for(pool.enter(), 5)).end()


async def test_a_key_that_is_not_set_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GMR_TEST_KEY", raising=False)
    endpoints = {"m": Endpoint((DEAD,)), "n": Endpoint(("http://127.0.0.1:10/v1",), "GMR_TEST_KEY")}
    for _ in range(2):
        with pytest.raises(UserError, match="set the environment variable GMR_TEST_KEY"):
            ChatClient(endpoints, log=Kept(), attempts=None, slots=tmp_path)  # type: ignore[arg-type]


async def test_backbones_at_one_url_share_its_limit_and_take_turns(kept: Kept, make: Make) -> None:
    server = Counting(0.01)
    async with all_at(server) as urls:
        attempts = make(None, *urls)._attempts
        endpoints = dict.fromkeys(["a", "b"], Endpoint((urls[0],), max_in_flight=3))
        async with ChatClient(endpoints, kept, attempts) as client:  # type: ignore[arg-type]
            calls = [client.complete("a", request(f"a{number}")) for number in range(30)]
            calls += [client.complete("b", request(f"b{number}")) for number in range(30)]
            await asyncio.gather(*calls)
    assert server.most == 3
    first_half = [body["messages"][0]["content"][0] for body in server.asked[:30]]
    assert 10 <= first_half.count("b") <= 20


@pytest.mark.parametrize("when", ["waiting", "just let in"])
async def test_who_gives_up_while_waiting_leaves_no_trace(when: str, make: Make) -> None:
    client = make(None, DEAD, max_in_flight=1)
    pool = client._pools["m"]
    holding = await pool.enter()
    waiting = asyncio.create_task(pool.enter())
    await asyncio.sleep(0)
    if when == "just let in":
        holding.end()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    if when == "waiting":
        assert holding.limiter.in_flight == 1
        holding.end()
    assert (holding.limiter.in_flight, pool.waiting_each) == (0, 0)
    assert await asyncio.wait_for(pool.enter(), 1) is holding

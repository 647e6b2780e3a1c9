"""Several servers of one backbone, several backbones at one server."""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import pytest
from aiohttp import web

from harness.errors import UserError
from harness.llm.attempts import AttemptLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from harness.llm.servers import http_client
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ERROR, MODEL, Kept, Scripted, request, served_at

DEAD = "http://127.0.0.1:9/v1"


class Counting(Scripted):
    """A server that counts how many ask at once."""

    now = most = 0

    async def chat(self, http: web.Request) -> web.StreamResponse:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        return await super().chat(http)


async def test_servers_take_turns(make: Make) -> None:
    both = Scripted(), Scripted()
    client = await make(*both)
    await asyncio.gather(*(client.complete("m", request(str(number))) for number in range(10)))
    assert [len(one.asked) for one in both] == [5, 5]


async def test_a_call_that_failed_at_one_server_is_answered_by_another(make: Make, kept: Kept) -> None:
    broken, whole = Scripted(*[(500, ERROR)] * 1000), Scripted()
    client = await make(broken, DEAD, whole)
    for number in range(4):
        assert (await client.complete("m", request(str(number)))).error is None
    assert len(whole.asked) == 4


async def test_servers_of_a_backbone_have_to_serve_the_same(make: Make) -> None:
    async def served(**entry: Any) -> Any:
        return await (await make(Scripted(), Scripted(**entry))).served("m", MODEL)

    assert (await served()).revision == "r1"
    with pytest.raises(UserError, match=r"of m are not alike: revision is 'r1' at .* and 'r2' at"):
        await served(revision="r2")
    with pytest.raises(UserError, match="owned_by is 'simulated' at"):
        await served(owned_by="vllm")
    with pytest.raises(UserError, match=r"does not serve 'some/model' \(it serves other/model\)"):
        await served(id="other/model")


async def test_a_server_that_is_down_at_the_start_is_left_out(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    living = Scripted()
    client = await make(DEAD, living)
    assert (await client.served("m", MODEL)).revision == "r1"
    assert f"{DEAD} of m does not answer" in caplog.text
    assert "this job does without it" in caplog.text
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9/v1 of m does not answer .*Cannot connect.*start the server"):
        await (await make(DEAD)).served("m", MODEL)


async def test_backbones_at_one_url_share_its_limit(kept: Kept, attempts: AttemptLog) -> None:
    server = Counting()
    async with served_at(server) as url:
        endpoints = dict.fromkeys(["a", "b"], Endpoint((url,), max_in_flight=3))
        async with ChatClient(endpoints, kept, attempts) as client:  # type: ignore[arg-type]
            calls = [client.complete(key, request(f"{key}{number}")) for number in range(10) for key in "ab"]
            await asyncio.gather(*calls)
    assert server.most == 3
    assert len(server.asked) == 20


async def test_open_files_are_allowed_where_there_are_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limit: found.append(limit))
    for connections in (64, 5 * 256):
        await http_client(connections).aclose()
    assert found == [(5 * 256 + 256, 4096)]
    with pytest.raises(UserError, match=r"up to 4000 connections, but a process may open 4096 files.*ulimit -Hn"):
        http_client(4000)

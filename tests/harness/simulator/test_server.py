from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestClient, TestServer

from harness.simulator import SimulatedEndpoint
from harness.simulator.parameters import EngineParameters
from harness.simulator.server import Manners, application

from .samples import Questions, request_for

FAST = EngineParameters(concurrent_sequences=2, prefill_tokens_per_s_1b=1e9, decode_tokens_per_s_1b=1e5)


@pytest.fixture
async def client(endpoint: SimulatedEndpoint) -> AsyncIterator[TestClient]:
    async with TestClient(TestServer(application(endpoint))) as made:
        yield made


async def test_the_same_body_as_in_process(
    client: TestClient, endpoint: SimulatedEndpoint, pools: dict[str, Questions]
):
    items = [item for pool in pools.values() for item in pool.pool[:6]]
    requests = [request_for(item, backbone) for item in items for backbone in ("llama-3.2-3B", "qwen-2.5-32B")]

    async def over_http(request: dict) -> tuple[int, dict]:
        async with client.post("/v1/chat/completions", json=request) as response:
            return response.status, await response.json()

    assert await asyncio.gather(*map(over_http, requests)) == [endpoint.chat(request) for request in requests]


async def test_models_and_health(client: TestClient, endpoint: SimulatedEndpoint):
    async with client.get("/v1/models") as response:
        assert await response.json() == endpoint.models()
    async with client.get("/health") as response:
        assert response.status == 200
    async with client.get("/engine") as response:
        assert await response.json() == {}


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"model": "nobody", "messages": []}', b"\xff"])
async def test_bad_requests_get_an_error_body(client: TestClient, body: bytes):
    async with client.post("/v1/chat/completions", data=body) as response:
        assert response.status in {400, 404}
        assert (await response.json())["error"]["message"]


async def test_a_timed_server_replies_the_same_and_reports(endpoint: SimulatedEndpoint, pools: dict[str, Questions]):
    async with TestClient(TestServer(application(endpoint, Manners(FAST)))) as client:
        requests = [request_for(item) for item in pools["gsm_hard"].pool[:8]]

        async def over_http(request: dict) -> dict:
            async with client.post("/v1/chat/completions", json=request) as response:
                return await response.json()

        bodies = await asyncio.gather(*map(over_http, requests))
        assert bodies == [endpoint.chat(request)[1] for request in requests]
        async with client.get("/engine") as response:
            report = (await response.json())["qwen-2.5-14B"]
        assert report["requests"] == 8
        assert 0 < report["utilisation"] <= 1


async def test_random_delays_change_no_reply(endpoint: SimulatedEndpoint, pools: dict[str, Questions]):
    async with TestClient(TestServer(application(endpoint, Manners(latency_s=0.01)))) as client:
        for item in pools["gsm_hard"].pool[:4]:
            async with client.post("/v1/chat/completions", json=request_for(item)) as response:
                assert await response.json() == endpoint.chat(request_for(item))[1]

"""The endpoint behind a socket."""

import asyncio
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from harness.benchmarks.items import Item
from harness.simulator.endpoint import SimulatedEndpoint
from harness.simulator.server import application

from .samples import request_for


async def test_the_same_bodies_as_in_process(endpoint: SimulatedEndpoint, questions: dict[str, list[Item]]) -> None:
    requests: list[Any] = [request_for(item) for item in questions["gsm_hard"][:6]]
    requests += [{**requests[0], "model": "nobody"}, ["no object"]]

    async def over_http(request: Any) -> tuple[int, Any]:
        async with client.post("/v1/chat/completions", json=request) as response:
            return response.status, await response.json()

    async with TestClient(TestServer(application(endpoint))) as client:
        found = await asyncio.gather(*map(over_http, requests))
        assert found == [endpoint.chat(request) for request in requests]
        async with client.get("/v1/models") as response:
            assert await response.json() == endpoint.models()
        async with client.post("/v1/chat/completions", data="{") as response:
            assert response.status == 400

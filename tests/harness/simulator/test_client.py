"""What the client of a cell gets from simulated backbones, in process and over HTTP."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import get_args

import openai._base_client
import pytest
from aiohttp.test_utils import TestServer

from harness.llm import asking
from harness.llm.call_log import AttemptLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from harness.llm.request import Message, Request
from harness.simulator import SimulatedEndpoint
from harness.simulator.faults import Faults, Kind
from harness.simulator.server import Manners, application
from tests.harness.llm.serving import Kept

from .samples import Questions


async def test_a_client_gets_the_replies_of_a_server_without_faults(
    endpoint: SimulatedEndpoint, pools: dict[str, Questions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kind of fault, at nine of ten attempts; and over HTTP what the process itself would have answered."""
    monkeypatch.setattr(asking, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.0)
    shares = dict.fromkeys(get_args(Kind), 0.9 / len(get_args(Kind)))
    server = TestServer(application(endpoint, Manners(faults=Faults(shares=shares, hang_s=0.05, retry_after_s=0))))
    models = [one.model for one in endpoint.world.backbones]
    requests = [
        Request(model, endpoint.revision, (Message("user", item.question),), max_tokens=limit)
        for item in pools["gsm_hard"].pool[:4]
        for model in models
        for limit in (2048, 20)
    ]
    requests.append(dataclasses.replace(requests[0], messages=(Message("user", "too long " * 200_000),)))
    kept, attempts = Kept(), AttemptLog(tmp_path / "attempts.jsonl")
    await server.start_server()
    async with ChatClient({"m": Endpoint(url=f"{server.make_url('/v1')}")}, kept, attempts) as client:  # type: ignore[arg-type]
        assert await client.served("m", models[0]) == endpoint.served(models[0])
        replies = await asyncio.gather(*(client.complete("m", request) for request in requests))
    await server.close()
    attempts.close()
    assert replies == [endpoint.complete(request) for request in requests]
    assert {reply.finish_reason for reply in replies} == {"stop", "length", "error"}
    assert "maximum context length" in str(replies[-1].error)
    assert attempts.failed > len(requests)

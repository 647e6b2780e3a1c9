"""A server that misbehaves when it is asked to: how often, how, and that a client gets over it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import openai._base_client
import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from harness.files import ROOT
from harness.llm import asking
from harness.llm.attempts import AttemptLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from harness.llm.request import Message, Request
from harness.simulator import SimulatedEndpoint
from harness.simulator.faults import LAST_FAULTY_ATTEMPT, Fault, FaultCounter, Faults, load_faults
from harness.simulator.server import Manners, application
from tests.harness.llm.serving import Kept

from .samples import Questions, request_for


def test_shares_are_met_and_draws_are_fixed_by_request_attempt_and_seed() -> None:
    faults = Faults({Fault.SERVER_ERROR: 0.1, Fault.RESET: 0.05})
    met = Counter(faults.at(f"request {number}", attempt) for number in range(4000) for attempt in (1, 2, 3))
    assert met[Fault.SERVER_ERROR] / 12000 == pytest.approx(0.1, abs=0.01)
    assert met[Fault.RESET] / 12000 == pytest.approx(0.05, abs=0.008)
    assert set(met) == {None, Fault.SERVER_ERROR, Fault.RESET}
    first, again, other = (
        [Faults({Fault.RESET: 0.5}, seed).at(f"request {number}", 1) for number in range(64)] for seed in (0, 0, 1)
    )
    assert first == again != other


@settings(deadline=None)
@given(st.text(), st.integers(0, 5), st.integers(1, 30))
def test_every_fault_passes_within_twelve_attempts(identity: str, seed: int, in_a_row: int) -> None:
    counter = FaultCounter(Faults({Fault.SERVER_ERROR: 1.0}, seed, in_a_row))
    met = [counter.next(identity) for _ in range(LAST_FAULTY_ATTEMPT + 1)]
    assert met == [Fault.SERVER_ERROR] * LAST_FAULTY_ATTEMPT + [None]


def test_bursts_are_of_the_length_asked_for() -> None:
    faults = Faults({Fault.SERVER_ERROR: 0.5}, in_a_row=3)
    for number in range(100):
        met = [faults.at(f"request {number}", attempt) for attempt in range(1, 10)]
        assert [len(set(met[start : start + 3])) for start in (0, 3, 6)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "'shares' is a required property"),
        ("shares: {resets: 0.1}", "did you mean 'reset'"),
        ("shares: {reset: 1.5}", "greater than the maximum"),
        ("shares: {reset: 0.6, hang: 0.6}", r"add up to 1\.2; expected at most 1"),
        ("shares: {}\nhang_s: 0", "hang_s"),
    ],
)
def test_a_malformed_file_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        load_faults(path)


def test_the_file_of_this_project_has_every_kind() -> None:
    faults = load_faults(ROOT / "config" / "faults.yaml")
    assert set(faults.shares) == set(Fault)
    assert faults.shares[Fault.SERVER_ERROR] == 0.1


@asynccontextmanager
async def failing(endpoint: SimulatedEndpoint, fault: Fault) -> AsyncIterator[TestClient[Any, Any]]:
    manners = Manners(faults=Faults({fault: 1.0}, hang_s=0.2, retry_after_s=7))
    async with TestClient(TestServer(application(endpoint, manners))) as client:
        yield client


async def answer(client: TestClient[Any, Any], body: dict[str, Any]) -> tuple[int, bytes, Mapping[str, str]]:
    async with client.post("/v1/chat/completions", json=body) as response:
        return response.status, await response.read(), response.headers


@pytest.fixture
def asked(pools: dict[str, Questions]) -> dict[str, Any]:
    request: dict[str, Any] = request_for(pools["gsm_hard"].pool[0])
    return request


async def test_damaged_answers(endpoint: SimulatedEndpoint, asked: dict[str, Any]) -> None:
    good = endpoint.chat(asked)[1]
    found: dict[Fault, list[Any]] = {}
    for fault in (Fault.SERVER_ERROR, Fault.RATE_LIMIT, Fault.MALFORMED, Fault.NO_USAGE, Fault.WRONG_MODEL):
        async with failing(endpoint, fault) as client:
            *found[fault], headers = await answer(client, asked)
        assert headers.get("Retry-After") == ("7" if fault is Fault.RATE_LIMIT else None)
    assert found[Fault.SERVER_ERROR][0] == 500
    assert found[Fault.RATE_LIMIT][0] == 429
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(found[Fault.MALFORMED][1])
    without = {key: value for key, value in good.items() if key != "usage"}
    assert [200, without] == [found[Fault.NO_USAGE][0], orjson.loads(found[Fault.NO_USAGE][1])]
    assert orjson.loads(found[Fault.WRONG_MODEL][1]) == {**good, "model": "another/model"}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.RESET, (aiohttp.ClientPayloadError, ConnectionResetError, aiohttp.ClientOSError)),
        (Fault.CUT, aiohttp.ClientPayloadError),
        (Fault.HANG, aiohttp.ServerDisconnectedError),
        (Fault.DRIP, aiohttp.ClientPayloadError),
    ],
)
async def test_broken_connections(
    fault: Fault, error: type[Exception], endpoint: SimulatedEndpoint, asked: dict[str, Any]
) -> None:
    async with failing(endpoint, fault) as client:
        with pytest.raises(error):
            await answer(client, asked)
        async with client.get("/health") as response:
            assert response.status == 200


async def test_a_request_that_would_be_refused_is_refused(endpoint: SimulatedEndpoint) -> None:
    async with failing(endpoint, Fault.SERVER_ERROR) as client:
        assert (await answer(client, {"model": "nobody", "messages": []}))[0] == 404


async def test_a_client_gets_the_replies_of_a_server_without_faults(
    endpoint: SimulatedEndpoint, pools: dict[str, Questions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kind of fault, at nine of ten attempts; and over HTTP what the process itself would have answered."""
    monkeypatch.setattr(asking, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.0)
    shares = {fault: 0.9 / len(Fault) for fault in Fault}
    server = TestServer(application(endpoint, Manners(faults=Faults(shares, hang_s=0.05, retry_after_s=0))))
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
    async with ChatClient({"m": Endpoint((f"{server.make_url('/v1')}",))}, kept, attempts) as client:  # type: ignore[arg-type]
        assert await client.served("m", models[0]) == endpoint.served(models[0])
        replies = await asyncio.gather(*(client.complete("m", request) for request in requests))
    await server.close()
    attempts.close()
    assert replies == [endpoint.complete(request) for request in requests]
    assert {reply.finish_reason for reply in replies} == {"stop", "length", "error"}
    assert "maximum context length" in str(replies[-1].error)
    assert attempts.failed > len(requests)

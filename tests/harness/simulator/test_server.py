"""The endpoint behind a socket: the same bodies, the times of a modelled server, and the faults it was asked for."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, get_args

import aiohttp
import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer

from harness.simulator import SimulatedEndpoint
from harness.simulator import server as server_module
from harness.simulator.parameters import EngineParameters
from harness.simulator.server import LAST_FAULTY_ATTEMPT, Engine, FaultKind, Faults, ServerBehaviour, application

from .samples import Questions, request_for

FAST = EngineParameters(concurrent_sequences=2, prefill_tokens_per_s_1b=1e9, decode_tokens_per_s_1b=1e5)


async def over_http(client: TestClient[Any, Any], request: Any) -> tuple[int, Any]:
    async with client.post("/v1/chat/completions", json=request) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("engine", [None, FAST], ids=["plain", "timed"])
async def test_the_same_bodies_as_in_process(
    engine: EngineParameters | None, endpoint: SimulatedEndpoint, pools: dict[str, Questions]
) -> None:
    requests = [request_for(item, name) for item in pools["gsm_hard"].pool[:6] for name in ("qwen-2.5-14B", "nobody")]
    async with TestClient(TestServer(application(endpoint, ServerBehaviour(engine)))) as client:
        found = await asyncio.gather(*(over_http(client, request) for request in requests))
        assert found == [endpoint.chat(request) for request in requests]
        async with client.get("/v1/models") as response:
            assert await response.json() == endpoint.models()
        async with client.get("/engine") as response:
            report = await response.json()
    assert bool(report) == bool(engine)
    if report:
        assert report["qwen-2.5-14B"]["requests"] == 6
        assert 0 < report["qwen-2.5-14B"]["utilisation"] <= 1
        assert report["llama-3.2-3B"]["utilisation"] == 0


async def test_who_comes_first_is_served_first_and_places_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sequence is 3 prompt tokens at 10 a second and 2 completion tokens at 1 a second: 2.3 s."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(server_module.time, "monotonic", lambda: 100.0)
    monkeypatch.setattr(server_module.asyncio, "sleep", sleep)
    speeds = {"prefill_tokens_per_s_1b": 100.0, "decode_tokens_per_s_1b": 10.0}
    engine = Engine(10.0, EngineParameters(concurrent_sequences=2, **speeds))
    assert engine.report()["utilisation"] == 0.0
    for _ in range(5):
        await engine.occupy(3, 2)
    assert slept == pytest.approx([2.3, 2.3, 4.6, 4.6, 6.9])
    assert engine.report() == pytest.approx(
        {"requests": 5, "concurrent_sequences": 2, "busy_sequence_s": 11.5, "span_s": 6.9, "utilisation": 5 / 6}
    )


def test_shares_are_met_bursts_have_their_length_and_the_twelfth_attempt_never_fails() -> None:
    faults = Faults(shares={"server_error": 0.1, "reset": 0.05})
    met = Counter(faults.fault_of(f"request {number}", attempt) for attempt in (1, 2, 3) for number in range(4000))
    assert met["server_error"] / 12000 == pytest.approx(0.1, abs=0.01)
    assert met["reset"] / 12000 == pytest.approx(0.05, abs=0.008)
    assert set(met) == {None, "server_error", "reset"}
    bursts = Faults(shares={"reset": 0.5}, in_a_row=3)
    for number in range(100):
        attempts = [bursts.fault_of(f"request {number}", attempt) for attempt in range(1, 10)]
        assert [len(set(attempts[start : start + 3])) for start in (0, 3, 6)] == [1, 1, 1]
    seeds = [Faults(shares={"cut": 0.5}, seed=seed) for seed in (0, 0, 1)]
    drawn = [[one.fault_of(f"{n}", 1) for n in range(64)] for one in seeds]
    assert drawn[0] == drawn[1] != drawn[2]
    always = Faults(shares={"hang": 1.0})
    assert [always.fault_of("it", attempt) for attempt in range(1, 13)] == ["hang"] * LAST_FAULTY_ATTEMPT + [None]


@pytest.mark.parametrize("kind", get_args(FaultKind))
async def test_what_a_client_meets(kind: FaultKind, endpoint: SimulatedEndpoint, pools: dict[str, Questions]) -> None:
    asked = request_for(pools["gsm_hard"].pool[0])
    good = endpoint.chat(asked)[1]
    bodies = {"no_usage": {name: good[name] for name in good if name != "usage"}}
    bodies["wrong_model"] = {**good, "model": "another/model"}
    behaviour = ServerBehaviour(faults=Faults(shares={kind: 1.0}, hang_s=0.2, retry_after_s=7))
    async with TestClient(TestServer(application(endpoint, behaviour))) as client:
        assert (await over_http(client, {"model": "nobody", "messages": []}))[0] == 404
        if kind in ("reset", "cut", "hang", "drip"):
            with pytest.raises((aiohttp.ClientPayloadError, aiohttp.ClientConnectionError, ConnectionResetError)):
                await over_http(client, asked)
            async with client.get("/health") as response:
                assert response.status == 200
            return
        async with client.post("/v1/chat/completions", json=asked) as response:
            status, content = response.status, await response.read()
            assert response.headers.get("Retry-After") == ("7" if kind == "rate_limit" else None)
    assert status == {"server_error": 500, "rate_limit": 429}.get(kind, 200)
    if kind == "malformed":
        with pytest.raises(orjson.JSONDecodeError):
            orjson.loads(content)
    elif kind in bodies:
        assert orjson.loads(content) == bodies[kind]

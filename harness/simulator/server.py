"""The simulated endpoint behind a socket: same function, same bodies, over HTTP, with the times and faults of a server.

Times are those of a plain model: every sequence has its own constant speed, independent of the others, and all of them
share K places. It delays replies and changes none, so concurrency and wall-clock time can be studied without hardware.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import time
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.endpoint import RefusedError, SimulatedEndpoint, identity
from harness.simulator.faults import FaultCounter, Faults, misbehave
from harness.simulator.parameters import EngineParameters

# The longest context of any backbone is far below this many bytes.
_LONGEST_REQUEST = 16 * 1024 * 1024
# Clients connect in bursts of hundreds.
_BACKLOG = 2048


class Engine:
    """A modelled inference server of one backbone; speed is inversely proportional to its billions of parameters.

    Who comes first is served first. A place is free again when the modelled sequence ends, not when this process gets
    round to saying so: a late timer delays one reply, not all behind it. What a client no longer waits for is computed
    to its end.
    """

    def __init__(self, parameters_b: float, settings: EngineParameters) -> None:
        self._prefill = settings.prefill_tokens_per_s_1b / parameters_b
        self._decode = settings.decode_tokens_per_s_1b / parameters_b
        self._free_at = [float("-inf")] * settings.concurrent_sequences
        self._requests, self._busy_s = 0, 0.0
        self._first, self._last = float("inf"), float("-inf")

    async def occupy(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Wait for a place, then for as long as the sequence takes."""
        now, seconds = time.monotonic(), prompt_tokens / self._prefill + completion_tokens / self._decode
        end = max(now, self._free_at[0]) + seconds
        heapq.heapreplace(self._free_at, end)
        self._first = min(self._first, now)
        await asyncio.sleep(end - now)
        self._last = max(self._last, end)
        self._busy_s += seconds
        self._requests += 1

    def report(self) -> dict[str, Any]:
        """Finished requests, seconds from the first arrival to the last end, and the share of places in use."""
        places, span = len(self._free_at), max(0.0, self._last - self._first)
        return {
            "requests": self._requests,
            "concurrent_sequences": places,
            "busy_sequence_s": self._busy_s,
            "span_s": span,
            "utilisation": self._busy_s / (places * span) if span else 0.0,
        }


@dataclass(frozen=True)
class Manners:
    """Delay, faults and engine of a server."""

    engine: EngineParameters | None = None  # speeds to imitate, one modelled server a backbone; None answers at once
    faults: Faults | None = None  # what goes wrong; an attempt with a fault takes no time of the modelled engine
    latency_s: float = 0.0  # every reply waits for a random time up to twice so many seconds


def application(endpoint: SimulatedEndpoint, manners: Manners = Manners()) -> web.Application:
    """The web application: ``POST /v1/chat/completions``, ``GET /v1/models``, ``GET /health`` and ``GET /engine``."""
    counter = FaultCounter(manners.faults) if manners.faults is not None else None
    engines: dict[str, Engine] = {}
    if manners.engine is not None:
        engines = {one.key: Engine(one.parameters_b, manners.engine) for one in endpoint.calibration.backbones}

    async def chat(request: web.Request) -> web.StreamResponse:
        try:
            body = orjson.loads(await request.read())
            if not isinstance(body, dict):
                raise TypeError("expected an object")
        except (orjson.JSONDecodeError, TypeError) as error:
            return _response(400, RefusedError(400, f"the body is not a JSON object: {error}").body)
        status, reply = endpoint.chat(body)
        if status != 200:
            return _response(status, reply)
        backbone = endpoint.backbone(body).key
        if counter is not None and (fault := counter.next(identity(backbone, body))) is not None:
            return await misbehave(fault, counter.faults, request, reply)
        if engines:
            usage = reply["usage"]
            await engines[backbone].occupy(usage["prompt_tokens"], usage["completion_tokens"])
        if manners.latency_s:
            await asyncio.sleep(random.uniform(0, 2 * manners.latency_s))  # noqa: S311 - decides nothing
        return _response(status, reply)

    async def models(_: web.Request) -> web.Response:
        return _response(200, endpoint.models())

    async def health(_: web.Request) -> web.Response:
        return _response(200, {"status": "ok"})

    async def engine(_: web.Request) -> web.Response:
        return _response(200, {key: engine.report() for key, engine in engines.items()})

    app = web.Application(client_max_size=_LONGEST_REQUEST)
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    app.router.add_get("/health", health)
    app.router.add_get("/engine", engine)
    return app


def serve(endpoint: SimulatedEndpoint, host: str, port: int, manners: Manners) -> None:
    """Serve at an address until interrupted."""
    web.run_app(application(endpoint, manners), host=host, port=port, print=None, access_log=None, backlog=_BACKLOG)


def _response(status: int, body: dict[str, Any]) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")

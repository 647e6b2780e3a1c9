"""Simulated endpoint over HTTP, with the times and the faults of a server.

Times follow a plain model: every sequence has a constant speed, and at most K run at once. Whether an attempt fails is
drawn from the request and the number of attempts before; from the twelfth on none fails.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import orjson
from aiohttp import web
from pydantic import AfterValidator, NonNegativeInt, PositiveFloat, PositiveInt

from harness.agents import rng
from harness.files import Declaration, Share
from harness.simulator.endpoint import RefusedError, SimulatedEndpoint
from harness.simulator.parameters import EngineParameters

FaultKind = Literal[
    "server_error", "rate_limit", "reset", "hang", "drip", "cut", "malformed", "no_usage", "wrong_model"
]
LAST_FAULTY_ATTEMPT = 11
_DRIPS_PER_S = 20
# With this option, the kernel sends a reset when a connection with unsent data is closed.
_NO_LINGER = struct.pack("ii", 1, 0)
# The longest context of any backbone is far below this many bytes.
_LONGEST_REQUEST = 16 * 1024 * 1024
# Clients connect in bursts of hundreds.
_BACKLOG = 2048


class Engine:
    """Modelled inference server of a backbone, first come first served, its speed divided by billions of parameters."""

    def __init__(self, parameters_b: float, settings: EngineParameters) -> None:
        self._prefill = settings.prefill_tokens_per_s_1b / parameters_b
        self._decode = settings.decode_tokens_per_s_1b / parameters_b
        self._free_at = [float("-inf")] * settings.concurrent_sequences
        self._requests, self._busy_s = 0, 0.0
        self._first, self._last = float("inf"), float("-inf")

    async def occupy(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Wait for a place, then for the time of the sequence."""
        now, seconds = time.monotonic(), prompt_tokens / self._prefill + completion_tokens / self._decode
        end = max(now, self._free_at[0]) + seconds
        heapq.heapreplace(self._free_at, end)
        self._first = min(self._first, now)
        await asyncio.sleep(end - now)
        self._last = max(self._last, end)
        self._busy_s += seconds
        self._requests += 1

    def report(self) -> dict[str, Any]:
        """Return finished requests, seconds from the first arrival to the last end, and the share of places in use."""
        places, span = len(self._free_at), max(0.0, self._last - self._first)
        return {
            "requests": self._requests,
            "concurrent_sequences": places,
            "busy_sequence_s": self._busy_s,
            "span_s": span,
            "utilisation": self._busy_s / (places * span) if span else 0.0,
        }


def _at_most_all(shares: Mapping[FaultKind, float]) -> Mapping[FaultKind, float]:
    if sum(shares.values()) > 1:
        raise ValueError(f"add up to {sum(shares.values()):g}; expected at most 1")
    return shares


class Faults(Declaration):
    """Faults of a server, a file such as ``config/faults.yaml``."""

    shares: Annotated[Mapping[FaultKind, Share], AfterValidator(_at_most_all)]  # of attempts, by kind of fault
    seed: int = 0  # decides which attempts fail
    in_a_row: PositiveInt = 1  # attempts of a request that share a draw, from the first on
    hang_s: PositiveFloat = 5.0  # seconds that a hanging or dripping connection is kept open
    retry_after_s: NonNegativeInt = 1  # value of Retry-After

    def fault_of(self, request: str, attempt: int) -> FaultKind | None:
        """Return the kind of fault of an attempt, counted from 1, at a request, or None."""
        if attempt > LAST_FAULTY_ATTEMPT:
            return None
        point = rng.uniform("fault", str(self.seed), request, str((attempt - 1) // self.in_a_row))
        for kind, share in self.shares.items():
            point -= share
            if point < 0:
                return kind
        return None


async def inject_fault(
    kind: FaultKind, faults: Faults, request: web.Request, reply: dict[str, Any]
) -> web.StreamResponse:
    """Respond to an attempt with a fault instead of the ``reply``."""
    match kind:
        case "server_error":
            return web.json_response({"error": {"message": "the engine has died"}}, status=500)
        case "rate_limit":
            headers = {"Retry-After": str(faults.retry_after_s)}
            return web.json_response({"error": {"message": "too many requests"}}, status=429, headers=headers)
        case "malformed":
            return web.Response(body=orjson.dumps(reply)[:-1] + b",}", content_type="application/json")
        case "no_usage":
            return web.json_response({key: value for key, value in reply.items() if key != "usage"})
        case "wrong_model":
            return web.json_response({**reply, "model": "another/model"})
    return await _break_off(kind, faults.hang_s, request, orjson.dumps(reply))


async def _break_off(kind: str, hang_s: float, request: web.Request, body: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
    try:
        if kind == "hang":
            await asyncio.sleep(hang_s)
        else:
            await response.prepare(request)
        if kind == "drip":
            for place in range(min(len(body) - 1, int(hang_s * _DRIPS_PER_S))):
                await response.write(body[place : place + 1])
                await asyncio.sleep(1 / _DRIPS_PER_S)
        elif kind in ("reset", "cut"):
            await response.write(body[: len(body) // 2])
    except ConnectionError:
        pass  # the client has closed the connection
    connection = request.transport
    if connection is not None:
        if kind == "reset":
            connection.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            connection.abort()
        else:
            connection.close()
    return response


@dataclass(frozen=True)
class ServerBehaviour:
    """Delay, faults and engine of a server."""

    engine: EngineParameters | None = None  # of a modelled server for each backbone; None replies at once
    faults: Faults | None = None  # an attempt with a fault takes no time of the engine
    latency_s: float = 0.0  # mean of a random delay of every reply


def application(endpoint: SimulatedEndpoint, behaviour: ServerBehaviour = ServerBehaviour()) -> web.Application:
    """Return the application: ``POST /v1/chat/completions``, ``GET /v1/models``, ``GET /health``, ``GET /engine``."""
    attempts: Counter[str] = Counter()
    engines: dict[str, Engine] = {}
    if behaviour.engine is not None:
        backbones = endpoint.calibration.backbones
        engines = {backbone.key: Engine(backbone.parameters_b, behaviour.engine) for backbone in backbones}

    async def chat(request: web.Request) -> web.StreamResponse:
        try:
            body = orjson.loads(await request.read())
            if not isinstance(body, dict):
                raise TypeError("expected an object")
        except (orjson.JSONDecodeError, TypeError) as error:
            return web.json_response(RefusedError(400, f"the body is not a JSON object: {error}").body, status=400)
        status, reply = endpoint.chat(body)
        if status != 200:
            return web.json_response(reply, status=status)
        if behaviour.faults is not None:
            attempts[reply["id"]] += 1
            if (fault := behaviour.faults.fault_of(reply["id"], attempts[reply["id"]])) is not None:
                return await inject_fault(fault, behaviour.faults, request, reply)
        if engines:
            usage = reply["usage"]
            engine = engines[endpoint.backbone(reply["model"]).key]
            await engine.occupy(usage["prompt_tokens"], usage["completion_tokens"])
        if behaviour.latency_s:
            await asyncio.sleep(random.uniform(0, 2 * behaviour.latency_s))  # noqa: S311 - decides nothing
        return web.json_response(reply, status=status)

    async def models(_: web.Request) -> web.Response:
        return web.json_response(endpoint.models())

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def report(_: web.Request) -> web.Response:
        return web.json_response({key: engine.report() for key, engine in engines.items()})

    app = web.Application(client_max_size=_LONGEST_REQUEST)
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    app.router.add_get("/health", health)
    app.router.add_get("/engine", report)
    return app


def serve(endpoint: SimulatedEndpoint, host: str, port: int, behaviour: ServerBehaviour) -> None:
    """Serve at an address until interrupted."""
    web.run_app(application(endpoint, behaviour), host=host, port=port, print=None, access_log=None, backlog=_BACKLOG)

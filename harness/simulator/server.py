"""The simulated endpoint behind a socket: same function, same bodies, over HTTP."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.endpoint import SimulatedEndpoint
from harness.simulator.engine import Engine
from harness.simulator.faults import FaultCounter, Faults
from harness.simulator.incoming import identity
from harness.simulator.misbehaviour import misbehave
from harness.simulator.parameters import EngineParameters

# The longest context of any backbone is far below this many bytes.
_LONGEST_REQUEST = 16 * 1024 * 1024
# Clients connect in bursts of hundreds.
_BACKLOG = 2048


@dataclass(frozen=True)
class Manners:
    """How a server answers, as opposed to what.

    Attributes:
        engine: Speeds to imitate, one modelled server a backbone; ``None`` answers at once.
        faults: What goes wrong; an attempt with a fault takes no time of the modelled engine.
        latency_s: Every reply waits for a random time up to twice so many seconds; another one in every run.
    """

    engine: EngineParameters | None = None
    faults: Faults | None = None
    latency_s: float = 0.0


def application(endpoint: SimulatedEndpoint, manners: Manners = Manners()) -> web.Application:
    """The web application.

    It serves ``POST /v1/chat/completions``, ``GET /v1/models``, ``GET /health`` and ``GET /engine``.

    Args:
        endpoint: What answers.
        manners: How it answers.
    """
    service = _Service(endpoint, manners)
    app = web.Application(client_max_size=_LONGEST_REQUEST)
    app.router.add_post("/v1/chat/completions", service.chat)
    app.router.add_get("/v1/models", service.models)
    app.router.add_get("/health", service.health)
    app.router.add_get("/engine", service.engine)
    return app


def serve(endpoint: SimulatedEndpoint, host: str, port: int, manners: Manners) -> None:
    """Serve until interrupted.

    Args:
        endpoint: What answers.
        host: Address to listen on.
        port: Port to listen on.
        manners: How it answers.
    """
    web.run_app(application(endpoint, manners), host=host, port=port, print=None, access_log=None, backlog=_BACKLOG)


class _Service:
    """Handlers of the routes."""

    def __init__(self, endpoint: SimulatedEndpoint, manners: Manners) -> None:
        self._endpoint = endpoint
        self._latency_s = manners.latency_s
        self._faults = FaultCounter(manners.faults) if manners.faults is not None else None
        self._engines: dict[str, Engine] = {}
        if manners.engine is not None:
            self._engines = {one.key: Engine(one.parameters_b, manners.engine) for one in endpoint.world.backbones}

    async def chat(self, request: web.Request) -> web.StreamResponse:
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError as error:
            return _response(400, _bad_request(f"the body is not JSON: {error}"))
        if not isinstance(body, dict):
            return _response(400, _bad_request("the body must be a JSON object"))
        status, reply = self._endpoint.chat(body)
        if status != 200:
            return _response(status, reply)
        backbone = self._endpoint.backbone(body).key
        if self._faults is not None and (fault := self._faults.next(identity(backbone, body))) is not None:
            return await misbehave(fault, self._faults.faults, request, reply)
        if self._engines:
            usage = reply["usage"]
            await self._engines[backbone].occupy(usage["prompt_tokens"], usage["completion_tokens"])
        if self._latency_s:
            await asyncio.sleep(random.uniform(0, 2 * self._latency_s))  # noqa: S311 - decides nothing
        return _response(status, reply)

    async def models(self, request: web.Request) -> web.Response:
        return _response(200, self._endpoint.models())

    async def health(self, request: web.Request) -> web.Response:
        return _response(200, {"status": "ok"})

    async def engine(self, request: web.Request) -> web.Response:
        return _response(200, {key: engine.report() for key, engine in self._engines.items()})


def _bad_request(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}


def _response(status: int, body: dict[str, Any]) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")

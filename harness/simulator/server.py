"""Simulated endpoint over HTTP."""

from __future__ import annotations

import orjson
from aiohttp import web

from harness.simulator.endpoint import SimulatedEndpoint

# The longest context of any backbone is far below this many bytes.
_LONGEST_REQUEST = 16 * 1024 * 1024
# Clients connect in bursts of hundreds.
_BACKLOG = 2048


def application(endpoint: SimulatedEndpoint) -> web.Application:
    """Return the application: ``POST /v1/chat/completions`` and ``GET /v1/models``."""

    async def chat(request: web.Request) -> web.Response:
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError:
            body = None
        status, reply = endpoint.chat(body)
        return web.json_response(reply, status=status)

    async def models(_: web.Request) -> web.Response:
        return web.json_response(endpoint.models())

    app = web.Application(client_max_size=_LONGEST_REQUEST)
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    return app


def serve(endpoint: SimulatedEndpoint, host: str, port: int) -> None:
    """Serve at an address until interrupted."""
    web.run_app(application(endpoint), host=host, port=port, print=None, access_log=None, backlog=_BACKLOG)

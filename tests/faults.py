"""A simulated server that is slow and fails: ``python -m tests.faults PRESET PORT [LATENCY_S [SHARE]]``.

Which attempts fail is drawn from the request and the number of attempts before; from the twelfth on none fails.
"""

import asyncio
import random
import socket
import struct
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from harness.agents import rng
from harness.runner import config
from harness.runner.plan import simulated_endpoint
from harness.simulator.server import application

KINDS = ("server_error", "rate_limit", "reset", "hang", "drip", "cut", "malformed", "no_usage", "wrong_model")
LAST_FAULTY_ATTEMPT = 11
_DRIPS_PER_S = 20
# With this option, the kernel sends a reset when a connection with unsent data is closed.
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass
class Faults:
    """Faults of completions: a share of attempts, every kind alike, and a mean delay of every reply."""

    share: float = 0.0
    latency_s: float = 0.0
    hang_s: float = 5.0  # that a hanging or dripping connection is kept open
    attempts: Counter[str] = field(default_factory=Counter)

    def middleware(self) -> Any:
        @web.middleware
        async def disturb(request: web.Request, handler: Any) -> web.StreamResponse:
            response = await handler(request)
            if not request.path.endswith("/chat/completions") or response.status != 200:
                return response
            await asyncio.sleep(random.uniform(0, 2 * self.latency_s))  # noqa: S311 - decides nothing
            reply = orjson.loads(response.body)
            self.attempts[reply["id"]] += 1
            attempt = self.attempts[reply["id"]]
            key = ("fault", reply["id"], str(attempt))
            if attempt > LAST_FAULTY_ATTEMPT or rng.uniform(*key) >= self.share:
                return response
            return await self.fail(KINDS[rng.index(len(KINDS), "kind", *key)], request, reply)

        return disturb

    async def fail(self, kind: str, request: web.Request, reply: dict[str, Any]) -> web.StreamResponse:
        match kind:
            case "server_error":
                return web.json_response({"error": {"message": "the engine has died"}}, status=500)
            case "rate_limit":
                error = {"error": {"message": "too many requests"}}
                return web.json_response(error, status=429, headers={"Retry-After": "0"})
            case "malformed":
                return web.Response(body=orjson.dumps(reply)[:-1] + b",}", content_type="application/json")
            case "no_usage":
                return web.json_response({key: value for key, value in reply.items() if key != "usage"})
            case "wrong_model":
                return web.json_response({**reply, "model": "another/model"})
        return await self._break_off(kind, request, orjson.dumps(reply))

    async def _break_off(self, kind: str, request: web.Request, body: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
        try:
            if kind == "hang":
                await asyncio.sleep(self.hang_s)
            else:
                await response.prepare(request)
            if kind == "drip":
                for index in range(min(len(body) - 1, int(self.hang_s * _DRIPS_PER_S))):
                    await response.write(body[index : index + 1])
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


if __name__ == "__main__":
    preset, port, *rest = sys.argv[1:]
    latency_s, share, *_ = [*map(float, rest), 0.0, 0.0]
    app = application(simulated_endpoint(config.preset(preset)))
    app.middlewares.append(Faults(share, latency_s).middleware())
    web.run_app(app, host="127.0.0.1", port=int(port), print=None, access_log=None, backlog=2048)

"""Faults of a simulated server: how often, at which attempts, and which kind.

Whether an attempt fails is drawn by the request and by how often it has been asked here before, so that a rehearsal can
be repeated. An attempt from the twelfth on never fails: every fault passes for a client that tries as often.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import orjson
from aiohttp import web
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from harness.agents import rng
from harness.errors import UserError
from harness.files import Declaration, Share, read

Kind = Literal["server_error", "rate_limit", "reset", "hang", "drip", "cut", "malformed", "no_usage", "wrong_model"]
LAST_FAULTY_ATTEMPT = 11
_DRIPS_PER_S = 20
# Closing with unsent data and this option set, the kernel sends a reset.
_NO_LINGER = struct.pack("ii", 1, 0)


class Faults(Declaration):
    """The faults of a server."""

    shares: Mapping[Kind, Share]  # share of the attempts that meet each kind
    seed: int = 0  # another one, other attempts
    in_a_row: PositiveInt = 1  # attempts of a request that share a draw, from the first on
    hang_s: PositiveFloat = 5.0  # seconds that a hanging or dripping connection is kept open
    retry_after_s: NonNegativeInt = 1  # what Retry-After says


class FaultCounter:
    """Counts the attempts of every request at this server, and says which of them fail."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._attempts: Counter[str] = Counter()

    def next(self, identity: str) -> str | None:
        """The kind of fault that the attempt which has just come in meets, if any."""
        self._attempts[identity] += 1
        attempt = self._attempts[identity]
        if attempt > LAST_FAULTY_ATTEMPT:
            return None
        burst = (attempt - 1) // self.faults.in_a_row
        point = rng.uniform("fault", str(self.faults.seed), identity, str(burst))
        for kind, share in self.faults.shares.items():
            point -= share
            if point < 0:
                return kind
        return None


def load_faults(path: Path) -> Faults:
    """Read a file of faults.

    Raises:
        UserError: The file is missing or malformed, or the shares exceed 1 together.
    """
    faults: Faults = read(path, Faults)
    if sum(faults.shares.values()) > 1:
        raise UserError(f"{path}: the shares add up to {sum(faults.shares.values()):g}; expected at most 1")
    return faults


async def misbehave(kind: str, faults: Faults, request: web.Request, reply: dict[str, Any]) -> web.StreamResponse:
    """Answer an attempt that is to fail; ``reply`` is what the answer would be."""
    match kind:
        case "server_error":
            return web.json_response(_error("the engine has died", 500), status=500)
        case "rate_limit":
            headers = {"Retry-After": str(faults.retry_after_s)}
            return web.json_response(_error("too many requests", 429), status=429, headers=headers)
        case "malformed":
            return web.Response(body=orjson.dumps(reply)[:-1] + b",}", content_type="application/json")
        case "no_usage":
            return web.json_response({key: value for key, value in reply.items() if key != "usage"})
        case "wrong_model":
            return web.json_response({**reply, "model": "another/model"})
    return await _break_off(kind, faults.hang_s, request, orjson.dumps(reply))


def _error(message: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": "server_error", "param": None, "code": code}}


async def _break_off(kind: str, hang_s: float, request: web.Request, body: bytes) -> web.StreamResponse:
    """Answer with less than a whole body, or with nothing, and close the connection."""
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
        pass  # the client has given up
    connection = request.transport
    if connection is not None:
        if kind == "reset":
            connection.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            connection.abort()
        else:
            connection.close()
    return response

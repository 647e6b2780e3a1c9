"""Faults as a client meets them: statuses, damaged bodies, and connections that stall or break."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.faults import Fault, Faults

_DRIPS_PER_S = 20
# Closing with unsent data and this option set, the kernel sends a reset.
_NO_LINGER = struct.pack("ii", 1, 0)


async def misbehave(fault: Fault, settings: Faults, request: web.Request, reply: dict[str, Any]) -> web.StreamResponse:
    """Answer an attempt that is to fail.

    Args:
        fault: How.
        settings: For how long, and what to say.
        request: The attempt.
        reply: What the answer would be.
    """
    if fault is Fault.SERVER_ERROR:
        return web.json_response(_error("the engine has died", 500), status=500)
    if fault is Fault.RATE_LIMIT:
        headers = {"Retry-After": str(settings.retry_after_s)}
        return web.json_response(_error("too many requests", 429), status=429, headers=headers)
    if fault is Fault.MALFORMED:
        return web.Response(body=orjson.dumps(reply)[:-1] + b",}", content_type="application/json")
    if fault is Fault.NO_USAGE:
        return web.json_response({key: value for key, value in reply.items() if key != "usage"})
    if fault is Fault.WRONG_MODEL:
        return web.json_response({**reply, "model": "another/model"})
    return await _break_off(fault, settings.hang_s, request, orjson.dumps(reply))


def _error(message: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": "server_error", "param": None, "code": code}}


async def _break_off(fault: Fault, hang_s: float, request: web.Request, body: bytes) -> web.StreamResponse:
    """Answer with less than a whole body, or with nothing, and close the connection."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
    try:
        if fault is Fault.HANG:
            await asyncio.sleep(hang_s)
        else:
            await response.prepare(request)
        if fault is Fault.DRIP:
            for place in range(min(len(body) - 1, int(hang_s * _DRIPS_PER_S))):
                await response.write(body[place : place + 1])
                await asyncio.sleep(1 / _DRIPS_PER_S)
        elif fault in (Fault.RESET, Fault.CUT):
            await response.write(body[: len(body) // 2])
    except ConnectionError:
        pass  # the client has given up
    connection = request.transport
    if connection is not None:
        if fault is Fault.RESET:
            connection.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            connection.abort()
        else:
            connection.close()
    return response

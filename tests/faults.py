"""Slow and failing server of simulated backbones: ``python -m tests.faults PRESET [LATENCY_S [SHARE]]`` prints its URL.

Failures are drawn by a hash of the request and the number of earlier attempts; from the twelfth attempt on none fails.
Only calls of methods fail, which state a purpose.
"""

import asyncio
import os
import random
import socket
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from harness.agents import rng
from harness.files import ROOT
from harness.llm.backbones import load
from harness.llm.request import SIMULATED, Message, Metadata, Request, Sampling
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.simulator.endpoint import SimulatedEndpoint
from tests.harness.llm.serving import completion, served_at
from tests.small_run import prepare_questions

KINDS = ("server_error", "rate_limit", "reset", "hang", "drip", "cut", "malformed", "no_usage", "wrong_model")
LAST_FAULTY_ATTEMPT = 11
_DRIPS_PER_S = 20
# With this option, the kernel sends a reset when a connection with unsent data is closed.
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass
class Simulation:
    """A server of simulated backbones of which a share of attempts fails, every kind alike, and every reply is late."""

    endpoint: SimulatedEndpoint
    share: float = 0.0
    latency_s: float = 0.0
    hang_s: float = 5.0  # that a hanging or dripping connection is kept open
    without: Sequence[str] = ()  # fields that a gateway leaves out of the list of models
    attempts: Counter[str] = field(default_factory=Counter)

    async def models(self, _: web.Request) -> web.Response:
        known = [self.endpoint.served(one.model) for one in load(ROOT / "config" / "backbones.yaml").values()]
        about = [{"id": one.model, "owned_by": one.owned_by, "root": one.root, **one.details} for one in known]
        kept = [{name: value for name, value in one.items() if name not in self.without} for one in about]
        data = [{"object": "model", "created": 0, **one} for one in kept]
        return web.json_response({"object": "list", "data": data})

    async def chat(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        said = {name: body[name] for name in ("temperature", "max_tokens", *Sampling._fields) if name in body}
        said["response_format"] = orjson.dumps(body["response_format"]).decode() if "response_format" in body else None
        said["metadata"] = Metadata(**body["metadata"]) if "metadata" in body else None
        said["stop"] = tuple(body["stop"]) if "stop" in body else None
        messages = tuple(Message(**message) for message in body["messages"])
        request = Request(body["model"], SIMULATED, messages, **said, draw=body["seed"])
        reply = self.endpoint.complete(request)
        if reply.error is not None:
            return web.json_response({"error": {"message": reply.error}}, status=400)
        usage = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
        usage["total_tokens"] = sum(usage.values())
        # A check of servers knows no revision, and its replies do not have to tell it.
        is_call = "metadata" in body or self.without
        fingerprint = {"system_fingerprint": self.endpoint.revision} if is_call else {}
        answer = completion(reply.text, reply.model, usage=usage, **fingerprint)
        answer["choices"][0]["finish_reason"] = reply.finish_reason
        await asyncio.sleep(random.uniform(0, 2 * self.latency_s))  # noqa: S311 - decides nothing
        self.attempts[request.key] += 1
        attempt = self.attempts[request.key]
        key = ("fault", request.key, str(attempt))
        if "metadata" not in body or attempt > LAST_FAULTY_ATTEMPT or rng.uniform(*key) >= self.share:
            return web.json_response(answer)
        return await self.fail(KINDS[rng.index(len(KINDS), "kind", *key)], http, answer)

    async def fail(self, kind: str, http: web.Request, answer: dict[str, Any]) -> web.StreamResponse:
        unusable = {
            "malformed": orjson.dumps(answer)[:-1] + b",}",
            "no_usage": orjson.dumps({**answer, "usage": None}),
            "wrong_model": orjson.dumps({**answer, "model": "another/model"}),
        }
        if kind in unusable:
            return web.Response(body=unusable[kind], content_type="application/json")
        statuses = {"server_error": 500, "rate_limit": 429}
        if kind in statuses:
            error = {"error": {"message": kind}}
            return web.json_response(error, status=statuses[kind], headers={"Retry-After": "0"})
        body, connection = orjson.dumps(answer), http.transport
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
        with suppress(ConnectionError):  # The client has closed the connection.
            if kind == "hang":
                await asyncio.sleep(self.hang_s)
            else:
                await response.prepare(http)
                await response.write(body[: 1 if kind == "drip" else len(body) // 2])
            for index in range(min(len(body) - 2, int(self.hang_s * _DRIPS_PER_S)) if kind == "drip" else 0):
                await response.write(body[index + 1 : index + 2])
                await asyncio.sleep(1 / _DRIPS_PER_S)
        if connection is not None:
            if kind == "reset":
                connection.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
                connection.abort()
            connection.close()
        return response


async def _serve(name: str, latency_s: float = 0.0, share: float = 0.0) -> None:
    preset = resolve(name)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare_questions(name, *preset.benchmarks)
        endpoint = plan(preset, preset.cells()[0]).in_process
    async with served_at(Simulation(endpoint, share, latency_s)) as url:
        print(url, flush=True)  # noqa: T201
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], *map(float, sys.argv[2:])))

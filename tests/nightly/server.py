"""A modelled inference server in a process of its own: K places, and calls that take a stated time.

It computes as little as a server can, so that on a small machine the clients are measured and not it.
"""

import asyncio
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import orjson
from aiohttp import web

from harness.files import ROOT
from harness.llm.backbones import load
from tests.harness.llm.serving import completion

MODELS = {key: one.model for key, one in load(ROOT / "config" / "backbones.yaml").items()}
_REPLY = " ".join([*(f"word{number % 16}" for number in range(64)), "The answer is 42."])


class Model(NamedTuple):
    """What a server models."""

    places: int  # sequences it works on at the same time, K
    seconds: float  # that a call takes


@contextmanager
def served(model: Model) -> Iterator[str]:
    """Serve a model while the block runs; yield the base URL."""
    command = [sys.executable, "-m", "tests.nightly.server", *map(str, model)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def report(url: str) -> dict[str, Any]:
    """Return the server's record of itself: requests and utilisation."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/engine") as answer:
        record: dict[str, Any] = orjson.loads(answer.read())
    return record


class Server:
    """All models share K places, first come first served; a reply takes its time in one of them."""

    def __init__(self, model: Model) -> None:
        self._model, self._free = model, asyncio.Semaphore(model.places)
        self._requests, self._first, self._last = 0, float("inf"), float("-inf")

    async def models(self, _: web.Request) -> web.Response:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "simulated"} for name in MODELS.values()]
        return web.json_response({"object": "list", "data": listed})

    async def chat(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        self._first = min(self._first, time.monotonic())
        async with self._free:
            await asyncio.sleep(self._model.seconds)
        self._last, self._requests = time.monotonic(), self._requests + 1
        return web.json_response(completion(_REPLY, body["model"]))

    async def report(self, _: web.Request) -> web.Response:
        """Return finished requests, and the share of places in use from the first arrival to the last end."""
        busy_s, span_s = self._requests * self._model.seconds, self._last - self._first
        return web.json_response({"requests": self._requests, "utilisation": busy_s / (self._model.places * span_s)})


async def _serve(model: Model) -> None:
    server, app = Server(model), web.Application(client_max_size=2**24)
    app.router.add_get("/v1/models", server.models)
    app.router.add_post("/v1/chat/completions", server.chat)
    app.router.add_get("/engine", server.report)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    places, seconds = sys.argv[1:]
    asyncio.run(_serve(Model(int(places), float(seconds))))

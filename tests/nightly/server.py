"""A modelled inference server in a process of its own: K places, and calls that take a stated time.

It computes as little as a server can, so that on a small machine the clients are measured and not it. The words of a
reply follow from its request alone.
"""

import asyncio
import hashlib
import heapq
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

MODELS = {key: one.model for key, one in load(ROOT / "config" / "backbones.yaml").items()}
_TOKENS = 100
_WORDS = [f"word{number}" for number in range(16)]


class Model(NamedTuple):
    """What a server models."""

    places: int  # sequences it works on at the same time, K
    seconds: float  # that a call takes


@contextmanager
def served(model: Model) -> Iterator[str]:
    """Serve a model while the block runs; yield the base URL."""
    arguments = [str(value) for value in model]
    command = [sys.executable, "-m", "tests.nightly.server", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def report(url: str) -> dict[str, Any]:
    """Return the server's record of itself: requests, busy sequence-seconds, span, utilisation."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/engine") as answer:
        record: dict[str, Any] = orjson.loads(answer.read())
    return record


class Server:
    """All models share K places, first come first served; a reply takes its time in one of them."""

    def __init__(self, model: Model) -> None:
        self._model, self._free_at = model, [float("-inf")] * model.places
        self._requests, self._busy_s, self._first, self._last = 0, 0.0, float("inf"), float("-inf")

    async def models(self, _: web.Request) -> web.Response:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "simulated"} for name in MODELS.values()]
        return web.json_response({"object": "list", "data": listed})

    async def chat(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        content = orjson.dumps([body["model"], body["messages"]])
        digest = hashlib.sha256(content + str(body["seed"]).encode()).hexdigest()
        text = " ".join([f"({digest[:8]})", *(_WORDS[int(one, 16)] for one in digest), "The answer is 42."])
        await self._occupy(self._model.seconds)
        usage = {"prompt_tokens": len(content) // 4, "completion_tokens": _TOKENS}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        reply = {"id": "x", "object": "chat.completion", "model": body["model"], "choices": [choice], "usage": usage}
        return web.json_response(reply)

    async def _occupy(self, seconds: float) -> None:
        now = time.monotonic()
        end = max(now, self._free_at[0]) + seconds
        heapq.heapreplace(self._free_at, end)
        self._first = min(self._first, now)
        await asyncio.sleep(end - now)
        self._last = max(self._last, end)
        self._busy_s += seconds
        self._requests += 1

    async def report(self, _: web.Request) -> web.Response:
        """Return finished requests, seconds from the first arrival to the last end, and the share of places in use."""
        span = max(0.0, self._last - self._first)
        utilisation = self._busy_s / (self._model.places * span) if span else 0.0
        record = {"requests": self._requests, "busy_sequence_s": self._busy_s, "span_s": span}
        return web.json_response({**record, "utilisation": utilisation})


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

"""A modelled inference server in a process of its own: K places, and calls that take a stated time.

It computes as little as a server can, so that on a small machine the clients are measured and not it. A reply follows
from its request alone: some words, and a number of tokens that decides how long the reply takes.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import orjson

from harness.files import ROOT
from harness.llm.backbones import load
from harness.simulator.parameters import EngineParameters
from harness.simulator.server import Engine

MODELS = {key: one.model for key, one in load(ROOT / "config" / "backbones.yaml").items()}
MEAN_TOKENS = 100
_WORDS = [f"word{number}" for number in range(16)]


class Model(NamedTuple):
    """What a server models.

    Attributes:
        places: Sequences it works on at the same time, K.
        seconds: Mean time of a call.
        spread: Calls take between ``1 - spread`` and ``1 + spread`` times the mean, evenly.
    """

    places: int
    seconds: float
    spread: float = 0.0


@contextmanager
def served(model: Model) -> Iterator[str]:
    """A server while the block runs; its base URL."""
    arguments = [str(value) for value in model]
    command = [sys.executable, "-m", "tests.nightly.server", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def report(url: str) -> dict[str, Any]:
    """What the server says of itself: requests, busy sequence-seconds, span, utilisation."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/engine") as answer:
        found: dict[str, Any] = orjson.loads(answer.read())
    return found


def seconds_of(completion_tokens: int, model: Model) -> float:
    """How long the server took for a reply of so many tokens."""
    return completion_tokens * model.seconds / MEAN_TOKENS


def tokens_of(content: bytes, spread: float) -> int:
    """Tokens of the reply to a request."""
    share = int.from_bytes(hashlib.sha256(content).digest()[:4], "little") / 0xFFFFFFFF
    return round(MEAN_TOKENS * (1 - spread + 2 * spread * share))


def _main() -> None:
    from aiohttp import web

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("spread", type=float)
    model = Model(**vars(parser.parse_args()))
    engine = Engine(
        1.0,
        EngineParameters(
            concurrent_sequences=model.places,
            prefill_tokens_per_s_1b=1e12,
            decode_tokens_per_s_1b=MEAN_TOKENS / model.seconds,
        ),
    )

    async def chat(request: web.Request) -> web.Response:
        content = await request.read()
        asked = orjson.loads(content)
        tokens = tokens_of(orjson.dumps([asked["model"], asked["messages"]]), model.spread)
        await engine.occupy(0, tokens)
        digest = hashlib.sha256(content).hexdigest()
        text = " ".join([f"({digest[:8]})", *(_WORDS[int(one, 16)] for one in digest), "The answer is 42."])
        usage = {"prompt_tokens": len(content) // 4, "completion_tokens": tokens}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return _json(
            {"id": "x", "object": "chat.completion", "model": asked["model"], "choices": [choice], "usage": usage}
        )

    async def models(_: web.Request) -> web.Response:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "simulated"} for name in MODELS.values()]
        return _json({"object": "list", "data": listed})

    async def engine_report(_: web.Request) -> web.Response:
        return _json(engine.report())

    def _json(body: dict[str, Any]) -> web.Response:
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    async def ready(runner: web.AppRunner) -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)

    import asyncio

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    app.router.add_get("/engine", engine_report)

    async def forever() -> None:
        await ready(web.AppRunner(app, access_log=None))
        await asyncio.Event().wait()

    asyncio.run(forever())


if __name__ == "__main__":
    _main()

"""A modelled inference server in a process of its own: K places, and calls that take a stated time.

It computes as little as a server can, so that on a small machine the clients are measured and not it. A reply follows
from its request alone: some words, and a number of tokens that decides how long the reply takes.
"""

import asyncio
import hashlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import orjson
from aiohttp import web

from harness.files import ROOT
from harness.llm.backbones import load
from harness.simulator.parameters import EngineParameters
from harness.simulator.server import ServerBehaviour, application

MODELS = {key: one.model for key, one in load(ROOT / "config" / "backbones.yaml").items()}
MEAN_TOKENS = 100
ALL = SimpleNamespace(key="all", parameters_b=1.0)
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
        record: dict[str, Any] = orjson.loads(answer.read())[ALL.key]
    return record


def seconds_of(completion_tokens: int, model: Model) -> float:
    """Return how long the server took for a reply of so many tokens."""
    return completion_tokens * model.seconds / MEAN_TOKENS


class Endpoint:
    """Stands where a simulated endpoint does; all models share the places of one engine."""

    calibration = SimpleNamespace(backbones=[ALL])

    def __init__(self, spread: float) -> None:
        self._spread = spread

    def backbone(self, body: dict[str, Any]) -> SimpleNamespace:
        return ALL

    def models(self) -> dict[str, Any]:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "simulated"} for name in MODELS.values()]
        return {"object": "list", "data": listed}

    def chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        content = orjson.dumps([body["model"], body["messages"]])
        digest = hashlib.sha256(content + str(body["seed"]).encode()).hexdigest()
        text = " ".join([f"({digest[:8]})", *(_WORDS[int(one, 16)] for one in digest), "The answer is 42."])
        share = int(hashlib.sha256(content).hexdigest()[:8], 16) / 0xFFFFFFFF
        tokens = round(MEAN_TOKENS * (1 - self._spread + 2 * self._spread * share))
        usage = {"prompt_tokens": len(content) // 4, "completion_tokens": tokens}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return 200, {
            "id": "x",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [choice],
            "usage": usage,
        }


async def _serve(model: Model) -> None:
    speeds = {"prefill_tokens_per_s_1b": 1e12, "decode_tokens_per_s_1b": MEAN_TOKENS / model.seconds}
    engine: Any = EngineParameters(concurrent_sequences=model.places, **speeds)
    endpoint: Any = Endpoint(model.spread)
    runner = web.AppRunner(application(endpoint, ServerBehaviour(engine)), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    places, seconds, spread = sys.argv[1:]
    asyncio.run(_serve(Model(int(places), float(seconds), float(spread))))

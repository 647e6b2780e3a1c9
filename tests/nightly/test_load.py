"""Server utilisation and overhead per call, compared with a loop that only sends requests."""

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import openai
import orjson
import pytest
from aiohttp import web

from harness.benchmarks.items import Item
from harness.llm.call_log import AttemptLog, CallLog, read_attempts, seconds_of
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from harness.runner.evaluation import evaluate
from harness.scripted import backbones
from tests.fixtures import Repeat, questions, runtime
from tests.harness.llm.serving import completion, served_at

pytestmark = pytest.mark.nightly

ROUNDS = 5
SMALL = "small"


async def bare(url: str, items: Sequence[Item], places: int) -> None:
    """Send the same calls from a loop that does nothing else: AsyncOpenAI on aiohttp, ``places`` at once."""
    http = openai.DefaultAioHttpClient()
    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, http_client=http) as client:
        waiting = iter(items)
        sampling: dict[str, Any] = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 2048, "seed": 0, "n": 1}

        async def work() -> None:
            for item in waiting:
                messages: Any = [{"role": "user", "content": item.question}]
                asked = {"model": backbones()[SMALL].model, "messages": messages, **sampling}
                reply = await client.chat.completions.create(**asked)
                assert reply.choices[0].message.content

        await asyncio.gather(*(work() for _ in range(places)))


async def ours(url: str, items: Sequence[Item], places: int, folder: Path) -> None:
    """Run the evaluation loop of a cell, with the client and the log of one."""
    folder.mkdir()
    endpoints = {SMALL: Endpoint(url=url, max_in_flight=places)}
    with CallLog(folder / "calls.sqlite") as log, AttemptLog(folder / "attempts.jsonl") as attempts:
        async with ChatClient(endpoints, log, attempts) as client:
            await evaluate(Repeat(), items, runtime(client), "measured", in_flight=2 * places)


def serve(seconds: float, pipe: Any) -> None:
    """Complete calls, each in the same time; computes as little as a server can, so that clients are measured."""

    async def chat(http: web.Request) -> web.Response:
        body = orjson.loads(await http.read())
        await asyncio.sleep(seconds)
        return web.json_response(completion(f"{'word ' * 64}The answer is 42.", body["model"]))

    async def run() -> None:
        async with served_at(chat=chat) as url:
            pipe.send(url)
            await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def served(seconds: float) -> Iterator[str]:
    """Serve in a process of its own while the block runs; yield the URL."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(seconds, there))
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


class Pass(NamedTuple):
    """Share of the places in use, and own processor milliseconds a call."""

    utilisation: float
    cpu_ms: float


def measured(places: int, seconds: float, calls: int, folder: Path, *, by_us: bool) -> Pass:
    """Measure one pass over the questions, one call each, before a fresh server."""
    items = questions(calls)
    with served(seconds) as url:
        began, before = time.perf_counter(), time.process_time()
        asyncio.run(ours(url, items, places, folder) if by_us else bare(url, items, places))
        cpu_s, span_s = time.process_time() - before, time.perf_counter() - began
    if by_us:
        keys = [attempt["key"] for attempt in read_attempts(folder / "attempts.jsonl")]
        assert len(keys) == len(set(keys)) == calls
        span_s = seconds_of(folder / "attempts.jsonl", keys) or 0.0
    return Pass(calls * seconds / (places * span_s), 1000 * cpu_s / calls)


@pytest.mark.parametrize(("places", "seconds", "calls"), [(64, 0.2, 1_344), (256, 2.0, 10_240)])
def test_evaluation_keeps_a_server_as_full_as_a_bare_loop(
    places: int, seconds: float, calls: int, tmp_path: Path
) -> None:
    pairs = [
        [measured(places, seconds, calls, tmp_path / str(number), by_us=by_us) for by_us in (True, False)]
        for number in range(ROUNDS)
    ]
    mine, others = (Pass(*map(statistics.median, zip(*side, strict=True))) for side in zip(*pairs, strict=True))
    print(f"{places} places, {seconds} s: ours {mine}, bare {others}, ratio {mine.cpu_ms / others.cpu_ms:.2f}")
    assert mine.utilisation > others.utilisation - 0.02
    assert mine.cpu_ms < 1.5 * others.cpu_ms

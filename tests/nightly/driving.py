"""A runtime before a modelled server, and the bare loop that everything is compared with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import openai

from harness.agents.code_tools import CodeTools
from harness.agents.error_share import ErrorShare
from harness.agents.prompts import question_prompt
from harness.agents.runtime import Runtime
from harness.benchmarks import Tools, benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.math_verifier import MathVerifier
from harness.files import ROOT
from harness.llm.backbones import load
from harness.llm.call_log import AttemptLog, CallLog
from harness.llm.client import ChatClient
from harness.llm.database import Cache
from harness.llm.embeddings import Embeddings
from harness.llm.encoder import SentenceEncoder
from harness.llm.endpoints import Endpoint
from harness.runner.evaluation import evaluate
from harness.runner.method import Method, Setting
from harness.runner.progress import Progress
from harness.sandbox import Sandbox

BENCHMARK = "gsm_hard"
POOL = load(ROOT / "config" / "backbones.yaml")


class Driven(NamedTuple):
    """What driving a number of calls took: wall-clock and own processor seconds."""

    calls: int
    wall_s: float
    cpu_s: float


def questions(count: int) -> list[Item]:
    """Made-up questions that differ in a number."""
    text = "A train carries {} boxes, and every box holds as many apples as there are boxes. How many apples is that?"
    return [Item(id=f"q{n}", benchmark=BENCHMARK, question=text.format(n), gold="42") for n in range(count)]


def setting(backbone: str, epochs: int = 1) -> Setting:
    """Where a method works here."""
    return Setting(backbone, POOL, BENCHMARK, benchmark(BENCHMARK).role_domain, 0, epochs)


@asynccontextmanager
async def runtime(url: str, places: int, folder: Path, encoder: SentenceEncoder) -> AsyncIterator[Runtime]:
    """A runtime whose backbones all answer at one server, which is sent ``places`` requests at once."""
    async with AsyncExitStack() as stack:
        log = stack.enter_context(CallLog(folder / "calls.sqlite"))
        attempts = stack.enter_context(AttemptLog(folder / "attempts.jsonl"))
        endpoint = Endpoint(url=url, max_in_flight=places)
        client = await stack.enter_async_context(ChatClient(dict.fromkeys(POOL, endpoint), log, attempts))
        sandbox = await stack.enter_async_context(Sandbox())
        verifier = await stack.enter_async_context(MathVerifier())
        embeddings = await stack.enter_async_context(Embeddings(encoder, Cache(folder / "cache.sqlite")))
        yield Runtime(
            client=client,
            backbones=POOL,
            benchmark=benchmark(BENCHMARK),
            tools=Tools(sandbox, verifier),
            code_tools=CodeTools(sandbox),
            embeddings=embeddings,
            seed=0,
            errors=ErrorShare(0.5),
        )


async def ours(method: Method, items: Sequence[Item], place: Runtime, in_flight: int, folder: Path) -> Driven:
    """The evaluation loop of a cell, from the first question to the last answer on disk."""
    wall, cpu = time.perf_counter(), time.process_time()
    answers = await evaluate(method, items, place, Progress("measured", len(items)), in_flight=in_flight)
    calls = sum(len(one.trajectory.calls) for one in answers)
    return Driven(calls, time.perf_counter() - wall, time.process_time() - cpu)


async def bare(url: str, backbone: str, items: Sequence[Item], places: int) -> Driven:
    """The same calls from a loop that does nothing but send them: AsyncOpenAI on aiohttp, ``places`` at once."""
    rules, model = benchmark(BENCHMARK).output_rules, POOL[backbone].model
    async with openai.AsyncOpenAI(
        api_key="none", base_url=url, max_retries=0, http_client=openai.DefaultAioHttpClient()
    ) as client:
        waiting = iter(items)

        async def work() -> None:
            for item in waiting:
                messages = [message._asdict() for message in question_prompt("", rules, item)]
                reply = await client.chat.completions.create(
                    model=model,
                    messages=messages,
                    temperature=0.0,
                    top_p=1.0,
                    max_tokens=2048,
                    seed=0,
                    n=1,  # type: ignore[arg-type]
                )
                assert reply.choices[0].message.content

        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work() for _ in range(places)))
        return Driven(len(items), time.perf_counter() - wall, time.process_time() - cpu)

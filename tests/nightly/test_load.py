"""Utilisation of a server and the cost of a call, compared with a loop that does nothing but send."""

import asyncio
import heapq
import shutil
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import openai
import pytest

import gmr
from baselines.single import SingleLLM
from gmr.config import Config
from harness.agents.code_tools import CodeTools
from harness.agents.prompts import question_prompt
from harness.agents.runtime import ErrorShare, Runtime
from harness.benchmarks import Tools, benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.math_verifier import MathVerifier
from harness.database import Cache
from harness.files import ROOT
from harness.llm.backbones import load
from harness.llm.call_log import AttemptLog, CallLog
from harness.llm.client import ChatClient
from harness.llm.encoder import Embeddings, SentenceEncoder
from harness.llm.endpoints import Endpoint
from harness.runner.config import methods
from harness.runner.evaluation import evaluate
from harness.runner.method import Setting
from harness.sandbox import Sandbox
from harness.training.loop import Training
from tests.fake_encoder import FakeEncoder
from tests.nightly.server import Model, report, seconds_of, served

pytestmark = pytest.mark.nightly

ROUNDS = 5
BACKBONE = "llama-3.1-8B"
POOL = load(ROOT / "config" / "backbones.yaml")
GSM_HARD = benchmark("gsm_hard")


def questions(count: int) -> list[Item]:
    """Return made-up questions that differ in a number."""
    text = "A train carries {} boxes, and every box holds as many apples as there are boxes. How many apples is that?"
    return [Item(id=f"q{n}", benchmark=GSM_HARD.key, question=text.format(n), gold="42") for n in range(count)]


@asynccontextmanager
async def runtime(url: str, places: int, folder: Path, encoder: SentenceEncoder) -> AsyncIterator[Runtime]:
    """Yield a runtime whose backbones all answer at one server, which is sent ``places`` requests at once."""
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
            benchmark=GSM_HARD,
            tools=Tools(sandbox, verifier),
            code_tools=CodeTools(sandbox),
            embeddings=embeddings,
            seed=0,
            errors=ErrorShare(0.5),
        )


async def bare(url: str, items: Sequence[Item], places: int) -> None:
    """Send the same calls from a loop that does nothing else: AsyncOpenAI on aiohttp, ``places`` at once."""
    http = openai.DefaultAioHttpClient()
    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, http_client=http) as client:
        waiting = iter(items)
        sampling: dict[str, Any] = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 2048, "seed": 0, "n": 1}

        async def work() -> None:
            for item in waiting:
                messages: Any = [one._asdict() for one in question_prompt("", GSM_HARD.output_rules, item)]
                asked = {"model": POOL[BACKBONE].model, "messages": messages, **sampling}
                reply = await client.chat.completions.create(**asked)
                assert reply.choices[0].message.content

        await asyncio.gather(*(work() for _ in range(places)))


async def ours(url: str, items: Sequence[Item], places: int, folder: Path) -> None:
    """Run the evaluation loop of a cell."""
    folder.mkdir()
    async with runtime(url, places, folder, FakeEncoder()) as place:
        await evaluate(SingleLLM(BACKBONE), items, place, "measured", in_flight=2 * places)


class Pass(NamedTuple):
    """Utilisation of the server, and own processor milliseconds a call."""

    utilisation: float
    cpu_ms: float


def measured(model: Model, calls: int, folder: Path, *, by_us: bool) -> Pass:
    """Measure one pass over the questions, one call each, before a fresh server in a process of its own."""
    items = questions(calls)
    with served(model) as url:
        before = time.process_time()
        asyncio.run(ours(url, items, model.places, folder) if by_us else bare(url, items, model.places))
        seconds = time.process_time() - before
        record = report(url)
    assert record["requests"] == calls
    return Pass(record["utilisation"], 1000 * seconds / calls)


@pytest.mark.parametrize(("places", "seconds", "calls"), [(64, 0.2, 1_344), (256, 2.0, 10_240)])
def test_evaluation_keeps_a_server_as_full_as_a_bare_loop(
    places: int, seconds: float, calls: int, tmp_path: Path
) -> None:
    model = Model(places, seconds)
    pairs = [
        [measured(model, calls, tmp_path / str(number), by_us=by_us) for by_us in (True, False)]
        for number in range(ROUNDS)
    ]
    mine, others = (Pass(*map(statistics.median, zip(*side, strict=True))) for side in zip(*pairs, strict=True))
    print(f"{model}: ours {mine}, bare {others}, ratio {mine.cpu_ms / others.cpu_ms:.2f}")
    assert mine.utilisation > others.utilisation - 0.02
    assert mine.cpu_ms < 1.5 * others.cpu_ms


class ChainedCall(NamedTuple):
    """One call of a chain: what tells it from others, and how many seconds it takes."""

    key: str
    seconds: float


def greedy(chains: Sequence[Sequence[ChainedCall]], places: int) -> float:
    """Return the seconds from the first call to the end of the last chain.

    The first that is ready gets the next free place. A call that another chain has made takes no time, and one that
    another chain is making takes until that ends, as with one client for all.
    """
    now, free, ends = 0.0, places, 0
    running: list[tuple[float, int, str]] = []
    ready = deque((chain, 0) for chain in range(len(chains)))
    made: set[str] = set()
    under_way: dict[str, list[tuple[int, int]]] = {}
    waiting: deque[tuple[str, float]] = deque()
    while ready or running:
        while ready:
            chain, place = ready.popleft()
            while place < len(chains[chain]) and chains[chain][place].key in made:
                place += 1
            if place == len(chains[chain]):
                continue
            key, seconds = chains[chain][place]
            if key not in under_way:
                under_way[key] = []
                waiting.append((key, seconds))
            under_way[key].append((chain, place + 1))
        while waiting and free:
            key, seconds = waiting.popleft()
            free -= 1
            ends += 1
            heapq.heappush(running, (now + seconds, ends, key))
        if running:
            now, _, key = heapq.heappop(running)
            free += 1
            made.add(key)
            ready.extend(under_way.pop(key))
    return now


class Watched(Training):
    """A training that remembers the calls of each update."""

    def note(self, place: Any, measures: Mapping[str, float], attempts: Sequence[Any]) -> None:
        self.updates = [*getattr(self, "updates", []), list(attempts)]
        super().note(place, measures, attempts)


async def trained(url: str, model: Model, folder: Path, encoder: SentenceEncoder) -> float:
    """Return the seconds of the rollouts of three updates over those of the greedy schedule of their calls."""
    config = Config(**methods()["gmr"].config)
    method = gmr.build(Setting("pool", POOL, GSM_HARD.key, GSM_HARD.role_domain, 0, 1), config)
    async with runtime(url, model.places, folder, encoder) as place:
        items, most = questions(3 * config.batch), config.batch * config.group
        training = Watched(items, place, folder, {"identity": "measured"}, "measured", lambda key: True, most)
        await method.fit(training)
    possible, known = 0.0, set[str]()
    for attempts in training.updates:
        chains = [
            [ChainedCall(call.key, seconds_of(call.completion_tokens, model)) for call in one.answered.trajectory.calls]
            for one in attempts
        ]
        possible += greedy([[step for step in chain if step.key not in known] for chain in chains], model.places)
        known.update(step.key for chain in chains for step in chain)
    return training.seconds["rollouts"] / possible


@pytest.mark.parametrize(("places", "seconds"), [(16, 1.0), (64, 0.8), (64, 1.0), (256, 1.0)])
def test_rollouts_of_training_take_little_longer_than_the_greedy_schedule(
    places: int, seconds: float, tmp_path: Path
) -> None:
    """An update waits for the last of its trajectories, so a server is never full all the time."""
    model, encoder = Model(places, seconds, 0.8), SentenceEncoder()
    cold, cached = tmp_path / "cold", tmp_path / "cached"
    encoder.encode("The first text loads the model.")
    cold.mkdir()
    with served(model) as url:
        first = asyncio.run(trained(url, model, cold, encoder))
    cached.mkdir()
    shutil.copy(cold / "cache.sqlite", cached)
    with served(model) as url:
        second = asyncio.run(trained(url, model, cached, encoder))
    print(f"{model}: rollouts over greedy schedule: {first:.3f} with embeddings to be made, {second:.3f} without")
    assert second < 1.2

"""What temperature 0 is worth on a server: the same requests three times, and how many replies and verdicts differ.

The prompts are those of Single LLM on the preset's test questions, the benchmarks taking turns. A first and a second
pass ask one at a time, a third asks all at once, as far as the limits of the server allow; what differs between the
first two differs by itself, what differs besides between the first and the third differs with the company in a batch.
Everything goes through the client of every other call, past its log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import recording
from harness.agents.prompts import question_prompt
from harness.anew import AskingAlways
from harness.benchmarks import Tools
from harness.benchmarks import benchmark as find_benchmark
from harness.benchmarks.items import Item, Status, Verdict
from harness.benchmarks.math_verifier import MathVerifier
from harness.concurrency import gather
from harness.errors import UserError
from harness.llm.attempts import AttemptLog
from harness.llm.backbones import Backbone
from harness.llm.call_log import CallLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint
from harness.llm.request import Reply, Request
from harness.llm.served import Served
from harness.runner import layout
from harness.runner.config import Cell, Preset
from harness.runner.plan import Plan, plan
from harness.runner.setup import as_served, check_confinement, check_world, endpoints_of, in_process, spending_of
from harness.sandbox import Sandbox

logger = logging.getLogger(__name__)

# Its prompts and rows are those of the first method of the main table.
METHOD = "single"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request came to: the reply and how it was graded."""

    reply: Reply
    verdict: Verdict


@dataclass(frozen=True)
class Passes:
    """The answers of a backbone to the same requests, in the same order.

    Attributes:
        backbone: Its key.
        served: What its server says of itself.
        alone: Asked one at a time.
        again: The same once more.
        loaded: Asked all at once.
        weights: Which other weights than the original answered, in words; ``None`` for the original.
    """

    backbone: str
    served: Served
    alone: tuple[Answer, ...]
    again: tuple[Answer, ...]
    loaded: tuple[Answer, ...]
    weights: str | None = None


async def measure(preset: Preset, requests: int) -> list[Passes]:
    """Ask every backbone of a preset the same requests three times.

    Servers of different backbones are asked side by side, backbones that share a server one after the other.

    Args:
        preset: Names questions and backbones.
        requests: How many at most, for each backbone; no more than there are test questions.

    Raises:
        UserError: The questions are not prepared; an endpoint does not answer, refuses the key or serves
            another model; or it serves a real one, and this machine cannot confine the programs of real models; or the
            folder is that of a replay.
    """
    if recording.here() is not None:
        raise UserError("a replay asks no server, and a flip rate is no part of a bundle; measure it where servers are")
    plans = {key: plan(preset, Cell(METHOD, preset.benchmarks[0], key, preset.seeds[0])) for key in preset.backbones}
    items = _questions(preset, requests)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="gmr-flips-")))
        endpoints = {key: endpoint for one in plans.values() for key, endpoint in endpoints_of(one).items()}
        client = await stack.enter_async_context(_client(next(iter(plans.values())), endpoints, folder, stack))
        served = {key: await client.served(key, one.backbones[key].model) for key, one in plans.items()}
        for one in plans.values():
            check_world(one, {key: served[key] for key in one.rows})
        sandbox = await stack.enter_async_context(Sandbox())
        check_confinement(sandbox.level, served)
        tools = Tools(sandbox, await stack.enter_async_context(MathVerifier()))
        asking = {key: _Asking(client, as_served(one.backbones[key], served[key])) for key, one in plans.items()}
        turns = _turns(endpoints)
        replies = await gather(_one_after_the_other(asking, keys, items) for keys in turns)
        graded = await _graded({key: found for part in replies for key, found in part.items()}, items, tools)
        return [
            Passes(key, served[key], alone, again, loaded, plans[key].backbones[key].weights)
            for key, (alone, again, loaded) in graded.items()
        ]


class _Asking:
    """Asks one backbone the same requests in different ways."""

    def __init__(self, client: ChatClient, backbone: Backbone) -> None:
        self._client = client
        self._backbone = backbone

    async def passes(self, items: Sequence[Item]) -> tuple[list[Reply], list[Reply], list[Reply]]:
        """The replies of the three passes."""
        requests = [_request(item, self._backbone) for item in items]
        alone, again = await self._one_by_one(requests, "first"), await self._one_by_one(requests, "second")
        loaded = await gather(self._ask(request) for request in requests)
        logger.info("%s: %d requests asked all at once", self._backbone.key, len(requests))
        return alone, again, loaded

    async def _one_by_one(self, requests: Sequence[Request], which: str) -> list[Reply]:
        replies = [await self._ask(request) for request in requests]
        logger.info("%s: %d requests asked one at a time, the %s time", self._backbone.key, len(requests), which)
        return replies

    async def _ask(self, request: Request) -> Reply:
        return await self._client.complete(self._backbone.key, request)


Replies = Mapping[str, tuple[list[Reply], list[Reply], list[Reply]]]


async def _one_after_the_other(asking: Mapping[str, _Asking], keys: Sequence[str], items: Sequence[Item]) -> Replies:
    return {key: await asking[key].passes(items) for key in keys}


def _turns(endpoints: Mapping[str, Endpoint]) -> list[list[str]]:
    """The backbones, those that share a server together."""
    turns: list[tuple[set[str], list[str]]] = []
    for key, endpoint in endpoints.items():
        urls, keys = set(endpoint.urls), [key]
        for one in [one for one in turns if one[0] & urls]:
            turns.remove(one)
            urls, keys = urls | one[0], [*one[1], *keys]
        turns.append((urls, keys))
    return [keys for _, keys in turns]


def _questions(preset: Preset, requests: int) -> list[Item]:
    """So many test questions, or all there are, the benchmarks taking turns."""
    row = preset.backbones[0]
    tests = [plan(preset, Cell(METHOD, key, row, preset.seeds[0])).test for key in preset.benchmarks]
    mixed: Iterator[Item | None] = chain.from_iterable(zip_longest(*tests))
    found = list(islice((item for item in mixed if item is not None), requests))
    if len(found) < requests:
        logger.warning("preset %s has %d test questions, so each backbone is asked %d", preset.name, *2 * [len(found)])
    return found


def _request(item: Item, backbone: Backbone) -> Request:
    rules = find_benchmark(item.benchmark).output_rules
    return Request(backbone.model, backbone.revision, question_prompt("", rules, item))


def _client(chosen: Plan, endpoints: Mapping[str, Endpoint], folder: Path, stack: AsyncExitStack) -> AskingAlways:
    log = stack.enter_context(CallLog(folder / layout.CALL_LOG))
    attempts = AttemptLog(folder / "attempts.jsonl")
    stack.callback(attempts.close)
    return AskingAlways(endpoints, log, attempts, (), in_process(chosen), spending_of(chosen))


async def _graded(replies: Replies, items: Sequence[Item], tools: Tools) -> Mapping[str, list[tuple[Answer, ...]]]:
    # Equal texts are graded once, so that no verdict differs but with its text.
    verdicts: dict[tuple[str, str], asyncio.Task[Verdict]] = {}

    async def one(item: Item, reply: Reply) -> Answer:
        if reply.error is not None:
            return Answer(reply, Verdict(False, None, Status.CALL_FAILED, reply.error))
        key = (item.id, reply.text)
        if key not in verdicts:
            grading = find_benchmark(item.benchmark).grade(item, reply.text, tools)
            verdicts[key] = asyncio.create_task(grading)
        return Answer(reply, await verdicts[key])

    async def graded(found: Sequence[Reply]) -> tuple[Answer, ...]:
        return tuple(await gather(one(item, reply) for item, reply in zip(items, found, strict=True)))

    return {key: [await graded(found) for found in passes] for key, passes in replies.items()}

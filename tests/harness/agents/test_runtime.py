"""Attempts: solving, recording, grading, keyed random numbers, cancellation, and the stop after too many failures."""

import asyncio
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from harness import scripted
from harness.agents import rng
from harness.agents.runtime import ErrorShare
from harness.agents.trajectory import Call, CallSpec, Decision, Episode, Trajectory
from harness.benchmarks.items import Item, Status
from harness.concurrency import gather
from harness.errors import UserError
from harness.llm.request import GREEDY, Message, Reply, Request, Sampling
from harness.method import Context
from harness.scripted import ScriptedModel
from tests import fixtures
from tests.fixtures import Client, runtime

ITEM = Item(id="1", benchmark="toy", question="?", gold="right")
MATHS = Item(id="1", benchmark="math", question="?", gold="1")


async def two_layers(seed: int) -> Trajectory:
    client = Client(lambda *_: "re", (1000, 100), late=lambda number: (seed + 1) * number % 7)
    context = fixtures.context(MATHS, client)

    async def ask(step: int, slot: int) -> None:
        await context.ask("small", (Message("user", f"{step}"),), CallSpec(step, slot=slot))
        context.decide(Decision(step, "role", slot, "someone", 2, -0.5))

    for step in (1, 2):
        await asyncio.gather(*(ask(step, slot) for slot in range(4)))
    await context.ask("large", (Message("user", "all"),), CallSpec(3, "aggregate", is_step=False))
    return context.close("done")


async def test_the_record_does_not_show_latency_and_costs_follow_the_paper() -> None:
    first, *others = [await two_layers(seed) for seed in range(5)]
    assert all(other == first for other in others)
    order = [*product((1, 2), range(4))]
    assert [(call.step, call.slot) for call in first.calls] == [*order, (3, 0)]
    assert [(decision.step, decision.slot) for decision in first.decisions] == order
    # Every use is charged, also where the answer was known.
    small, large = 1 * (1000 * 0.003 + 100 * 0.010) / 1e6, 10 * (1000 * 0.003 + 100 * 0.010) / 1e6
    assert first.cost_steps == pytest.approx(8 * small)
    assert first.cost_total == pytest.approx(8 * small + large)
    assert (first.depth, first.calls[-1].purpose) == (2, "aggregate")
    assert len({call.key for call in first.calls if call.step == 1}) == 1


async def asked(temperature: float | None, **equipment: Any) -> list[Request]:
    context = fixtures.context(MATHS, client := ScriptedModel("x"), **equipment)
    for place in product((1, 2), ("act", "second_call"), (0, 1)):
        await context.ask("large", (Message("user", "same"),), CallSpec(*place, temperature=temperature))
    return [request for _, request in client.asked]


async def test_calls_above_temperature_0_share_no_sample_and_repeat_to_the_byte() -> None:
    base = await asked(0.1)
    assert {fixtures.sampling(request) for request in base} == {Sampling(0.1)}
    keys = {request.key for request in base}
    assert len(keys) == len({request.draw for request in base}) == 8
    assert await asked(0.1) == base
    for other in ({"seed": 1}, {"episode": Episode(1, 0)}, {"episode": Episode(0, 1)}):
        assert not {request.key for request in await asked(0.1, **other)} & keys
    assert len({request.key for request in await asked(0.0)}) == 1
    # Without a temperature, sampling is that of the publisher.
    published = await asked(None)
    assert {fixtures.sampling(request) for request in published} == {scripted.backbones()["large"].sampling}
    assert len({request.draw for request in published}) == 8


@pytest.mark.parametrize("temperature", [None, 0.1, 0.0])
async def test_greedy_decoding_leaves_nothing_to_chance_whatever_a_method_asks_for(temperature: float | None) -> None:
    base = await asked(temperature, greedy=True)
    assert {(fixtures.sampling(request), request.draw) for request in base} == {(GREEDY, 0)}
    drawn = fixtures.context(MATHS, client := ScriptedModel("x"), greedy=True)
    await drawn.ask("small", (Message("user", "same"),), CallSpec(temperature=0.7, draw=5))
    # One of several samples of a prompt would be the same reply as the others.
    await drawn.ask("small", (Message("user", "same"),), CallSpec(temperature=0.7, draw=5, is_sample=True))
    assert [(request.temperature, request.draw) for _, request in client.asked] == [(0.0, 0), (0.7, 5)]
    assert drawn.close("x").samplings == {GREEDY, Sampling(0.7)}


async def test_thinking_is_charged_and_handed_on_to_nobody() -> None:
    thought, endless = ("<think>\n17?\n</think>42", "stop"), ("<think>\n17", "length")
    client = ScriptedModel(*(Reply(text, 1000, 9000, reason, "m") for text, reason in (thought, endless)))
    context = fixtures.context(MATHS, client)
    replies = [await context.ask("small", (Message("user", "?"),), CallSpec(step)) for step in (1, 2)]
    assert [(reply.text, reply.completion_tokens) for reply in replies] == [("42", 9000), ("", 9000)]
    assert [context.close(reply.text).cut_off for reply in replies] == [False, True]
    alike = fixtures.context(MATHS, ScriptedModel(Reply("42", 1000, 9000, "stop", "m")))
    await alike.ask("small", (Message("user", "?"),))
    assert context.close("").cost_total == 2 * alike.close("").cost_total > 0


def test_draws_are_distributed_as_they_say() -> None:
    keys, weights = [str(n) for n in range(4000)], np.array([0.45, 0.25, 0.2, 0.1])
    for draw, distribution in ((rng.uniform, "uniform"), (rng.normal, "norm")):
        assert stats.kstest([draw("evenness", key) for key in keys], distribution).pvalue > 1e-3
    counts = Counter(rng.weighted(list(weights), "weights", key) for key in keys)
    assert stats.chisquare([counts[index] for index in range(4)], 4000 * weights).pvalue > 1e-3


async def test_the_first_failure_cancels_the_others_and_waits_until_they_have_cleaned_up() -> None:
    ended = []

    async def fail(error: Exception) -> None:
        await asyncio.sleep(0)
        raise error

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.append(1)

    first = ValueError("first")
    with pytest.raises(ValueError, match="first") as caught:
        await gather([work(), fail(first), work(), fail(KeyError("second"))])
    assert (caught.value, len(ended)) == (first, 2)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_answer_that_outlived_a_failed_last_call_is_graded() -> None:
    async def keep_the_first(item: Item, context: Context) -> str:
        first = await context.ask("small", (Message("user", "one"),))
        await context.ask("small", (Message("user", "two"),), CallSpec(step=2))
        return first.text

    answered = await runtime(ScriptedModel("right", Reply.failed("m", "no"))).attempt(keep_the_first, ITEM)
    assert (answered.verdict.status, answered.verdict.correct) == (Status.GRADED, True)


def failed(error: str, backbone: str = "small") -> Call:
    return Call(1, "solve", 0, backbone, "", "key", 0, 0, 0.0, True, "error", error)


def test_the_most_frequent_errors_are_named_with_their_number_and_their_backbone() -> None:
    calls = [*map(failed, ["odd", *["reset"] * 2, "rare", "rarer"]), *[failed("Error code: 500", "large")] * 3]
    share = ErrorShare(0.35)
    for call in calls[:-1]:
        share.count_attempt(call)
    told = r"^8 of 8 .* \(limit 35%\), .* 3 x 'Error code: 500' from large, 2 x .* 'odd' from small. Fix .*`gmr retry`"
    with pytest.raises(UserError, match=told):
        share.count_attempt(calls[-1])
    with pytest.raises(UserError, match=r"1 x '<html> <body>x{3}") as caught:
        ErrorShare(0.0).count_attempt(failed("<html>\n  <body>" + "x" * 10_000))
    assert len(str(caught.value)) < 400

"""Attempts: solving and grading, keyed random numbers, and the one-line stop after too many failures."""

import itertools

import pytest

from harness.agents.runtime import ErrorShare
from harness.agents.trajectory import TEST, Call, CallSpec, Episode
from harness.benchmarks.items import Item, Status
from harness.errors import UserError
from harness.llm.request import Message, Reply
from harness.method import Context
from harness.scripted import ScriptedModel
from tests.fixtures import runtime

ITEM = Item(id="1", benchmark="toy", question="?", gold="right")


async def test_chance_belongs_to_seed_episode_question_and_decision() -> None:
    items = [ITEM, Item(id="2", benchmark="toy", question="?", gold=""), Item("1", "other", "?", "")]
    attempts = itertools.product((0, 1), items, (TEST, Episode(1, 0), Episode(1, 1)))
    contexts = [runtime(None, seed).context(item, episode) for seed, item, episode in attempts]
    decisions = [*itertools.product((1, 2), "ab", (0, 1))]
    numbers = [context.uniform(*decision) for context in contexts for decision in decisions]
    assert len(set(numbers)) == len(numbers) == 8 * len(contexts)
    assert runtime(None).context(ITEM).uniform(1, "a") == contexts[0].uniform(1, "a")
    assert all(0 < number < 1 for number in numbers)


async def test_an_answer_that_outlived_a_failed_last_call_is_graded() -> None:
    async def keep_the_first(item: Item, context: Context) -> str:
        first = await context.ask("small", (Message("user", "one"),))
        await context.ask("small", (Message("user", "two"),), CallSpec(step=2))
        return first.text

    answered = await runtime(ScriptedModel("right", Reply.failed("m", "no"))).attempt(keep_the_first, ITEM)
    assert (answered.verdict.status, answered.verdict.correct) == (Status.GRADED, True)


def failed(error: str, backbone: str = "small") -> Call:
    return Call(1, "solve", 0, backbone, "", "key", 0, 0, 0.0, True, "error", error)


def message_after(share: ErrorShare, *calls: Call | None) -> str:
    *before, last = calls
    for call in before:
        share.count_attempt(call)
    with pytest.raises(UserError) as caught:
        share.count_attempt(last)
    return str(caught.value)


@pytest.mark.parametrize(("limit", "attempts", "allowed"), [(0.05, 1, 1), (0.1, 20, 2), (0.1, 100, 10), (0.0, 500, 0)])
def test_the_share_of_failed_attempts_is_taken_over_at_least_twenty(limit: float, attempts: int, allowed: int) -> None:
    calls = [*[None] * (attempts - allowed), *[failed("down")] * (allowed + 1)]
    assert message_after(ErrorShare(limit), *calls).startswith(f"{allowed + 1} of {attempts + 1} attempts failed")


def test_the_most_frequent_errors_are_named_with_their_number_and_their_backbone() -> None:
    calls = [*map(failed, ["odd", *["reset"] * 2, "rare", "rarer"]), *[failed("Error code: 500", "large")] * 3]
    message = message_after(ErrorShare(0.35), *calls)
    assert message.startswith("8 of 8 attempts failed (limit 35%), most often by 3 x 'Error code: 500' from large, 2 x")
    assert message.endswith("'odd' from small. Fix the cause, then `gmr retry` asks the failed calls again")
    message = message_after(ErrorShare(0.0), failed("<html>\n  <body>" + "x" * 10_000))
    assert "1 x '<html> <body>xxx" in message
    assert len(message) < 400

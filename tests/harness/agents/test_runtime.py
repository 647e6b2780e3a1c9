from typing import Any

import pytest

from harness.agents.error_share import ErrorShare
from harness.agents.runtime import Runtime
from harness.agents.trajectory import TEST, Context, Episode
from harness.benchmarks.items import Item, Status
from harness.errors import UserError
from harness.llm.request import Message, Reply
from tests.exact import Exact
from tests.scripted import ScriptedClient, backbones

ITEM = Item(id="1", benchmark="toy", question="?", gold="right")


def runtime(*replies: str | Reply, seed: int = 0, limit: float = 0.05) -> Runtime:
    parts: dict[str, Any] = {"benchmark": Exact(), "tools": None, "code_tools": None, "embeddings": None}
    client: Any = ScriptedClient(*replies)
    return Runtime(client=client, backbones=backbones(), seed=seed, errors=ErrorShare(limit), **parts)


async def ask(item: Item, context: Context) -> str:
    return (await context.ask("small", (Message("user", item.question),))).text


async def test_an_attempt_is_solved_and_graded() -> None:
    place = runtime("right", "wrong")
    first, second = [await place.attempt(ask, ITEM) for _ in range(2)]
    assert (first.verdict.correct, second.verdict.correct) == (True, False)
    assert first.trajectory.answer == "right"
    assert len(first.trajectory.calls) == 1


async def test_chance_belongs_to_seed_episode_question_and_decision() -> None:
    other = Item(id="2", benchmark="toy", question="?", gold="right")
    elsewhere = Item(id="1", benchmark="other", question="?", gold="right")
    contexts = [
        runtime("x", seed=seed).context(ITEM, episode)
        for seed in (0, 1)
        for episode in (TEST, Episode(1, 0), Episode(1, 1))
    ]
    contexts += [runtime("x").context(item) for item in (other, elsewhere)]
    numbers = [
        context.uniform(step, name, slot) for context in contexts for step in (1, 2) for name in "ab" for slot in (0, 1)
    ]
    assert len(set(numbers)) == len(numbers) == 8 * len(contexts)
    assert runtime("y").context(ITEM).uniform(1, "a") == contexts[0].uniform(1, "a")
    assert all(0 < number < 1 for number in numbers)


async def test_what_is_no_text_is_told_in_one_line() -> None:
    async def forgetful(item: Item, context: Context) -> Any:
        return await context.ask("small", (Message("user", "one"),))

    with pytest.raises(UserError, match=r"forgetful of \S+ returned a Reply; expected the answer's text") as caught:
        await runtime("right").attempt(forgetful, ITEM)
    assert "\n" not in str(caught.value)


async def test_an_answer_that_outlived_a_failed_last_call_is_graded() -> None:
    async def keep_the_first(item: Item, context: Context) -> str:
        first = await context.ask("small", (Message("user", "one"),))
        await context.ask("small", (Message("user", "two"),), step=2)
        return first.text

    answered = await runtime("right", Reply.failed("m", "no")).attempt(keep_the_first, ITEM)
    assert answered.verdict.status is Status.GRADED
    assert answered.verdict.correct == (ITEM.gold == "right")

"""Several paths: how they split, what they share, how they vote."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from baselines.puppeteer.actions import KEYS, TERMINATE
from baselines.puppeteer.answer import elected
from baselines.puppeteer.policy import Policy
from baselines.puppeteer.prompts import fenced
from baselines.puppeteer.rewards import returns, step_reward
from harness.agents.code_tools import CodeTools
from harness.training.learning import seeded
from tests.baselines.puppeteer.world import CODE, MATHS, Certain, Client, config, runtime, walk

REASONING, CRITIQUE, MODIFY = (KEYS.index(key) for key in ("reasoning", "critique", "modify"))


class ByState:
    """A policy over what a path has brought so far: actions in order of preference by the number of outputs."""

    def __init__(self, *plans: str) -> None:
        self.plans = [plan.split() for plan in plans]

    def log_probs(self, state: Any, barred: Any = ()) -> Any:
        # The mean of one output is that output; of more it is not.
        last, mean = state[384:768], state[768:]
        depth = 0 if not last.any() else 1 if np.allclose(last, mean) else 2
        logits = np.full(len(KEYS), -50.0)
        for rank, key in enumerate(self.plans[depth]):
            logits[KEYS.index(key)] = 2.0 - rank
        logits[list(barred)] = -np.inf
        return logits - np.log(np.exp(logits).sum())


async def test_a_path_splits_into_at_most_three_and_copies_share_the_beginning() -> None:
    policy = ByState("reasoning", "critique modify conclude", "terminate")
    client = Client()
    # The first decision would like three paths and has room for one more only.
    trajectory, trace = await walk(policy, client, greedy=True, paths=2)
    assert len({decision.slot for decision in trajectory.decisions}) == 2
    first, second = (choice for choice in trace if choice.parent is None)
    assert (first.action, first.barred) == (REASONING, (TERMINATE,))
    assert second.barred == (TERMINATE, REASONING)


async def test_a_split_later_on_copies_history_and_conversations() -> None:
    policy = ByState("reasoning critique modify", "critique modify reasoning", "terminate")
    client = Client()
    trajectory, trace = await walk(policy, client, greedy=True, paths=4, max_steps=2)
    roots = [choice for choice in trace if choice.parent is None]
    assert len(roots) == 3
    # One place was left, and the first path in order took it.
    children = {place: [c.action for c in trace if c.parent == place] for place in range(3)}
    assert [len(found) for found in children.values()] == [2, 1, 1]
    assert children[0] == [CRITIQUE, MODIFY]
    calls = [(call.step, call.slot, call.role) for call in trajectory.calls if call.is_step]
    assert calls[0] == (1, 0, "reasoning")
    assert (2, 0, "critique") in calls
    assert (2, 3, "modify") in calls
    shared = "[1] Reasoner:\nText 1. The answer is 1"
    seconds = [messages for messages in client.conversations[3:] if "[1] Reasoner" in messages[1].content]
    assert sum(shared in messages[1].content for messages in seconds) == 2


async def test_draws_are_without_replacement_and_carry_their_sequential_probability() -> None:
    policy = seeded(Policy, "any").snapshot()
    distinct = set()
    for seed in range(30):
        trajectory, trace = await walk(policy, Client(), seed=seed, paths=3, max_steps=1)
        roots = [choice for choice in trace if choice.parent is None]
        assert len({choice.action for choice in roots}) == 3
        whole = np.exp(policy.log_probs(roots[0].state))
        left = 1 - whole[TERMINATE]
        for choice in roots:
            assert choice.log_prob == pytest.approx(math.log(whole[choice.action] / left), abs=1e-12)
            left -= whole[choice.action]
        recorded = [one for one in trajectory.decisions if one.step == 1]
        assert [one.log_prob for one in recorded] == [choice.log_prob for choice in roots]
        assert [one.options for one in recorded] == [9, 8, 7]
        context = runtime(Client(), seed).context(MATHS)
        for slot, choice in enumerate(roots):
            mass = np.exp(policy.log_probs(choice.state, choice.barred)).cumsum()
            expected = np.searchsorted(mass, context.uniform(1, "action", slot), side="right")
            assert choice.action == expected
        distinct.add(tuple(choice.action for choice in roots))
    assert len(distinct) > 10


@pytest.mark.parametrize("paths", [1, 2, 3, 4, 6])
async def test_there_are_never_more_paths_than_allowed(paths: int) -> None:
    policy = seeded(Policy, "any").snapshot()
    for seed in range(5):
        trajectory, trace = await walk(policy, Client(), seed=seed, paths=paths)
        ends = [choice for choice in trace if choice.action == TERMINATE]
        finals = [call for call in trajectory.calls if not call.is_step]
        assert len(ends) == len(finals) == len({call.slot for call in finals}) <= paths
        assert {call.step for call in finals} == {trajectory.depth + 1}


async def test_no_latency_shows() -> None:
    policy = seeded(Policy, "any").snapshot()

    def says(request: Any, number: int) -> str:
        return f"{len(request.messages)} {request.key[:8]}. The answer is {int(request.key, 16) % 3}"

    found = [
        await walk(policy, Client(says, late), seed=3, paths=4)
        for late in (lambda number: 0, lambda number: 7 - number % 7, lambda number: 3 * number % 5)
    ]
    for trajectory, trace in found[1:]:
        assert trajectory == found[0][0]
        assert [c.action for c in trace] == [c.action for c in found[0][1]]
        assert [c.tokens for c in trace] != []


async def test_two_paths_with_a_shared_beginning_keep_its_reward_and_pay_for_it_once() -> None:
    """Upstream scales the shared reward once for each path (D-PUP-6)."""
    settings = config(paths=4, max_steps=2)
    policy = ByState("reasoning", "critique modify reasoning", "terminate")
    alone, lone = await walk(ByState("reasoning", "critique", "terminate"), Client(), greedy=True, max_steps=2)
    _, trace = await walk(policy, Client(), greedy=True, paths=4, max_steps=2)
    shared = trace[0]
    assert (shared.step, shared.tokens) == (lone[0].step, lone[0].tokens) == (0, 101)
    assert [choice.parent for choice in trace].count(0) == 2
    gains = returns(trace, True, 10, settings)
    children = [place for place, choice in enumerate(trace) if choice.parent == 0]
    own = step_reward(0, 101, 10, settings)
    assert gains[0] == pytest.approx(own + 0.99 * sum(gains[place] for place in children), abs=1e-12)
    # By hand: every path is its rewards discounted from the shared choice on, which itself counts once.
    by_hand = own
    for place in children:
        second = step_reward(1, trace[place].tokens, 10, settings)
        by_hand += 0.99 * second + 0.99**2 * 1.0
    assert gains[0] == pytest.approx(by_hand, abs=1e-12)
    assert returns(lone, True, 10, settings)[0] == pytest.approx(
        own + 0.99 * step_reward(1, lone[1].tokens, 10, settings) + 0.99**2, abs=1e-12
    )
    assert alone.depth == 2


def vote(*texts: str) -> str:
    return elected(texts, runtime(Client()).context(MATHS))


def test_the_majority_wins_and_ties_go_to_the_last() -> None:
    assert vote("A: answer is 1", "B: answer is 2", "C: answer is 1") == "C: answer is 1"
    assert vote("A: answer is 1", "B: answer is 2") == "B: answer is 2"
    assert vote("A: answer is 1", "B: answer is 2", "C: answer is 2", "D: answer is 1") == "D: answer is 1"
    assert vote("A: answer is 1", "", "") == "A: answer is 1"
    assert vote("answer is ", "") == ""
    assert vote("one") == "one"


async def test_programs_are_not_voted_on_and_the_last_path_with_one_gives_it() -> None:
    first, second = ("def double(x):\n    return 2 * x\n", "def double(x):\n    return x + x\n")
    replies = [fenced(first), fenced(second), "None here."]
    bench: Any = CodeTools(None)  # type: ignore[arg-type]
    policy = Certain("reasoning critique modify")
    client = Client(lambda request, number: replies[number - 1])
    trajectory, _ = await walk(policy, client, CODE, code_tools=bench, greedy=True, paths=3, max_steps=1)
    assert len(trajectory.calls) == 3
    assert trajectory.answer == fenced(second)

"""Step weights, rewards, returns and utility against figures worked out by hand and plain sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.puppeteer.agents import KEYS, TERMINATE
from baselines.puppeteer.method import returns, step_reward, step_weight, utility
from baselines.puppeteer.policy import Choice, Policy, Trace
from harness.agents.results import Answered
from harness.agents.trajectory import Trajectory
from harness.benchmarks.items import Status, Verdict
from harness.training.learning import seeded
from tests.baselines.puppeteer.world import Client, config, walk

STATE = np.zeros(1152)


def chain(*tokens: int) -> Trace:
    """One path: steps that used so many tokens, and its end."""
    steps = [Choice(at, STATE, (), 1, -1.0, used) for at, used in enumerate(tokens)]
    end = Choice(len(tokens), STATE, (), TERMINATE, -1.0)
    return (*steps, end)


def graded(trajectory: Trajectory, correct: bool) -> Answered:
    return Answered(trajectory, Verdict(correct, "", Status.GRADED))


def test_the_step_weight_grows_from_the_released_figure_to_a_tenth() -> None:
    # D = 2: 0.1 log2(4/3); the released example log shows -0.0415 for a factor of 1.
    assert step_weight(0, 2) == pytest.approx(0.0415, abs=5e-5)
    assert step_weight(0, 6) == pytest.approx(0.1 * math.log2(8 / 7))
    assert step_weight(6, 6) == pytest.approx(0.1)
    weights = [step_weight(step, 6) for step in range(7)]
    assert weights == sorted(weights)


@pytest.mark.parametrize(("parameters_b", "factor"), [(14, 0.125), (32, 0.285), (200, 1.78)])
def test_the_scale_of_a_step_of_445_tokens(parameters_b: float, factor: float) -> None:
    """The scale that D-PUP-6 states."""
    reward = step_reward(0, 445, parameters_b, config(max_steps=2))
    assert reward == pytest.approx(-0.0415 * factor, abs=2e-4)


def test_kappa_scales_the_cost_of_a_step() -> None:
    plain, doubled, free = (step_reward(1, 300, 14, config(step_weight=kappa)) for kappa in (1, 2, 0))
    assert doubled == pytest.approx(2 * plain)
    assert plain < free == 0


@pytest.mark.parametrize("correct", [True, False])
def test_returns_of_a_path_worked_out_by_hand(correct: bool) -> None:
    """Two steps of 1000 and 500 tokens on 10 B with D = 6."""
    first = -0.1 * math.log2(1 + 1 / 7) * 2 * 10 * 1000 / 1e5
    second = -0.1 * math.log2(1 + 2 / 7) * 2 * 10 * 500 / 1e5
    end = 1.0 if correct else -1.0
    expected = [first + 0.99 * (second + 0.99 * end), second + 0.99 * end, end]
    np.testing.assert_allclose(returns(chain(1000, 500), correct, 10, config()), expected, rtol=1e-12)
    assert expected[0] == pytest.approx(-0.0038529 - 0.99 * 0.0036257 + (0.9801 if correct else -0.9801), abs=1e-6)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=6), st.booleans(), st.floats(0, 1), st.floats(0, 50))
def test_returns_of_any_path_are_discounted_sums(
    tokens: list[int], correct: bool, gamma: float, parameters_b: float
) -> None:
    found = returns(chain(*tokens), correct, parameters_b, config(gamma=gamma))
    rewards = [
        -0.1 * math.log(1 + (at + 1) / 7) / math.log(2) * 2 * parameters_b * used / 1e5
        for at, used in enumerate(tokens)
    ]
    rewards.append(1.0 if correct else -1.0)
    for at in range(len(rewards)):
        assert found[at] == pytest.approx(
            sum(gamma**later * reward for later, reward in enumerate(rewards[at:])), abs=1e-9
        )


@pytest.mark.parametrize("correct", [True, False])
async def test_the_utility_of_one_path_is_the_return_of_its_first_choice(correct: bool) -> None:
    policy = seeded(Policy, "any").snapshot()
    for seed in range(10):
        trajectory, trace = await walk(policy, Client(), seed=seed)
        first = returns(trace, correct, 10, config())[0]
        assert utility(graded(trajectory, correct), 10, config()) == pytest.approx(first, abs=1e-12)


async def test_both_calls_of_the_programmer_are_charged_and_the_final_call_is_not() -> None:
    from harness.agents.code_tools import Value
    from tests.baselines.puppeteer.world import Certain

    class Bench:
        async def value(self, text: str) -> Value:
            return Value(printed="42")

    trajectory, trace = await walk(Certain("python", "terminate"), Client(), code_tools=Bench(), greedy=True)
    assert KEYS[trace[0].action] == "python"
    # The n-th call reports 90 + n and 10 tokens.
    assert [choice.tokens for choice in trace] == [101 + 102, 0]
    assert len(trajectory.calls) == 3

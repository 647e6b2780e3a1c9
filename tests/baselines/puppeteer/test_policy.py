"""The network, rewards, loss and update against plain NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import entropy

from baselines.puppeteer.agents import KEYS, TERMINATE
from baselines.puppeteer.method import Puppeteer, returns
from baselines.puppeteer.policy import STATE, ActionChoice, Policy
from harness.agents.trajectory import Episode
from harness.scripted import setting
from harness.training.learning import Learning, seeded
from harness.training.loop import TrainingStep
from tests.baselines.puppeteer.test_rollout import Counting, config, walk
from tests.fixtures import ITEMS, graded_rollouts


def plain(policy: Policy, state: np.ndarray, barred: tuple[int, ...]) -> np.ndarray:
    *inner, weight, bias = [value.numpy() for value in policy.state_dict().values()]
    hidden = state
    for layer in range(0, len(inner), 2):
        hidden = np.maximum(inner[layer] @ hidden + inner[layer + 1], 0)
    logits = weight @ hidden + bias
    logits[list(barred)] = -np.inf
    return logits - logsumexp(logits)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=6), st.floats(0, 1), st.floats(0, 50), st.booleans())
def test_returns_are_discounted_sums(tokens: list[int], gamma: float, parameters_b: float, correct: bool) -> None:
    steps = [ActionChoice(at, np.zeros(STATE), 1, -1.0, used) for at, used in enumerate(tokens)]
    trace = (*steps, ActionChoice(len(tokens), np.zeros(STATE), TERMINATE, -1.0))
    values = returns(trace, correct, parameters_b, config(gamma=gamma))
    weights = [-0.1 * math.log(1 + (at + 1) / 7) / math.log(2) for at in range(len(tokens))]
    rewards = [weight * 2 * parameters_b * used / 1e5 for weight, used in zip(weights, tokens, strict=True)]
    rewards.append(1.0 if correct else -1.0)
    for at in range(len(rewards)):
        expected = sum(gamma**later * reward for later, reward in enumerate(rewards[at:]))
        assert values[at] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("limit", [6, 2])
async def test_loss_and_log_of_an_update_are_those_of_plain_numpy(limit: int) -> None:
    settings, learner = config(max_steps=limit, entropy_weight=0.3), Learning(seeded(Policy, "learning"), 1e-3)
    shapes = [tuple(value.shape) for value in learner.network.parameters() if value.dim() == 2]
    assert shapes == [(512, 1152), (128, 512), (32, 128), (10, 32)]
    episode, puppeteer = Episode(1, 0), Puppeteer(setting("large"), settings)
    walks = (walk(learner.network, Counting(), item, episode=episode, max_steps=limit) for item in ITEMS[:6])
    answered, traces = await graded_rollouts(walks)
    assert (limit == 2) <= any(choice.step == limit for trace in traces for choice in trace)
    expected, gains_of_all = 0.0, []
    for rollout, trace in zip(answered, traces, strict=True):
        gains = returns(trace, rollout.verdict.correct, 10, settings)
        gains_of_all.append(gains)
        assert puppeteer.utility(rollout) == pytest.approx(gains[0], abs=1e-12)
        entropies = []
        for choice, gain in zip(trace, gains, strict=True):
            log_probs = plain(learner.network, choice.state, () if choice.step else (TERMINATE,))
            # What is computed again is what was sampled.
            assert log_probs[choice.action] == pytest.approx(choice.log_prob, abs=1e-12)
            if choice.step < limit:
                entropies.append(entropy(np.exp(log_probs)))
            expected -= log_probs[choice.action] * gain
        expected -= 0.3 * np.mean(entropies)
    before = learner.learned()
    log = puppeteer.learn(learner, answered, traces, TrainingStep(1, 1, 1))
    assert log["loss"] == pytest.approx(expected, abs=1e-9)
    learned = learner.learned()
    assert all(np.isfinite(value).all() and not np.array_equal(value, before[name]) for name, value in learned.items())
    decisions = [decision for rollout in answered for decision in rollout.trajectory.decisions]
    for key in KEYS:
        share = sum(decision.choice == key for decision in decisions) / len(decisions)
        assert log[f"share_{key}"] == pytest.approx(share)
    assert log["at_step_limit"] == pytest.approx(sum(decision.step == limit + 1 for decision in decisions) / 6)
    assert log["utility"] == pytest.approx(np.mean([gains[0] for gains in gains_of_all]))
    assert log["return"] == pytest.approx(np.concatenate(gains_of_all).mean())
    assert 2 < log["entropy"] <= math.log(10)

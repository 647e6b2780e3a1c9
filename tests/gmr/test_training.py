"""Objective, advantage, log and update against the paper's equations."""

import statistics
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gmr.training import Evaluation, Step, Trace, advantages, evaluate, loss, training_log
from harness.agents.trajectory import Episode
from harness.training.learning import Learning
from harness.training.loop import TrainingStep
from tests.fixtures import ITEMS, Client, attempt, graded_rollouts
from tests.gmr.fixtures import PROFILES, config, method, new_router, units, walk


def test_the_utility_charges_the_steps_and_the_aggregation_only_if_told() -> None:
    for correct in (True, False):
        rollout = attempt(correct, (0.001, True), (0.002, True), (0.004, False))
        for weight in (0, 20, 50):
            for charged, cost in (("steps", 0.003), ("total", 0.007)):
                gmr = method(lambda_c=weight, charged=charged)
                assert gmr.utility(rollout) == pytest.approx(correct - weight * cost)


UTILITIES = st.sampled_from([-1.5, -0.02, 0.0, 0.1, 0.97, 1.0])


@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 6)), elements=UTILITIES))
def test_advantages_are_centred_in_their_group_and_divided_by_its_spread_only_if_asked(utilities: Any) -> None:
    result = advantages(utilities)
    for group, centred in zip(utilities.tolist(), result.tolist(), strict=True):
        assert centred == pytest.approx([u - sum(group) / len(group) for u in group], abs=1e-12)
    for group, scaled in zip(utilities.tolist(), advantages(utilities, "standardised").tolist(), strict=True):
        spread = statistics.stdev(group) if len(set(group)) > 1 else 1.0
        assert scaled == pytest.approx([(u - sum(group) / len(group)) / spread for u in group], rel=1e-6, abs=1e-9)
    # Equal utilities leave exactly nothing, where 0.1 less its mean is a rounding error.
    assert not np.any(advantages(np.full((2, 3), 0.1)))
    assert np.any(np.full(3, 0.1) - np.full(3, 0.1).mean())


def test_the_loss_is_that_of_the_paper_and_every_term_pulls_the_right_way() -> None:
    rng = np.random.default_rng(0)
    log_prob = torch.tensor(rng.normal(size=12), requires_grad=True)
    entropy, vae = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (2.5, 0.7))
    advantage, settings = rng.normal(size=12), config(vae_weight=0.3, entropy_weight=0.2)
    value = loss(Evaluation(log_prob, entropy, {}, {}), advantage, vae, settings)
    expected = -np.dot(log_prob.detach().numpy(), advantage) / 12 + 0.3 * 0.7 - 0.2 * 2.5
    assert value.item() == pytest.approx(expected)
    value.backward()  # type: ignore[no-untyped-call]
    assert log_prob.grad.tolist() == pytest.approx((-advantage / 12).tolist())
    assert (entropy.grad, vae.grad) == (-0.2, 0.3)


def test_the_training_log_utilities_memories_and_entropies() -> None:
    rng = np.random.default_rng(0)

    def trace(*steps: tuple[bool, ...]) -> Trace:
        """Return a trajectory of steps: whether it is written, and of each record whether it is seen."""
        return Trace(units(rng), tuple(Step(0, 0, seen, units(rng), written, None) for written, *seen in steps), 0.0)  # type: ignore[arg-type]

    rewards = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    costs = np.array([[0.1, 0.1], [0.1, 0.2], [0.1, 0.1], [0.2, 0.2]])
    utilities = rewards - costs
    traces = [
        trace((True,), (False, True), (True, False)),
        trace((False,), (False,)),
        trace((True,), (True, True), (True, True, False)),
    ]
    evaluation = Evaluation(torch.zeros(2), torch.tensor(0.0), {"role": 1.5, "retrieve": 0.5}, {"role": 0.75})
    measures = training_log(rewards, costs, utilities - utilities.mean(axis=1, keepdims=True), traces, evaluation)
    assert measures == {
        "utility": pytest.approx(utilities.sum() / 8),
        "reward_deviation": 0.125,
        "cost_deviation": pytest.approx(0.0125),
        "equal_reward_groups": 0.75,
        "zero_advantage_groups": 0.5,
        "steps": 8.0,
        "write_rate": 5 / 8,
        "empty_memory": pytest.approx(1 / 3),
        "retrieved": 3 / 5,
        "entropy_role": 1.5,
        "entropy_retrieval": 0.5,
        "max_probability_role": 0.75,
    }
    # No share of nothing.
    assert "retrieved" not in training_log(rewards, costs, utilities, traces[1:2], evaluation)


async def test_the_noise_of_the_autoencoders_follows_seed_and_update_and_the_log_agrees_with_the_rollouts() -> None:
    gmr, losses = method(), set()
    router = new_router(gmr.config, *PROFILES)
    rollouts = [(item, number) for item in ITEMS[:2] for number in range(gmr.config.group)]
    walks = [walk(router, Client(), item, episode=Episode(1, number)) for item, number in rollouts]
    answered, traces = await graded_rollouts(walks)
    utilities = np.array([gmr.utility(rollout) for rollout in answered]).reshape(2, -1)
    sampled, entropy = [trace.log_prob for trace in traces], evaluate(router, traces).mean_entropy.item()
    for seed, update, kind in ((0, 1, "centred"), (1, 1, "centred"), (0, 2, "standardised")):
        learner = method(seed, advantage=kind, vae_weight=0.3, entropy_weight=0.2)
        learning = Learning(new_router(gmr.config, *PROFILES), gmr.config.lr)
        log = learner.learn(learning, answered, traces, TrainingStep(1, update, 2))
        losses.add(log["vae_loss"])
        policy = -np.mean(sampled * advantages(utilities, kind).ravel())
        assert log["loss"] == pytest.approx(policy + 0.3 * log["vae_loss"] - 0.2 * entropy)
    assert len(losses) == 3
    assert log["utility"] == pytest.approx(np.mean([gmr.utility(rollout) for rollout in answered]))
    assert log["steps"] == sum(rollout.trajectory.depth for rollout in answered)
    assert np.isfinite(list(log.values())).all()

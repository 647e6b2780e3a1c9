import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gmr.objective import advantages, loss, utility
from gmr.padded import Evaluation
from harness.agents.trajectory import Call, Trajectory
from harness.benchmarks.items import Status, Verdict
from harness.results import Answered
from tests.gmr.world import ITEMS, config

VALUES = st.floats(-2, 2, allow_nan=False)
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 6))
GROUPS = SHAPES.flatmap(lambda shape: arrays(np.float64, shape, elements=VALUES))


def evaluation(log_prob: torch.Tensor, mean_entropy: torch.Tensor) -> Evaluation:
    return Evaluation(log_prob, mean_entropy, {}, {})


def answered(correct: bool, *costs: tuple[float, bool]) -> Answered:
    """An attempt with calls of these prices, each of a step or not."""
    calls = tuple(
        Call(number, "act", 0, "small", "", "", 0, 0, cost, is_step, "stop", None)
        for number, (cost, is_step) in enumerate(costs, 1)
    )
    return Answered(Trajectory(ITEMS[0], "", calls, ()), Verdict(correct, "", Status.GRADED))


@pytest.mark.parametrize(("reward_cost", "charged"), [("steps", 0.003), ("all", 0.007)])
@pytest.mark.parametrize("correct", [True, False])
def test_the_utility_charges_the_calls_that_the_switch_names(reward_cost: str, charged: float, correct: bool) -> None:
    one = answered(correct, (0.001, True), (0.002, True), (0.004, False))
    for weight in (0, 20, 50):
        found = utility(one, config(lambda_c=weight, reward_cost=reward_cost))
        assert found == pytest.approx(correct - weight * charged)


@given(GROUPS)
def test_advantages_are_the_utilities_centred_in_their_group(utilities: np.ndarray) -> None:
    found = advantages(utilities)
    for group, centred in zip(utilities.tolist(), found.tolist(), strict=True):
        assert sum(centred) == pytest.approx(0, abs=1e-12)
        assert centred == pytest.approx([one - sum(group) / len(group) for one in group], abs=1e-12)


@given(st.floats(-50, 50), st.integers(1, 9))
def test_equal_utilities_leave_exactly_nothing(value: float, group: int) -> None:
    assert not np.any(advantages(np.full((2, group), value)))


def test_the_mean_of_equal_numbers_may_be_another_number() -> None:
    """What the case above protects from: this group would learn from rounding."""
    utilities = np.full((1, 3), 0.1)
    assert np.any(utilities - utilities.mean())
    assert not np.any(advantages(utilities))


@given(GROUPS)
def test_advantages_grow_with_the_spread_and_are_not_divided_by_it(utilities: np.ndarray) -> None:
    assert advantages(10 * utilities) == pytest.approx(10 * advantages(utilities), abs=1e-10)


def test_groups_do_not_mix() -> None:
    assert advantages(np.array([[1.0, 0.0], [5.0, 5.0]])).tolist() == [[0.5, -0.5], [0.0, 0.0]]


def test_the_loss_against_plain_numpy() -> None:
    rng = np.random.default_rng(0)
    log_prob, advantage, entropy, vae = rng.normal(size=12), rng.normal(size=12), 2.5, 0.7
    settings = config(vae_weight=0.3, entropy_weight=0.2)
    found = loss(evaluation(torch.tensor(log_prob), torch.tensor(entropy)), advantage, torch.tensor(vae), settings)
    assert found.item() == pytest.approx(-np.dot(log_prob, advantage) / 12 + 0.3 * vae - 0.2 * entropy)


def test_every_term_pulls_the_right_way() -> None:
    log_prob = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    entropy, vae = (torch.tensor(1.0, dtype=torch.float64, requires_grad=True) for _ in range(2))
    advantage = np.array([1.0, -1.0, 0.5, 0.0])
    loss(evaluation(log_prob, entropy), advantage, vae, config(vae_weight=0.25, entropy_weight=0.5)).backward()  # type: ignore[no-untyped-call]
    assert log_prob.grad is not None
    assert log_prob.grad.tolist() == pytest.approx((-advantage / 4).tolist())
    assert entropy.grad == -0.5
    assert vae.grad == 0.25


def test_without_a_difference_the_policy_has_no_gradient() -> None:
    equal = [answered(True, (0.001, True)) for _ in range(6)]
    utilities = np.array([[utility(one, config()) for one in equal]])
    log_prob = torch.randn(6, dtype=torch.float64, requires_grad=True)
    zero = torch.tensor(0.0, dtype=torch.float64)
    loss(evaluation(log_prob, zero), advantages(utilities).ravel(), zero, config()).backward()  # type: ignore[no-untyped-call]
    assert log_prob.grad is not None
    assert not log_prob.grad.any()


def test_a_shorter_way_to_the_same_answer_is_worth_more() -> None:
    cheap, dear = answered(True, (0.001, True)), answered(True, (0.001, True), (0.001, True))
    wrong = dataclasses.replace(cheap.trajectory)
    values = [utility(one, config()) for one in (cheap, dear, Answered(wrong, Verdict(False, None, Status.EMPTY)))]
    assert values == sorted(values, reverse=True)

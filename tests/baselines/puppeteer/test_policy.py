"""The network against plain NumPy, barred actions, and snapshots."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from baselines.puppeteer.agents import ACTIONS, TERMINATE
from baselines.puppeteer.policy import STATE, Choice, Policy, state_of
from harness.training.learning import seeded

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(6, STATE))
BARRED = [(), (TERMINATE,), (TERMINATE, 0), (0, 1, 2), (3,), tuple(range(9))]


def made(scale: float = 4.0) -> Policy:
    """A policy with strong opinions, so that rounding and ties hide nothing."""
    policy = seeded(Policy, "made")
    with torch.no_grad():
        list(policy.parameters())[-2].mul_(scale)
    return policy


def plain(policy: Policy, state: np.ndarray, barred: tuple[int, ...]) -> np.ndarray:
    """Log-probabilities, written down a second time."""
    weights = [value.numpy() for value in policy.state_dict().values()]
    hidden = state
    for layer in range(0, 8, 2):
        hidden = weights[layer] @ hidden + weights[layer + 1]
        if layer < 6:
            hidden = np.where(hidden > 0, hidden, 0)
    hidden = np.where(np.isin(np.arange(len(hidden)), barred), -np.inf, hidden)
    return hidden - np.log(np.exp(hidden - hidden.max()).sum()) - hidden.max()


def test_the_network_has_the_layers_of_the_specification() -> None:
    policy = Policy()
    shapes = [tuple(layer.weight.shape) for layer in policy.layers if isinstance(layer, torch.nn.Linear)]
    assert shapes == [(512, 1152), (128, 512), (32, 128), (10, 32)]
    assert [type(layer).__name__ for layer in policy.layers] == ["Linear", "ReLU"] * 3 + ["Linear"]
    assert {parameter.dtype for parameter in policy.parameters()} == {torch.float64}
    assert len(ACTIONS) == 10


def test_log_probabilities_and_entropies_of_many_choices_at_once() -> None:
    policy = made()
    actions = [2, 4, 6, 8, 5, 9]
    choices = [
        Choice(0, state, barred, action, 0.0) for state, barred, action in zip(STATES, BARRED, actions, strict=True)
    ]
    found = policy.evaluate(choices)
    for place, action in enumerate(actions):
        expected = plain(policy, STATES[place], BARRED[place])
        sampled = policy.snapshot().log_probs(STATES[place], BARRED[place])
        np.testing.assert_allclose(sampled, expected, atol=1e-12)
        possible = expected[np.isfinite(expected)]
        assert found.log_prob[place].item() == pytest.approx(expected[action], abs=1e-12)
        assert found.entropy[place].item() == pytest.approx(-(np.exp(possible) * possible).sum(), abs=1e-12)
    # A single possible action has no entropy, and its gradient is a number.
    assert found.entropy[5].item() == 0
    (found.entropy.sum() + found.log_prob.sum()).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in policy.parameters() if parameter.grad is not None)


def test_a_snapshot_does_not_move_and_passes_no_gradient() -> None:
    policy = made()
    snapshot = policy.snapshot()
    before = snapshot.log_probs(STATES[0])
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.1)
    assert np.array_equal(snapshot.log_probs(STATES[0]), before)
    assert not np.array_equal(policy.snapshot().log_probs(STATES[0]), before)
    assert all(parameter.requires_grad for parameter in policy.parameters())


def test_the_state_before_the_first_step_and_after_some() -> None:
    question, *outputs = (RNG.normal(size=384).astype(np.float32) for _ in range(4))
    first = state_of(question, [])
    assert first.shape == (1152,)
    assert first.dtype == np.float64
    assert np.array_equal(first[:384], question)
    assert not first[384:].any()
    later = state_of(question, outputs)
    assert np.array_equal(later[:768], np.concatenate([question, outputs[-1]]))
    mean = sum(output.astype(float) for output in outputs) / 3
    np.testing.assert_allclose(later[768:], mean, atol=1e-15)

"""One step of the optimiser from questions that were really walked."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

from baselines.puppeteer.agents import KEYS
from baselines.puppeteer.method import learn, loss, returns, utility
from baselines.puppeteer.policy import STATE, Choice, Policy, Trace
from harness.agents.results import Answered
from harness.agents.trajectory import Episode
from harness.benchmarks.items import Status, Verdict
from harness.training.learning import Learning, seeded
from tests.baselines.puppeteer.test_policy import plain
from tests.baselines.puppeteer.world import ITEMS, Client, config, walk

SETTINGS = config(lr=1e-3)
N = 10


def learning() -> Learning[Policy]:
    return Learning(seeded(Policy, "learning"), SETTINGS.lr)


async def walked(made: Learning[Policy], epoch: int = 1, **changes: Any) -> tuple[list[Answered], list[Trace]]:
    """Graded questions of the present policy, every other one right."""
    policy = made.network.snapshot()
    answered, traces = [], []
    for number, item in enumerate(ITEMS):
        trajectory, trace = await walk(policy, Client(), item, episode=Episode(epoch, 0), **changes)
        answered.append(Answered(trajectory, Verdict(number % 2 == 0, "", Status.GRADED)))
        traces.append(trace)
    return answered, traces


@pytest.mark.parametrize("limit", [6, 2])
async def test_the_loss_is_that_of_plain_numpy(limit: int) -> None:
    made, settings = learning(), config(lr=1e-3, max_steps=limit)
    answered, traces = await walked(made, max_steps=limit)
    assert (limit == 2) <= any(choice.step == limit for trace in traces for choice in trace)
    expected = 0.0
    for one, trace in zip(answered, traces, strict=True):
        gains = returns(trace, one.verdict.correct, N, settings)
        entropies = []
        for choice, gain in zip(trace, gains, strict=True):
            log_probs = plain(made.network, choice.state, choice.barred)
            possible = log_probs[np.isfinite(log_probs)]
            if choice.step < limit:
                entropies.append(-(np.exp(possible) * possible).sum())
            expected -= log_probs[choice.action] * gain
        expected -= 1.0 * np.mean(entropies)
    assert learn(made, answered, traces, N, settings)["loss"] == pytest.approx(expected, abs=1e-9)


def drawn(step: int) -> Choice:
    return Choice(step, np.zeros(STATE), (), 0, -1.0)


def test_the_loss_of_two_questions_worked_out_by_hand() -> None:
    """Entropies count as the mean of a question, not of all choices; returns as they are."""
    log_prob = torch.tensor([-1.0, -2.0, -0.5], dtype=torch.float64)
    entropy = torch.tensor([2.0, 1.0, 0.4], dtype=torch.float64)
    gains = [np.array([0.9, 1.0]), np.array([-1.0])]
    traces = [(drawn(0), drawn(1)), (drawn(0),)]
    evaluation: Any = type("Evaluation", (), {"log_prob": log_prob, "entropy": entropy})
    # 1 * 0.9 + 2 * 1.0 - 0.5 * 1.0 = 2.4; (2 + 1) / 2 + 0.4 = 1.9
    assert loss(evaluation, traces, gains, config()).item() == pytest.approx(2.4 - 1.9)
    assert loss(evaluation, traces, gains, config(entropy_weight=0.5)).item() == pytest.approx(2.4 - 0.95)
    # At a limit of one step nobody drew the second choice: 2 + 0.4, and its log-probability counts all the same.
    assert loss(evaluation, traces, gains, config(max_steps=1)).item() == pytest.approx(2.4 - 2.4)


async def test_gradients_of_a_batch_are_the_sum_of_those_of_its_questions() -> None:
    made = learning()
    answered, traces = await walked(made)

    def gradient(places: list[int]) -> np.ndarray:
        made.network.zero_grad()
        choices = [choice for place in places for choice in traces[place]]
        gains = [returns(traces[place], answered[place].verdict.correct, N, SETTINGS) for place in places]
        loss(made.network.evaluate(choices), [traces[place] for place in places], gains, SETTINGS).backward()
        grads = [parameter.grad for parameter in made.network.parameters()]
        return np.concatenate([grad.numpy().ravel() for grad in grads if grad is not None])

    whole = gradient([0, 1, 2, 3])
    np.testing.assert_allclose(whole, sum(gradient([place]) for place in range(4)), atol=1e-12)


async def test_log_probabilities_computed_again_are_those_sampled() -> None:
    made = learning()
    for epoch in (1, 2):
        answered, traces = await walked(made, epoch)
        choices = [choice for trace in traces for choice in trace]
        again = made.network.evaluate(choices).log_prob.detach().numpy()
        assert np.abs(again - [choice.log_prob for choice in choices]).max() < 1e-12
        learn(made, answered, traces, N, SETTINGS)


@pytest.mark.parametrize("change", ["action", "state", "barred", "log_prob"])
async def test_choices_of_another_policy_are_refused(change: str) -> None:
    made = learning()
    answered, traces = await walked(made)
    first = traces[0][0]
    other: dict[str, Any] = {
        "action": (first.action + 1) % 9,
        "state": first.state + 0.1,
        "barred": (*first.barred, (first.action + 1) % 9),
        "log_prob": first.log_prob + 2e-5,
    }
    traces[0] = (dataclasses.replace(first, **{change: other[change]}), *traces[0][1:])
    before = made.learned()
    with pytest.raises(RuntimeError, match="the update is not on-policy"):
        learn(made, answered, traces, N, SETTINGS)
    assert all(np.array_equal(value, before[name]) for name, value in made.learned().items())


async def test_a_policy_that_has_moved_on_is_refused() -> None:
    made = learning()
    answered, traces = await walked(made)
    learn(made, answered, traces, N, SETTINGS)
    with pytest.raises(RuntimeError, match=r"differ from the sampled ones by \d"):
        learn(made, answered, traces, N, SETTINGS)


async def test_the_gradient_reaches_every_parameter() -> None:
    made = learning()
    answered, traces = await walked(made)
    before = made.learned()
    learn(made, answered, traces, N, SETTINGS)
    for name, parameter in made.network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    assert all(not np.array_equal(value, before[name]) for name, value in made.learned().items())


@pytest.mark.parametrize("correct", [True, False])
async def test_a_right_answer_makes_its_choices_likelier_and_a_wrong_one_less_likely(correct: bool) -> None:
    settings = config(lr=1e-4, entropy_weight=0.0)
    made = Learning(seeded(Policy, "learning"), settings.lr)
    answered, traces = await walked(made)
    one = [answered[0]._replace(verdict=Verdict(correct, "", Status.GRADED))]
    sampled = sum(choice.log_prob for choice in traces[0])
    learn(made, one, traces[:1], N, settings)
    again = made.network.evaluate(traces[0]).log_prob.sum().item()
    assert (again > sampled) == correct


async def test_the_log_of_an_update_agrees_with_what_was_walked() -> None:
    made = learning()
    answered, traces = await walked(made)
    log = learn(made, answered, traces, N, SETTINGS)
    decisions = [one for each in answered for one in each.trajectory.decisions]
    for key in KEYS:
        assert log[f"share_{key}"] == pytest.approx(sum(one.choice == key for one in decisions) / len(decisions))
    limit = [one for one in decisions if one.step == 7]
    assert log["at_step_limit"] == pytest.approx(len(limit) / len(ITEMS))
    assert log["utility"] == pytest.approx(np.mean([utility(one, N, SETTINGS) for one in answered]))
    gains = [returns(t, one.verdict.correct, N, SETTINGS) for one, t in zip(answered, traces, strict=True)]
    assert log["return"] == pytest.approx(np.concatenate(gains).mean())
    assert 2 < log["entropy"] <= math.log(10)
    assert all(math.isfinite(value) for value in log.values())

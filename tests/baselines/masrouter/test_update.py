"""One step of the optimiser from rollouts that were really walked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from baselines.masrouter.method import utility
from baselines.masrouter.router import Choices, Router, Trace
from harness.agents.results import Answered
from harness.agents.trajectory import Episode
from harness.training.learning import Learning
from harness.training.loop import TrainingStep
from tests.baselines.masrouter.fixtures import MODE_NAMES, method, router, walk
from tests.baselines.masrouter.reference import Reference
from tests.fixtures import ITEMS, Client, attempt, graded

KAPPA = 200.0


async def rollouts(made: Router, questions: int = 4) -> tuple[list[Answered], list[Trace]]:
    """Every other one is right."""
    answered, traces = [], []
    for number, item in enumerate(ITEMS[:questions]):
        trajectory, trace = await walk(made, Client(), item, episode=Episode(1, 0))
        answered.append(graded(trajectory, number % 2 == 0))
        traces.append(trace)
    return answered, traces


def update(
    made: Learning[Router], answered: Sequence[Answered], traces: Sequence[Trace], **changes: Any
) -> dict[str, float]:
    its = method(**{"kappa": {"default": KAPPA}, **changes})
    return its.learn(made, answered, traces, TrainingStep(1, 1, 1))


def test_the_utility_charges_every_call() -> None:
    costs = (0.001, True), (0.002, True), (0.004, False)
    for kappa in (0.0, 20.0, 500.0):
        assert utility(attempt(True, *costs), kappa) == pytest.approx(1 - kappa * 0.007)
        assert utility(attempt(False, *costs), kappa) == pytest.approx(-kappa * 0.007)


async def test_the_loss_and_the_log_against_plain_numpy() -> None:
    network = router(moved=0.1)
    answered, traces = await rollouts(network, 8)
    references = [Reference(network, trace) for trace in traces]
    vae = np.mean([network.vae_loss([trace]).item() for trace in traces])
    log = update(Learning(network, 0.01), answered, traces)
    utilities = [one.verdict.correct - KAPPA * sum(c.cost for c in one.trajectory.calls) for one in answered]
    policy = -np.mean([one.log_prob * u for one, u in zip(references, utilities, strict=True)])
    task = -np.mean([math.log(one.tasks[1]) for one in references])
    modes = [trace.choices.mode for trace in traces]
    expected = {
        "utility": np.mean(utilities),
        "classifier_accuracy": np.mean([one.tasks.argmax() == 1 for one in references]),
        **{f"share_{name}": modes.count(index) / 8 for index, name in enumerate(MODE_NAMES)},
        "agents": np.mean([len(trace.choices.roles) for trace in traces]),
        "entropy_mode": np.mean([entropy(one.modes) for one in references]),
        "entropy_backbone": np.mean([entropy(one.backbones) for one in references]),
        "task_loss": task,
        "policy_loss": policy,
        "vae_loss": vae,
        "loss": task + policy + 0.001 * vae,
    }
    assert log == pytest.approx(expected)


async def test_the_loss_of_the_autoencoders_is_the_sum_of_five() -> None:
    network = router(moved=0.1)
    _, [trace] = await rollouts(network, 1)
    q = torch.tensor(trace.question, dtype=torch.float64)[None]
    parts = [
        network.mode_vae.loss(network.mode_texts, trace.noise.modes),
        network.question_vae.loss(q, trace.noise.question),
        network.number.vae.loss(q, trace.noise.number),
        network.role_vae.loss(network.role_texts, trace.noise.roles),
        network.backbone_vae.loss(network.backbone_texts, trace.noise.backbones),
    ]
    assert network.vae_loss([trace]).item() == pytest.approx(sum(part.item() for part in parts))


async def test_every_parameter_learns_and_the_texts_stay() -> None:
    made = Learning(router(), 0.01)
    before = made.learned()
    update(made, *await rollouts(made.network, 8))
    after = made.learned()
    still = {name for name in before if np.array_equal(before[name], after[name])}
    assert still == {f"network.{kind}_texts" for kind in ("task", "mode", "role", "backbone")}
    assert all(value.dtype == np.float64 for value in after.values())


@pytest.mark.parametrize("change", ["mode", "role", "backbone", "fewer", "more", "noise", "log_prob", "nan"])
async def test_rollouts_of_another_policy_are_refused(change: str) -> None:
    made = Learning(router(moved=0.1), 0.01)
    answered, traces = await rollouts(made.network)
    trace = next(one for one in traces if 1 < len(one.choices.roles) < 6)
    choices, noise = trace.choices, trace.noise
    (first, *roles), (_, *backbones) = choices.roles, choices.backbones
    others = {
        "mode": {"choices": dataclasses.replace(choices, mode=(choices.mode + 1) % 6)},
        "role": {"choices": dataclasses.replace(choices, roles=((first + 1) % 7, *roles))},
        "backbone": {"choices": dataclasses.replace(choices, backbones=(1 - choices.backbones[0], *backbones))},
        "fewer": {"choices": Choices(choices.mode, tuple(roles), tuple(backbones))},
        "more": {"choices": Choices(choices.mode, (0, *choices.roles), (0, *choices.backbones))},
        "noise": {"noise": noise._replace(modes=-noise.modes)},
        "log_prob": {"log_prob": trace.log_prob + 2e-5},
        "nan": {"log_prob": math.nan},
    }
    traces[traces.index(trace)] = dataclasses.replace(trace, **others[change])  # type: ignore[arg-type]
    before = made.learned()
    with pytest.raises(RuntimeError, match="the update is not on-policy"):
        update(made, answered, traces)
    assert all(np.array_equal(value, before[name]) for name, value in made.learned().items())


async def test_a_policy_that_has_moved_on_is_refused() -> None:
    made = Learning(router(), 0.01)
    answered, traces = await rollouts(made.network)
    update(made, answered, traces)
    with pytest.raises(RuntimeError, match=r"computed again.* the update is not on-policy"):
        update(made, answered, traces)

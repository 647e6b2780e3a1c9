"""Decisions of the router per second, and updates per second by the number of questions."""

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from gmr.config import Config
from gmr.router import Router, Uniforms
from gmr.training import evaluate, stack
from harness.training.learning import Learning
from tests.benchmarks.conftest import FEW, Measure
from tests.gmr.fixtures import new_router, trace, units

STEPS = 6
TRAJECTORIES = 256
GROUP = 6
ROLES, BACKBONES = 26, 5
# Role, backbone, write and halt at every step but the last, which has no halt, and every record at every later step.
DRAWS = 4 * STEPS - 1 + STEPS * (STEPS - 1) // 2


def router() -> Router:
    rng = np.random.default_rng(0)
    return new_router(Config(epochs={"default": 0}, max_depth=STEPS), units(rng, ROLES), units(rng, BACKBONES))


# Numbers that open every gate and never halt.
ONE = torch.ones(1, dtype=torch.float64)
UNIFORMS = Uniforms(role=ONE / 2, backbone=ONE / 2, retrieve=torch.zeros(1, STEPS).double(), write=0 * ONE, halt=ONE)


@torch.inference_mode()
def walk(network: Router, number: int) -> None:
    """Walk a trajectory that stores everything and runs to the last step."""
    question, *responses = units(np.random.default_rng(number), 1 + STEPS)
    latents, state = network.latents(), network.begin(stack([question]))
    for response in responses:
        state, agent = network.assign(state, latents, UNIFORMS)
        state, _ = network.end_step(state, latents, agent, stack([response]), UNIFORMS)


def test_decisions(benchmark: BenchmarkFixture, measure: Measure) -> None:
    network, count = router(), TRAJECTORIES if benchmark.enabled else FEW
    measure(benchmark, lambda _: [walk(network, number) for number in range(count)], count * DRAWS)


@pytest.mark.parametrize("questions", [8, 16, 32, 64])
def test_updates(questions: int, benchmark: BenchmarkFixture, measure: Measure) -> None:
    """From finished trajectories to the changed parameters: six a question of 1 to 6 steps."""
    count = questions if benchmark.enabled else FEW
    rng, learning = np.random.default_rng(0), Learning(router(), 0.01)
    traces = [trace(rng, 1 + number % STEPS) for number in range(count * GROUP)]

    def step() -> None:
        evaluation = evaluate(learning.network, traces)
        vae = learning.network.vae_loss(torch.Generator())
        learning.step(evaluation.log_prob.mean() - evaluation.mean_entropy + vae)

    step()
    measure(benchmark, lambda _: step(), 1)

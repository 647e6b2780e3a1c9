"""Decisions per second of the three routers, and updates per second by the number of questions."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from baselines.masrouter.router import Router as MASRouter
from baselines.masrouter.router import Texts, draw_noise
from baselines.masrouter.router import Trace as Plan
from baselines.puppeteer.policy import STATE, Policy
from gmr.config import Config
from gmr.policy import Snapshot, evaluate
from gmr.router import Router
from gmr.training import new_router
from harness.training.learning import Learning, seeded
from tests.benchmarks.conftest import FEW, Measure
from tests.gmr.fixtures import trace, units

STEPS = 6
TRAJECTORIES = 256
GROUP = 6
ROLES, BACKBONES, TASKS, MODES = 26, 5, 3, 6
# Role, backbone, write and halt at every step but the last, which has no halt, and every record at every later step.
DRAWS = 4 * STEPS - 1 + STEPS * (STEPS - 1) // 2


def gmr() -> Router:
    rng = np.random.default_rng(0)
    return new_router(Config(epochs={"default": 0}, max_depth=STEPS), units(rng, ROLES), units(rng, BACKBONES), 0)


def masrouter() -> MASRouter:
    rng = np.random.default_rng(0)
    texts = Texts(*(units(rng, rows) for rows in (TASKS, MODES, ROLES, BACKBONES)))
    return seeded(lambda: MASRouter(texts, 6), "benchmark")


def best(name: str, log_probs: Any, there: Any) -> Any:
    """The most probable role and backbone, every gate open, and never a halt."""
    if name in ("role", "backbone"):
        return int(log_probs.argmax())
    return int(name == "write") if there.ndim == 0 else [1] * len(there)


async def walk(policy: Snapshot, number: int) -> None:
    """A trajectory that stores everything and runs to the last step."""
    question, *responses = units(np.random.default_rng(number), 1 + STEPS)
    state = policy.begin(question)
    for response in responses:
        state, acting = await policy.act(state, best)
        state, _ = await policy.keep(state, acting, response, best)


@pytest.mark.parametrize("in_flight", [1, 16, 64, 256])
def test_decisions(in_flight: int, benchmark: BenchmarkFixture, measure: Measure) -> None:
    policy, count = Snapshot(gmr()), TRAJECTORIES if benchmark.enabled else FEW

    async def all_of_them() -> None:
        slots = asyncio.Semaphore(in_flight)

        async def one(number: int) -> None:
            async with slots:
                await walk(policy, number)

        await asyncio.gather(*map(one, range(count)))

    measure(benchmark, lambda _: asyncio.run(all_of_them()), count * DRAWS)


def plan(router: MASRouter, number: int) -> Plan:
    """The plan for one question, all choices the most probable."""
    question = units(np.random.default_rng(number))
    noise = draw_noise((number + 0.5) / (1 << 20), MODES, ROLES, BACKBONES)
    with torch.inference_mode():
        decided = router.decide(question[None], [noise], lambda *asked: [int(asked[2].argmax())])
    return Plan(question, noise, decided.choices[0], decided.log_prob.item())


def test_masrouter_plans(benchmark: BenchmarkFixture, measure: Measure) -> None:
    router, count = masrouter(), TRAJECTORIES if benchmark.enabled else FEW
    measure(benchmark, lambda _: [plan(router, number) for number in range(count)] and None, count)


def test_puppeteer_choices(benchmark: BenchmarkFixture, measure: Measure) -> None:
    policy, count = seeded(Policy, "benchmark"), TRAJECTORIES if benchmark.enabled else FEW
    states = np.random.default_rng(0).normal(size=(count, STATE))

    def once(_: int) -> None:
        for state in states:
            policy.log_probs(state)

    measure(benchmark, once, count)


@pytest.mark.parametrize("questions", [8, 16, 32, 64])
@pytest.mark.parametrize("method", ["gmr", "masrouter"])
def test_updates(method: str, questions: int, benchmark: BenchmarkFixture, measure: Measure) -> None:
    """From finished trajectories to the changed parameters: six a question of 1 to 6 steps, or a plan a question."""
    benchmark.group = f"updates of {method}"
    count = questions if benchmark.enabled else FEW
    step = gmr_update(count) if method == "gmr" else masrouter_update(count)
    step()
    measure(benchmark, lambda _: step(), 1)


def gmr_update(questions: int) -> Callable[[], None]:
    rng, learning = np.random.default_rng(0), Learning(gmr(), 0.01)
    traces = [trace(rng, 1 + number % STEPS) for number in range(questions * GROUP)]

    def step() -> None:
        evaluation = evaluate(learning.network, traces)
        noise = torch.zeros(ROLES, 128).double(), torch.zeros(BACKBONES, 128).double()
        learning.step(evaluation.log_prob.mean() - evaluation.mean_entropy + learning.network.vae_loss(*noise))

    return step


def masrouter_update(questions: int) -> Callable[[], None]:
    learning = Learning(masrouter(), 1e-6)
    plans = [plan(learning.network, number) for number in range(questions)]

    def step() -> None:
        decided = learning.network.again(plans)
        learning.step(decided.log_prob.mean() + decided.tasks.mean() + learning.network.vae_loss(plans))

    return step

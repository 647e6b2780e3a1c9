"""Fixtures for GMR: routers with perturbed weights, synthetic traces, and trajectories over simple roles."""

from typing import Any

import numpy as np
import torch
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from gmr.config import Config, Pool
from gmr.method import GMR
from gmr.rollout import GatedRollout
from gmr.router import Router
from gmr.training import Step, Trace
from harness.agents.roles import by_key
from harness.agents.trajectory import TEST, Episode, Trajectory
from harness.benchmarks.items import Item
from harness.runner.setting import Matched
from harness.scripted import backbones, setting
from harness.training.learning import seeded
from tests.fixtures import ITEMS, embedding, walked

ROLES, BACKBONES = 7, 5
# Roles that need no tool; the third one has a second call.
KEYS = ("Commonsense/Critic", "Commonsense/Historian", "Commonsense/Reflector", "Math/Inspector")
POOL = Pool(tuple(by_key()[key] for key in KEYS), tuple(backbones().values()))
PROFILES = [np.stack([embedding(member.profile) for member in members]) for members in (POOL.roles, POOL.backbones)]
# The switches of the configuration, and the names of their draws.
MODULES = {
    "role_allocator": "role",
    "llm_router": "backbone",
    "retrieval_gate": "retrieve",
    "write_gate": "write",
    "halting": "halt",
}


def config(**changes: Any) -> Config:
    return Config(**{"epochs": {"default": 1}, "role_subset": {"Commonsense": 2}, **changes})


def method(
    seed: int = 0,
    max_epochs: int | None = None,
    matched: Matched | None = None,
    cost_factor: float = 1.0,
    **changes: Any,
) -> GMR:
    row = setting("pool", seed=seed, benchmark="toy", max_epochs=max_epochs, matched=matched, cost_factor=cost_factor)
    gmr = GMR(row, config(**changes))
    gmr.pool = POOL
    return gmr


def units(rng: Generator, *shape: int) -> NDArray[np.float32]:
    vectors = rng.normal(size=(*shape, 384))
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def new_router(settings: Config, roles: Any, backbones: Any) -> Router:
    return seeded(lambda: Router(settings, roles, backbones), "initial weights", 0)


def router(profiles: Any = None, **settings: Any) -> Router:
    """Return a router with randomly perturbed parameters, so that none keeps an initial value of zero or one."""
    rng = default_rng(0)
    network = new_router(config(**settings), *(profiles or (units(rng, ROLES), units(rng, BACKBONES))))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return network


def trace(rng: Generator, depth: int, *, written: float = 0.5) -> Trace:
    """Return random decisions that halt at the last step. At the sixth step there is no halting draw."""
    steps: list[Step] = []
    for number in range(1, depth + 1):
        stored = sum(step.written for step in steps)
        seen = tuple(bool(draw) for draw in rng.random(stored) < 0.5)
        halted = None if number == 6 else number == depth
        choice = int(rng.integers(ROLES)), int(rng.integers(BACKBONES))
        steps.append(Step(*choice, seen, units(rng), bool(rng.random() < written), halted))
    return Trace(units(rng), tuple(steps), 0.0)


async def walk(
    network: Router, client: Any, item: Item = ITEMS[0], seed: int = 0, episode: Episode = TEST, greedy: bool = False
) -> tuple[Trajectory, Trace]:
    return await walked(GatedRollout(network, POOL, network.config, greedy=greedy), client, item, seed, episode)

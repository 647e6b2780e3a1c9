"""Routers off their starting point, and traces with decisions of every pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from gmr.config import Config
from gmr.rollout import Step, Trace
from gmr.router import Router, Snapshot

ROLES, BACKBONES = 7, 5


def units(rng: Generator, *shape: int) -> NDArray[np.float32]:
    """Unit vectors of 384 dimensions."""
    vectors = rng.normal(size=(*shape, 384))
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def router(seed: int = 0, *, moved: float = 0.05, **settings: Any) -> Router:
    """A router whose every parameter is moved at random, so that nothing is zero or one by initialisation alone."""
    rng = default_rng(seed)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        made = Router(Config(epochs={"default": 0}, **settings), units(rng, ROLES), units(rng, BACKBONES))
        for parameter in made.parameters():
            parameter += moved * torch.randn(parameter.shape, dtype=torch.float64)
    return made


def trace(rng: Generator, depth: int, *, written: float = 0.5, last: bool | None = True) -> Trace:
    """Decisions at random; ``last`` is the halting draw of the final step, every other one being no."""
    steps: list[Step] = []
    for number in range(depth):
        stored = sum(step.written for step in steps)
        seen = tuple(bool(draw) for draw in rng.random(stored) < 0.5)
        halted = last if number == depth - 1 else False
        choice = int(rng.integers(ROLES)), int(rng.integers(BACKBONES))
        steps.append(Step(*choice, seen, units(rng), bool(rng.random() < written), halted, 0.0))
    return Trace(units(rng), tuple(steps))


async def rollout(policy: Snapshot, rng: Generator, max_depth: int) -> Trace:
    """A trajectory that follows the policy, its log-probabilities as sampled."""
    question, steps, halted = units(rng), list[Step](), None
    state = policy.begin(question)
    while not halted and len(steps) < max_depth:
        draws: list[float] = []
        role = _choice(rng, policy.roles(state), draws)
        backbone = _choice(rng, policy.backbones(state, role), draws)
        stored = sum(step.written for step in steps)
        gates = policy.retrieval(state, role, backbone)
        seen = (True,) * stored if gates is None else tuple(_gate(rng, float(p), draws) for p in gates)
        response = units(rng)
        gate = policy.write(state, response)
        written = True if gate is None else _gate(rng, gate, draws)
        memory, halting = policy.advance(state, role, backbone, response, written)
        state = await policy.state(memory)
        halted = None if halting is None else _gate(rng, halting, draws)
        steps.append(Step(role, backbone, seen, response, written, halted, sum(draws)))
    return Trace(question, tuple(steps))


def _choice(rng: Generator, probabilities: NDArray[np.float64], draws: list[float]) -> int:
    index = int(rng.choice(len(probabilities), p=probabilities))
    draws.append(float(np.log(probabilities[index])))
    return index


def _gate(rng: Generator, probability: float, draws: list[float]) -> bool:
    is_open = bool(rng.random() < probability)
    draws.append(float(np.log(probability if is_open else 1 - probability)))
    return is_open

"""The decisions of a router: the same bits in any company, sampled or computed again; what its weights follow from."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gmr.policy import BATCH, Snapshot, Step, Trace, evaluate
from gmr.router import Router
from tests.gmr.fixtures import MODULES, config, router, units


def seeded(seed: int, **switches: bool) -> Router:
    torch.manual_seed(seed)
    rng = np.random.default_rng(0)
    return Router(config(**switches), units(rng, 3), units(rng, 2))


def test_weights_follow_the_seed_and_ablations_share_them() -> None:
    full = dict(seeded(3).named_parameters())
    assert {value.dtype for value in seeded(3).state_dict().values()} == {torch.float64}
    assert not any(torch.equal(value, full[name]) for name, value in seeded(4).named_parameters() if "W_" in name)
    for switch in MODULES:
        ablated = dict(seeded(3, **{switch: False}).named_parameters())
        assert 0 < len(ablated) < len(full)
        assert all(torch.equal(value, full[name]) for name, value in ablated.items())


# Company

TRAJECTORIES = 24
DEPTHS = (1, 5, 6)


@cache
def policy(depth: int) -> tuple[Router, Snapshot]:
    made = router(max_depth=depth, score="cosine" if depth == 5 else "dot", halting_bias=-3.0)
    return made, Snapshot(made)


async def walk(depth: int, number: int) -> Trace:
    """A trajectory that is a function of its number alone, with draws of its own."""
    rng = np.random.default_rng(number)

    def draw(name: str, log_probs: Any, there: Any) -> Any:
        if there.ndim == 0:
            return int(rng.choice(len(log_probs), p=np.exp(log_probs))) if there else 0
        return [int(rng.random() < np.exp(row[1])) if its else 0 for row, its in zip(log_probs, there, strict=True)]

    question, *responses = units(rng, 1 + depth)
    state, steps, stored = policy(depth)[1].begin(question), list[Step](), 0
    for place, response in enumerate(responses, 1):
        state, acting = await policy(depth)[1].act(state, draw)
        state, (written, halted) = await policy(depth)[1].keep(state, acting, response, draw)
        retrieved = tuple(acting.seen[0, :stored].tolist())
        outcome = None if place == depth else bool(halted)
        steps.append(Step(acting.role.item(), acting.backbone.item(), retrieved, response, bool(written), outcome))
        stored += bool(written)
        if halted:
            break
    assert not state.context.requires_grad
    return Trace(question, tuple(steps), state.log_prob.item())


@cache
def alone(depth: int) -> list[Trace]:
    return [asyncio.run(walk(depth, number)) for number in range(TRAJECTORIES)]


def content(trace: Trace) -> tuple[Any, ...]:
    return trace.log_prob, [(step.role, step.backbone, step.retrieved, step.written) for step in trace.steps]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, TRAJECTORIES - 1), min_size=1, max_size=2 * BATCH + 3), st.sampled_from(DEPTHS))
@example(list(range(TRAJECTORIES)), 6)
@example([5] * BATCH, 6)
def test_trajectories_have_the_same_bits_in_any_company_and_computed_again(numbers: Sequence[int], depth: int) -> None:
    async def at_once() -> list[Trace]:
        return await asyncio.gather(*(walk(depth, number) for number in numbers))

    expected = [alone(depth)[number] for number in numbers]
    assert list(map(content, asyncio.run(at_once()))) == list(map(content, expected))
    again = evaluate(policy(depth)[0], expected)
    assert again.log_prob.tolist() == [trace.log_prob for trace in expected]
    assert again.log_prob.requires_grad
    assert len({trace.log_prob for trace in alone(depth)}) == TRAJECTORIES

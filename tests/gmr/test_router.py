"""The decisions of a router step by step: against plain NumPy, module by module, and the same bytes in any company."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gmr.router import TOGETHER, Memory, Router, Snapshot
from tests.gmr.reference import Record, Reference
from tests.gmr.world import MODULES, config, router, units


@pytest.mark.parametrize("score", ["dot", "cosine"])
async def test_every_decision_of_a_trajectory_against_plain_numpy(score: str) -> None:
    made = router(score=score, max_depth=5)
    reference, policy = Reference(made), made.snapshot()
    question, *responses = units(np.random.default_rng(0), 6)
    state, hidden, memory = policy.begin(question), np.zeros(128), list[Record]()
    for number, (response, written) in enumerate(zip(responses, (False, True, False, True, True), strict=True)):
        role, backbone = number % 7, (2 * number) % 5
        wide, y = question.astype(np.float64), response.astype(np.float64)
        context = reference.context(wide, memory)
        assert policy.roles(state) == pytest.approx(reference.roles(context), abs=1e-12)
        assert policy.backbones(state, role) == pytest.approx(reference.backbones(context, role), abs=1e-12)
        seen = [reference.retrieval(wide, role, backbone, record) for record in memory]
        assert policy.retrieval(state, role, backbone) == pytest.approx(np.array(seen), abs=1e-12)
        assert policy.write(state, response) == pytest.approx(reference.write(context, y, memory), abs=1e-12)
        after, halting = policy.advance(state, role, backbone, response, written)
        state = await policy.state(after)
        memory += [Record(role, backbone, y)] if written else []
        hidden = reference.gru(reference.pool(memory), hidden)
        # At the last step there is nothing left to decide.
        assert halting == (None if number == 4 else pytest.approx(reference.halt(hidden), abs=1e-12))
    assert not any(one.requires_grad for one in (state.context, after.tokens, after.records, after.halting))
    assert torch.is_grad_enabled()


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

MEMORIES = 18
DEPTHS = (1, 6)


@cache
def policy_of(depth: int) -> Snapshot:
    return router(max_depth=depth).snapshot()


@cache
def memories(depth: int) -> tuple[Memory, ...]:
    """As trajectories leave them, with 1 to ``depth`` records, each three times or more."""
    rng, made, policy = np.random.default_rng(0), list[Memory](), policy_of(depth)

    async def walk(number: int) -> None:
        state = policy.begin(units(rng))
        for step in range(1 + number % depth):
            memory, _ = policy.advance(state, (number + step) % 7, step % 5, units(rng), True)
            state = await policy.state(memory)
        made.append(memory)

    for number in range(MEMORIES):
        asyncio.run(walk(number))
    return tuple(made)


def contexts(depth: int, numbers: Sequence[int]) -> list[bytes]:
    """Contexts of memories by their numbers, all asked for at once."""
    asked = [memories(depth)[number] for number in numbers]

    async def at_once() -> list[bytes]:
        states = await asyncio.gather(*map(policy_of(depth).state, asked))
        return [state.context.numpy().tobytes() for state in states]

    return asyncio.run(at_once())


@cache
def alone(depth: int) -> list[bytes]:
    return [contexts(depth, [number])[0] for number in range(MEMORIES)]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, MEMORIES - 1), min_size=1, max_size=2 * TOGETHER + 3), st.sampled_from(DEPTHS))
@example(list(range(MEMORIES)), 6)
@example([5] * TOGETHER, 6)
def test_a_context_is_the_same_at_every_place_of_every_batch(numbers: list[int], depth: int) -> None:
    assert contexts(depth, numbers) == [alone(depth)[number] for number in numbers]
    assert len(set(alone(depth))) == MEMORIES

"""A decision has the same bytes alone and in any company, at any place among it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from gmr.networks import by_row
from gmr.router import TOGETHER, Memory, Snapshot
from tests.gmr.made import rollout, router, units

MEMORIES = 18
DEPTHS = (1, 6)


@cache
def policy(depth: int, score: str = "dot") -> Snapshot:
    return router(max_depth=depth, score=score).snapshot()


@cache
def memories(depth: int) -> tuple[Memory, ...]:
    """As trajectories leave them, with 1 to ``depth`` records, each three times or more."""
    rng, made = np.random.default_rng(0), list[Memory]()

    async def walk(number: int) -> None:
        state = policy(depth).begin(units(rng))
        for step in range(1 + number % depth):
            memory, _ = policy(depth).advance(state, (number + step) % 7, step % 5, units(rng), True)
            state = await policy(depth).state(memory)
        made.append(memory)

    for number in range(MEMORIES):
        asyncio.run(walk(number))
    return tuple(made)


def contexts(depth: int, numbers: Sequence[int]) -> list[bytes]:
    """Contexts of memories by their numbers, all asked for at once."""
    asked = [memories(depth)[number] for number in numbers]

    async def at_once() -> list[bytes]:
        states = await asyncio.gather(*map(policy(depth).state, asked))
        return [state.context.numpy().tobytes() for state in states]

    return asyncio.run(at_once())


@cache
def alone(depth: int) -> list[bytes]:
    return [contexts(depth, [number])[0] for number in range(MEMORIES)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, MEMORIES - 1), min_size=1, max_size=2 * TOGETHER + 3), st.sampled_from(DEPTHS))
@example(list(range(MEMORIES)), 6)
@example([5] * TOGETHER, 6)
def test_a_context_is_the_same_at_every_place_of_every_batch(numbers: list[int], depth: int) -> None:
    assert contexts(depth, numbers) == [alone(depth)[number] for number in numbers]


def test_contexts_tell_memories_apart() -> None:
    for depth in DEPTHS:
        assert len(set(alone(depth))) == MEMORIES


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 70), st.sampled_from([1, 6]), st.sampled_from([(128, 384), (256, 128), (128, 32)]), st.integers(0, 9)
)
def test_by_row_gives_a_row_the_bytes_that_it_has_alone(rows: int, k: int, shape: tuple[int, int], seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    x, weight, bias = (
        torch.randn(size, generator=draw, dtype=torch.float64) for size in ((rows, k, shape[0]), shape[::-1], shape[1:])
    )
    together = by_row(x, weight, bias)
    for row in range(rows):
        assert torch.equal(together[row, None], by_row(x[row, None], weight, bias))
    assert torch.allclose(together, F.linear(x, weight, bias), rtol=0, atol=1e-11)


@pytest.mark.parametrize("score", ["dot", "cosine"])
async def test_log_probabilities_of_whole_trajectories_do_not_show_the_company(score: str) -> None:
    async def walked(seed: int, wait: int = 0) -> list[float]:
        for _ in range(wait):
            await asyncio.sleep(0)
        trace = await rollout(policy(6, score), np.random.default_rng(seed), 6)
        return [step.log_prob for step in trace.steps]

    apart = [await walked(seed) for seed in range(24)]
    for waits in ([0] * 24, [seed % 5 for seed in range(24)]):
        assert await asyncio.gather(*map(walked, range(24), waits)) == apart
    assert sum(len(steps) for steps in apart) > 48


async def test_contexts_asked_for_at_once_are_one_product_and_none_is_made_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = router()
    batches: list[int] = []
    original = made.encoder.history

    def counted(q_hat: Tensor, *rest: object) -> Tensor:
        batches.append(len(q_hat))
        return original(q_hat, *rest)

    monkeypatch.setattr(made.encoder, "history", counted)
    policy, rng = made.snapshot(), np.random.default_rng(0)
    states = [policy.begin(units(rng)) for _ in range(5)]
    after = [policy.advance(state, 0, 0, units(rng), number < 3)[0] for number, state in enumerate(states)]
    later = await asyncio.gather(*map(policy.state, after))
    # What stored nothing keeps its context.
    assert batches == [3]
    assert [later[number].context is states[number].context for number in range(5)] == [False] * 3 + [True] * 2

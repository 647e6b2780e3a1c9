"""What is asked for at one moment is one batch, and nobody suffers from the company."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.concurrency import Batcher


class Doubling:
    """Doubles numbers, remembers its batches, and fails on a number it is told to."""

    def __init__(self, bad: int | None = None) -> None:
        self.batches: list[list[int]] = []
        self.bad = bad

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.batches.append(list(numbers))
        if self.bad in numbers:
            raise ArithmeticError(f"{self.bad} cannot be doubled")
        return [2 * number for number in numbers]


async def test_what_is_asked_for_at_once_is_computed_at_once() -> None:
    doubling = Doubling()
    batcher = Batcher(doubling, most=10)
    assert await asyncio.gather(*map(batcher.ask, range(5))) == [0, 2, 4, 6, 8]
    assert await batcher.ask(7) == 14
    assert doubling.batches == [[0, 1, 2, 3, 4], [7]]


async def test_one_who_asks_alone_waits_for_nobody() -> None:
    batcher = Batcher(Doubling(), most=10)
    turns = 0

    async def counting() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.create_task(counting())
    await batcher.ask(1)
    counter.cancel()
    assert turns <= 3


async def test_others_get_their_turn_between_full_batches() -> None:
    doubling, seen = Doubling(), []

    async def other() -> None:
        for _ in range(3):
            seen.append(len(doubling.batches))
            await asyncio.sleep(0)

    batcher = Batcher(doubling, most=2)
    *results, _ = await asyncio.gather(*map(batcher.ask, range(5)), other())
    assert results == [0, 2, 4, 6, 8]
    assert doubling.batches == [[0, 1], [2, 3], [4]]
    assert seen == [0, 1, 2]


async def test_a_failure_reaches_everyone_of_its_batch_and_nobody_else() -> None:
    batcher = Batcher(Doubling(bad=2), most=3)
    results = await asyncio.gather(*map(batcher.ask, range(5)), return_exceptions=True)
    assert [str(one) for one in results[:3]] == ["2 cannot be doubled"] * 3
    assert results[3:] == [6, 8]
    assert await batcher.ask(1) == 2


async def test_one_who_gave_up_is_left_out_and_takes_nothing_from_the_others() -> None:
    doubling = Doubling(bad=1)
    batcher = Batcher(doubling, most=10)
    tasks = [asyncio.create_task(batcher.ask(number)) for number in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    assert await asyncio.gather(tasks[0], tasks[2]) == [0, 4]
    assert doubling.batches == [[0, 2]]
    assert tasks[1].cancelled()


async def test_when_all_gave_up_nothing_is_computed() -> None:
    doubling = Doubling()
    batcher = Batcher(doubling, most=10)
    task = asyncio.create_task(batcher.ask(1))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0)
    assert doubling.batches == []
    assert await batcher.ask(2) == 4


async def test_too_few_results_are_a_failure_and_no_wait_without_end() -> None:
    batcher: Batcher[int, int] = Batcher(lambda numbers: [0] * (len(numbers) - 1), most=10)
    results = await asyncio.gather(*map(batcher.ask, range(3)), return_exceptions=True)
    assert [type(one) for one in results] == [ValueError] * 3


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=30), st.integers(1, 7))
def test_everyone_gets_the_own_result_whatever_the_moment(turns: list[int], most: int) -> None:
    doubling = Doubling()

    async def late(number: int, wait: int) -> int:
        for _ in range(wait):
            await asyncio.sleep(0)
        return await batcher.ask(number)

    async def everyone() -> list[int]:
        return await asyncio.gather(*(late(number, wait) for number, wait in enumerate(turns)))

    batcher = Batcher(doubling, most)
    assert asyncio.run(everyone()) == [2 * number for number in range(len(turns))]
    assert sorted(number for batch in doubling.batches for number in batch) == list(range(len(turns)))
    assert all(1 <= len(batch) <= most for batch in doubling.batches)


@pytest.mark.parametrize("most", [1, 3])
async def test_a_batcher_serves_one_loop_after_another(most: int) -> None:
    batcher = Batcher(Doubling(), most)
    assert await asyncio.gather(*map(batcher.ask, range(4))) == [0, 2, 4, 6]
    found = await asyncio.to_thread(lambda: asyncio.run(batcher.ask(3)))
    assert found == 6

"""Coroutines run together: results in order, failures told to everybody, turns taken and given back."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.concurrency import LongestFirstSemaphore, gather


class Crew:
    def __init__(self) -> None:
        self.cancelled = 0

    async def fail(self, error: Exception) -> None:
        await asyncio.sleep(0)
        raise error

    async def work(self) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            for _ in range(5):
                await asyncio.sleep(0)
            self.cancelled += 1
            raise


async def test_the_first_failure_cancels_the_others_and_waits_until_they_have_cleaned_up() -> None:
    crew, first = Crew(), ValueError("first")
    with pytest.raises(ValueError, match="first") as caught:
        await gather([crew.work(), crew.fail(first), crew.work(), crew.fail(KeyError("second"))])
    assert caught.value is first
    assert crew.cancelled == 2
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_when_the_caller_is_cancelled_nobody_is_left_at_work() -> None:
    crew = Crew()
    task = asyncio.create_task(gather([crew.work(), crew.work()]))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert crew.cancelled == 2
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Work:
    def __init__(self, at_once: int) -> None:
        self.semaphore = LongestFirstSemaphore(at_once)
        self.begun: list[int] = []
        self.now = self.most = 0

    async def piece(self, name: int, length: int) -> None:
        async with self.semaphore.slot(length):
            self.begun.append(name)
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(1, 25))
def test_the_longest_begins_first_and_never_are_too_many_at_work(lengths: list[int], at_once: int) -> None:
    async def run() -> Work:
        work = Work(at_once)
        await gather(work.piece(name, length) for name, length in enumerate(lengths))
        return work

    work = asyncio.run(run())
    assert work.begun == sorted(range(len(lengths)), key=lambda name: -lengths[name])
    assert work.most == min(at_once, len(lengths))


async def test_who_gives_up_as_the_turn_comes_passes_it_on() -> None:
    work = Work(1)
    one = asyncio.create_task(work.piece(0, 9))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(one.cancel)
    await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await one
    assert work.begun == []
    await asyncio.wait_for(work.piece(1, 1), 10)
    assert work.begun == [1]

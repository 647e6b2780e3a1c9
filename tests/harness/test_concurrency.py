"""Concurrent coroutines: results in order, and cancellation of all after a failure."""

import asyncio

import pytest

from harness.concurrency import gather


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

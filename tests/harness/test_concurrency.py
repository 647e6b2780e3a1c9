"""Concurrent coroutines: results in order, and cancellation of all after a failure."""

import asyncio

import pytest

from harness.concurrency import gather


async def test_the_first_failure_cancels_the_others_and_waits_until_they_have_cleaned_up() -> None:
    ended = []

    async def fail(error: Exception) -> None:
        await asyncio.sleep(0)
        raise error

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.append(1)

    first = ValueError("first")
    with pytest.raises(ValueError, match="first") as caught:
        await gather([work(), fail(first), work(), fail(KeyError("second"))])
    assert (caught.value, len(ended)) == (first, 2)
    assert asyncio.all_tasks() == {asyncio.current_task()}

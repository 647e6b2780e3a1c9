import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.concurrency import Turns, gather


class Work:
    """Pieces of work that note who begins, and how many are under way."""

    def __init__(self, at_once: int) -> None:
        self.turns = Turns(at_once)
        self.begun: list[int] = []
        self.now = self.most = 0

    async def piece(self, name: int, length: int, rounds: int = 1) -> None:
        async with self.turns.turn(length):
            self.begun.append(name)
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(rounds):
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


async def test_who_gives_up_while_waiting_takes_no_turn() -> None:
    work = Work(1)
    first = asyncio.create_task(work.piece(0, 9, rounds=20))
    await asyncio.sleep(0)
    given_up, next_one = (asyncio.create_task(work.piece(name, 9 - name)) for name in (1, 2))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(first, next_one)
    assert work.begun == [0, 2]


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


async def test_a_failure_gives_the_turn_back() -> None:
    work = Work(1)

    async def fail() -> None:
        async with work.turns.turn(1):
            raise KeyError("mine")

    with pytest.raises(KeyError):
        await fail()
    await asyncio.wait_for(work.piece(1, 1), 10)

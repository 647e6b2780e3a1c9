"""Coroutines run together: gathered, shared, so many at a time."""

from __future__ import annotations

import asyncio
import heapq
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def processors() -> int:
    """Return the number of processors granted to this process, by a batch system often fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines together and return results in order; the first failure cancels the others and waits for them."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class InFlight(Generic[T]):
    """Running tasks by key, each shared by all callers that ask for its result."""

    def __init__(self) -> None:
        self._tasks: dict[bytes, asyncio.Task[T]] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._tasks

    async def run_once(self, key: bytes, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the work under a key, starting it unless it is running.

        All callers get the same result or error, and nothing is cached.
        """
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(work())
            self._tasks[key].add_done_callback(lambda done: self._end(key, done))
        # A caller that gives up must not take the work from the others.
        return await asyncio.shield(self._tasks[key])

    async def close(self) -> None:
        """Drop the work that is not done; closing twice is harmless."""
        unfinished = list(self._tasks.values())
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)

    def _end(self, key: bytes, task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # marks it as seen: every caller may have given up


class LongestFirstSemaphore:
    """Semaphore that admits the longest block first, even among those that arrive in one round of the event loop."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    @asynccontextmanager
    async def slot(self, length: int) -> AsyncIterator[None]:
        """Hold a slot for the block, admitted by its length, then by order of arrival."""
        loop = asyncio.get_running_loop()
        admitted: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._waiting, (-length, next(self._arrivals), admitted))
        loop.call_soon(self._admit)
        try:
            await admitted
            yield
        finally:
            # A block cancelled while it waits never had a slot; one cancelled just as it is admitted had.
            if admitted.done() and not admitted.cancelled():
                self._free += 1
                self._admit()

    def _admit(self) -> None:
        while self._free and self._waiting:
            _, _, first = heapq.heappop(self._waiting)
            if not first.done():
                first.set_result(None)
                self._free -= 1

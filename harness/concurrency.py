"""Coroutines run together: gathered, shared, batched, so many at a time; and one thread for the numerical libraries."""

from __future__ import annotations

import asyncio
import heapq
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Asked = TypeVar("Asked")
Given = TypeVar("Given")


def use_one_thread() -> None:
    """Let torch and the libraries under it compute with one thread in this process and in those it starts.

    How a sum is divided among threads shows in its last digits, so their number would show in every result. Call it
    before torch is imported: the libraries read the environment when they are loaded, and a limit set later holds for
    the calling thread alone.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results in the order given.

    When one fails, or this one is cancelled, the others are cancelled and waited for, so that nothing is left at work
    behind the caller's back; the first failure is raised as it is.
    """
    tasks = [asyncio.create_task(one) for one in coroutines]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class InFlight(Generic[T]):
    """One task for each thing that is being made; its length is their number."""

    def __init__(self) -> None:
        self._tasks: dict[bytes, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: bytes) -> bool:
        return key in self._tasks

    async def share(self, key: bytes, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work under this key, which is begun unless it is under way.

        A failure reaches everyone who waits and is not kept: who asks later starts again.
        """
        # A caller that gives up must not take the work from the others.
        return await asyncio.shield(self._tasks.get(key) or self._begin(key, work))

    async def close(self) -> None:
        """Drop the work that is not done; closing twice is harmless."""
        unfinished = list(self._tasks.values())
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)

    def _begin(self, key: bytes, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        task = asyncio.create_task(work())
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._end(key, done))
        return task

    def _end(self, key: bytes, task: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # marks it as seen: every caller may have given up


class Batcher(Generic[Asked, Given]):
    """Collects what coroutines ask for in one turn of the event loop and computes it at once.

    Nobody waits for company: one who asks alone is a batch of one. How questions fall into batches depends on timing,
    so a result of ``compute``, which runs on the event loop, may depend on its own question only. What goes beyond the
    ``most`` of a batch is computed in the following turns, between which the loop serves others.
    """

    def __init__(self, compute: Callable[[Sequence[Asked]], Sequence[Given]], most: int) -> None:
        self._compute = compute
        self._most = most
        self._waiting: list[tuple[Asked, asyncio.Future[Given]]] = []

    async def ask(self, question: Asked) -> Given:
        """The result for a question; where its batch fails, the failure reaches everyone in it."""
        future: asyncio.Future[Given] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        if len(self._waiting) == 1:
            future.get_loop().call_soon(self._turn)
        return await future

    def _turn(self) -> None:
        batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        if self._waiting:
            self._waiting[0][1].get_loop().call_soon(self._turn)
        wanted = [(question, future) for question, future in batch if not future.cancelled()]
        if not wanted:
            return
        try:
            results = self._compute([question for question, _ in wanted])
            pairs = list(zip(wanted, results, strict=True))
        except Exception as error:
            for _, future in wanted:
                future.set_exception(error)
            return
        for (_, future), result in pairs:
            future.set_result(result)


class Turns:
    """Lets so many blocks run at the same time, the longest first.

    Those that ask within one round of the event loop are compared before the first of them begins, so that of many
    begun together the longest work goes first even where nobody has to wait.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    @asynccontextmanager
    async def turn(self, length: int) -> AsyncIterator[None]:
        """Wait for a turn and keep it until the block ends; among equal lengths, who came first goes first."""
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._waiting, (-length, next(self._arrivals), mine))
        loop.call_soon(self._give)
        try:
            await mine
            yield
        finally:
            # Given up while waiting, it never had a turn; given up just as its turn came, it had.
            if mine.done() and not mine.cancelled():
                self._free += 1
                self._give()

    def _give(self) -> None:
        while self._free and self._waiting:
            _, _, first = heapq.heappop(self._waiting)
            if not first.done():
                first.set_result(None)
                self._free -= 1

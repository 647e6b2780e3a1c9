"""Work that is being done, shared by all who ask for the same thing while it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


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

        A failure reaches everyone who waits and is not kept: who asks later begins anew.
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

"""Turns: so many at a time, and of all who wait the one with the longest work first."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count


class Turns:
    """Lets so many blocks run at the same time.

    Those that ask within one round of the event loop are compared before the first of them begins, so that of many
    begun together the longest work goes first even where nobody has to wait.

    Args:
        at_once: How many.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = count()

    @asynccontextmanager
    async def turn(self, length: int) -> AsyncIterator[None]:
        """Wait for a turn and keep it until the block ends.

        Args:
            length: Of the work, in any unit; among equal ones, who came first goes first.
        """
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

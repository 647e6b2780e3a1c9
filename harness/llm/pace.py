"""How long an attempt may take: what the configuration says, or what the server's own pace says."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LONGEST_S = 600.0
SHORTEST_S = 30.0
# An attempt has hung when it takes so many times as long as the slowest of the last answers.
_TIMES_THE_SLOWEST = 3.0
_LAST = 200
# So few answers say nothing of the pace.
_ENOUGH = 10


class Pace:
    """The time limits of attempts at the servers of one backbone.

    Without a fixed limit, an attempt may take three times as long as the slowest of the last 200 answers, at least 30
    and at most 600 s, and 600 s before there were ten. The limits of attempts under way follow: who is slow because all
    are gets its time. Every further attempt of a call may take twice as long as the one before, so that what the server
    answers within 600 s is answered, whatever its pace; replies do not depend on it.

    Args:
        fixed_s: The limit of every attempt; ``None`` where the pace decides.
    """

    def __init__(self, fixed_s: float | None) -> None:
        self._fixed_s = fixed_s
        self._last: deque[float] = deque(maxlen=_LAST)
        self._limit_s = LONGEST_S if fixed_s is None else fixed_s
        self._under_way: dict[asyncio.Timeout, tuple[float, int]] = {}

    @asynccontextmanager
    async def limited(self, attempt: int) -> AsyncIterator[None]:
        """Limit the time of what is done inside the block; where it raises nothing, it was an answer.

        Args:
            attempt: Number of the attempt, from 1.

        Raises:
            TimeoutError: It took too long.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout_at(began + self._allowed_s(attempt)) as limit:
            self._under_way[limit] = began, attempt
            try:
                yield
            finally:
                del self._under_way[limit]
        if self._fixed_s is None:
            self._learn(loop.time() - began, loop.time())

    def _allowed_s(self, attempt: int) -> float:
        if self._fixed_s is not None:
            return self._fixed_s
        return min(LONGEST_S, self._limit_s * 2 ** (attempt - 1))

    def _learn(self, seconds: float, now: float) -> None:
        self._last.append(seconds)
        if len(self._last) < _ENOUGH:
            return
        limit_s = min(LONGEST_S, max(SHORTEST_S, _TIMES_THE_SLOWEST * max(self._last)))
        if limit_s == self._limit_s:
            return
        self._limit_s = limit_s
        for limit, (began, attempt) in self._under_way.items():
            if not limit.expired():
                limit.reschedule(max(now, began + self._allowed_s(attempt)))

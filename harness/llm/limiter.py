"""How many requests a server is sent at once: as many as it is willing to take."""

from __future__ import annotations

import time
from collections.abc import Callable

# A server that takes a sixteenth of what is in flight is met in four rounds, long before a call runs out of attempts.
SHRINK = 0.5
PAUSE_S = 5.0


class Limiter:
    """How many requests may be in flight: between 1 and ``most``, growing by one, shrinking by half.

    It begins at ``most``, since a server that queues by itself never refuses. What it learns is about one process.

    Args:
        most: The largest limit.
        clock: Seconds, never going back.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.in_flight = 0
        self._limit = float(most)
        self._round = 0
        self._paused_until = float("-inf")
        self._clock = clock

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        return int(self._limit)

    @property
    def has_room(self) -> bool:
        """Whether another request may be sent."""
        return self.in_flight < self.limit

    def begin(self) -> int:
        """Count a request in.

        Returns:
            Its round, by which a refusal is judged.
        """
        self.in_flight += 1
        return self._round

    def end(self) -> None:
        """Count a request out."""
        self.in_flight -= 1

    def refused(self, its_round: int) -> None:
        """Shrink, because the server said that it has too much to do (429).

        All that was in flight at that moment may be refused for the same reason, so of one round only the first counts.

        To be told while the request still counts as in flight.

        Args:
            its_round: Of the request that was refused.
        """
        if its_round == self._round:
            self._limit = max(1.0, min(self._limit, self.in_flight) * SHRINK)
            self._round += 1

    def troubled(self) -> None:
        """Stop growing for a while, because the server failed or could not be reached."""
        self._paused_until = self._clock() + PAUSE_S

    def succeeded(self) -> None:
        """Grow by one for every round of successes; what has not been tried out does not grow.

        To be told while the request still counts as in flight.
        """
        if self.in_flight >= self.limit and self._clock() >= self._paused_until:
            self._limit = min(float(self.most), self._limit + 1 / self._limit)

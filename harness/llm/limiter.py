"""How many requests a server is sent at once: as many as it is willing to take."""

from __future__ import annotations


class Limiter:
    """How many requests may be in flight: between 1 and ``most``.

    Every refusal takes one off, so that a burst of them leaves exactly what the server took, while refusals that have
    nothing to do with the load cost little. A round of successes adds one.

    It begins at ``most``, since a server that queues by itself never refuses. What it learns is about one process.

    Args:
        most: The largest limit.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.in_flight = 0
        self._limit = float(most)
        self._failures = 0

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        return int(self._limit)

    @property
    def has_room(self) -> bool:
        """Whether another request may be sent."""
        return self.in_flight < self.limit

    def begin(self) -> None:
        """Count a request in."""
        self.in_flight += 1

    def end(self) -> None:
        """Count a request out."""
        self.in_flight -= 1

    def refused(self) -> None:
        """Shrink by one, because the server said that it has too much to do (429)."""
        self._limit = max(1.0, self._limit - 1)

    def troubled(self) -> None:
        """Stop growing until a success makes up for it: the server failed or could not be reached."""
        self._failures += 1

    def succeeded(self) -> None:
        """Grow by one for every round of successes; what has not been tried out does not grow.

        To be told while the request still counts as in flight.
        """
        if self._failures:
            self._failures -= 1
        elif self.in_flight >= self.limit:
            self._limit = min(float(self.most), self._limit + 1 / self._limit)

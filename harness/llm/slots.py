"""One limit for the requests that all processes together keep open at a server.

The cells of a run are processes; each would keep as many requests in flight as the server is said to take. Here they
share that number through a small file (:mod:`harness.llm.slot_table`). A process does not go there for every call: it
holds slots as long as it has calls for them, and settles with the others at most fifty times a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from harness.errors import UserError
from harness.llm.slot_table import Row, SlotTable, fair_shares

TICK_S = 0.02
# Where locks are slow, as on some network file systems, settling takes at most this share of the time.
_SHARE_OF_TIME = 0.02
# Slots that were in use a moment ago are kept for the next burst, unless another process is short of them.
KEEP_S = 1.0
_IDLE_TICK_S = 0.1


class Slots:
    """What this process holds of the requests that a server may be sent at once.

    Args:
        path: The file that the processes share.
        most: Requests in flight of all processes together.
        on_more: Called when more may be sent than before.
        on_failure: Called with the reason when the file cannot be worked with; who waits would wait for ever.
    """

    def __init__(
        self, path: Path, most: int, on_more: Callable[[], None], on_failure: Callable[[UserError], None]
    ) -> None:
        self.most = most
        self.in_flight = 0
        self.held = 0
        self._usable = 0
        self._waiting = 0
        self._table = SlotTable(path)
        self._on_more = on_more
        self._on_failure = on_failure
        self._timer: asyncio.Handle | None = None
        self._settled = float("-inf")
        self._pause = TICK_S
        self._all_used = float("-inf")

    @property
    def has_room(self) -> bool:
        """Whether this process may send another request."""
        return self.in_flight < self._usable

    def begin(self) -> None:
        """Count a request in."""
        self.in_flight += 1

    def end(self) -> None:
        """Count a request out."""
        if self.in_flight == self.held:
            self._all_used = time.monotonic()
        self.in_flight -= 1
        self._settle_soon()

    def want(self, waiting: int) -> None:
        """Say how many requests would be sent if there were room."""
        self._waiting = waiting
        if self.in_flight + waiting > self._usable:
            self._settle_soon()

    def close(self) -> None:
        """Give everything back."""
        if self._timer is not None:
            self._timer.cancel()
        self._table.close()

    def _settle_soon(self, pause: float = 0.0) -> None:
        if self._timer is None:
            loop, wait = asyncio.get_running_loop(), self._settled + max(self._pause, pause) - time.monotonic()
            # Not at once: all that is about to want a slot in this turn of the loop is counted in.
            self._timer = loop.call_later(wait, self._settle) if wait > 0 else loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._timer = None
        began, before = time.monotonic(), self._usable
        try:
            with self._table.guarded() as alone:
                if alone:
                    self._agree(self._table.read(), began)
        except UserError as error:
            self._on_failure(error)
            return
        self._settled = time.monotonic()
        self._pause = max(TICK_S, (self._settled - began) / _SHARE_OF_TIME)
        if self._usable > before:
            self._on_more()
        if not alone or self.in_flight + self._waiting > self._usable:
            self._settle_soon()
        elif self.held > self.in_flight:
            self._settle_soon(_IDLE_TICK_S)

    def _agree(self, rows: list[Row], now: float) -> None:
        own = self._table.own
        demand = min(self.most, self.in_flight + self._waiting)
        rows[own] = rows[own]._replace(wanted=demand)
        share = fair_shares(rows, self.most)[own]
        others = [row for number, row in enumerate(rows) if number != own]
        free = self.most - sum(row.held for row in others)
        wish = share
        if now - self._all_used < KEEP_S and not any(row.wanted > row.held for row in others):
            wish = max(share, self.held)
        held = max(self.in_flight, min(wish, max(free, self.held)))
        given = max(row.given for row in rows) + 1 if held > self.held else rows[own].given
        self.held, self._usable = held, min(held, wish)
        self._table.write(Row(held, demand, given))

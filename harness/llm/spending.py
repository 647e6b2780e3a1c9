"""Keeps a run within its budget: asked before every call, told after it.

The processes of a run know of each other through a small file (:mod:`harness.llm.spending_table`). As with the limits
of servers, a process does not go there for every call: it reserves some in advance while there are plenty, and settles
with the others at most fifty times a second.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from harness.errors import UserError
from harness.llm.budget import Budget, Prices, Spent, refusal, spent_in, spent_up, state_of
from harness.llm.request import Reply, Request
from harness.llm.spending_table import UNKNOWN, Entry, SpendingTable, name_of

TICK_S = 0.02
# Where locks are slow, as on some network file systems, settling takes at most this share of the time.
_SHARE_OF_TIME = 0.02
# Who waits for what others have reserved and may give back.
_PATIENT_TICK_S = 0.2
# Calls are reserved in advance while what is left is so many times as much.
_PLENTY = 32


class Spending:
    """What this process spends of the budget of its run.

    Args:
        preset: Names the run.
        budget: Of all its processes together.
        table: The file that they share; closed with this.
        log: The call log that this process writes; what it holds has been spent.
        others: The other call logs of the run. Those that changed while nobody told are counted now.
        prices: What calls cost.

    Raises:
        UserError: A log is damaged, or the file cannot be worked with.
    """

    def __init__(
        self,
        preset: str,
        budget: Budget,
        table: SpendingTable,
        log: Path,
        others: Iterable[Path],
        prices: Prices,
    ) -> None:
        self._preset = preset
        self._budget = budget
        self._table = table
        self._log = log
        self._prices = prices
        self._in_flight = 0
        self._held = 0
        self._is_over = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.Handle | None = None
        self._settled = float("-inf")
        self._pause = TICK_S
        with ExitStack() as opened:
            opened.callback(table.close)
            rows = self._rows_of([log, *others])
            self._row = rows[log]
            self._spent = self._up_to_date(log, self._row, wait=True)
            self._elsewhere = Spent()
            for other in others:
                if other != log:
                    self._up_to_date(other, rows[other], wait=False)
            self._tell(Entry(name_of(log), self._spent, 0, UNKNOWN))
            opened.pop_all()

    async def pay(self, request: Request, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """Ask a server where the budget allows it.

        Args:
            request: The call.
            ask: Asks and records it.

        Raises:
            BudgetError: It is spent. That is said when all that is in flight in this process has been recorded.
        """
        await self._reserve()
        try:
            reply = await ask()
            paid = self._prices.of(request.model, reply)
            self._spent = self._spent.plus(paid)
            # What failed gives back what was reserved for it.
            self._held -= paid.calls
            return reply
        finally:
            self._in_flight -= 1
            self._settle_soon()

    def close(self) -> None:
        """Give back what is reserved, and tell what was spent; closing twice is harmless."""
        if self._row < 0:
            return
        if self._timer is not None:
            self._timer.cancel()
        try:
            self._tell(Entry(name_of(self._log), self._spent, 0, state_of(self._log)))
        finally:
            self._row = -1
            self._table.close()

    async def _reserve(self) -> None:
        if not self._waiting and not self._is_over and self._in_flight < self._held:
            self._in_flight += 1
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        self._settle_soon()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled() and mine.exception() is None:
                self._in_flight -= 1
                self._settle_soon()
            raise

    def _settle_soon(self, pause: float = 0.0) -> None:
        if self._timer is None and self._row >= 0:
            loop, wait = asyncio.get_running_loop(), self._settled + max(self._pause, pause) - time.monotonic()
            # Not at once: all that is about to ask in this turn of the loop is counted in.
            self._timer = loop.call_later(wait, self._settle) if wait > 0 else loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._timer = None
        began = time.monotonic()
        try:
            with self._table.guarded() as alone:
                if alone:
                    self._agree(self._table.read())
        except UserError as error:
            self._turn_away(error)
            return
        self._settled = time.monotonic()
        self._pause = max(TICK_S, (self._settled - began) / _SHARE_OF_TIME)
        while self._waiting and not self._is_over and self._in_flight < self._held:
            first = self._waiting.popleft()
            if not first.done():
                self._in_flight += 1
                first.set_result(None)
        if self._waiting and self._is_over and not self._in_flight:
            spent = self._spent.plus(self._elsewhere)
            reached = spent_up(self._budget, spent) or "the last calls were begun by a process that was killed"
            self._turn_away(refusal(self._preset, reached, spent))
        elif not alone or self._waiting:
            self._settle_soon(_PATIENT_TICK_S if alone else 0.0)

    def _agree(self, rows: list[Entry]) -> None:
        """Reserve what is needed and left, and tell what was spent."""
        others = [(number, row) for number, row in enumerate(rows) if number != self._row]
        self._elsewhere = _sum(row.spent for _, row in others)
        promised = sum(row.reserved for _, row in others)
        spent = self._spent.plus(self._elsewhere)
        self._waiting = deque(one for one in self._waiting if not one.done())
        wanted = self._in_flight + len(self._waiting)
        if self._budget.calls is None:
            left = wanted
        else:
            left = self._budget.calls - spent.calls - promised
            if wanted * _PLENTY < left:
                wanted *= 2
        self._held = max(self._in_flight, min(wanted, left))
        # What processes that were killed had reserved may be in their logs, which are counted at the next start.
        lost = left <= 0 < promised and all(self._is_ownerless(number) for number, row in others if row.reserved)
        self._is_over = spent_up(self._budget, spent) is not None or lost
        if self._is_over:
            self._held = self._in_flight
        self._table.write(self._row, Entry(name_of(self._log), self._spent, self._held, UNKNOWN))

    def _turn_away(self, error: UserError) -> None:
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():
                first.set_exception(error)

    def _is_ownerless(self, row: int) -> bool:
        if not self._table.own(row):
            return False
        self._table.disown(row)
        return True

    def _rows_of(self, logs: Iterable[Path]) -> dict[Path, int]:
        """The row of each log; those that have none get one."""
        with self._table.guarded(wait=True):
            known = {row.name: number for number, row in enumerate(self._table.read())}
            for log in logs:
                if (name := name_of(log)) not in known:
                    known[name] = len(known)
                    self._table.write(known[name], Entry(name, Spent(), 0, UNKNOWN))
        return {log: known[name_of(log)] for log in logs}

    def _up_to_date(self, log: Path, row: int, *, wait: bool) -> Spent:
        """What a log's row tells, after it was counted anew where it did not tell of the log as it is.

        Args:
            log: The log.
            row: Its row, which stays ours if this process has to have it.
            wait: Whether it has to; otherwise one that another process has is left to that.
        """
        if not self._table.own(row, wait=wait):
            return Spent()
        try:
            with self._table.guarded(wait=True):
                told, state = self._table.read()[row], state_of(log)
            if state and told.state == state and not told.reserved:
                return told.spent
            # What was paid stays paid, whether its log is still there or never was.
            spent = spent_in(log, self._prices) if state else told.spent
            with self._table.guarded(wait=True):
                self._table.write(row, Entry(name_of(log), spent, 0, state))
            return spent
        finally:
            if not wait:
                self._table.disown(row)

    def _tell(self, entry: Entry) -> None:
        with self._table.guarded(wait=True):
            self._table.write(self._row, entry)


def _sum(parts: Iterable[Spent]) -> Spent:
    total = Spent()
    for part in parts:
        total = total.plus(part)
    return total

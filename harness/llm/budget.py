"""What a run may ask of its backbones, and what it has asked: the sums in the call logs of its preset.

A call that was answered counts in the log of the cell that asked it. What a log answers, this cell's own or one it
shares, costs nothing, and neither does a call that failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import PositiveFloat, PositiveInt

from harness.errors import UserError
from harness.files import Declaration
from harness.llm.backbones import Backbone
from harness.llm.call_log import CallLogReader
from harness.llm.request import Reply, Request

# Calls of this process after which it looks again at what the others have asked.
CHECK_EVERY = 200


class Budget(Declaration):
    """The most that all cells of a preset together may take; ``None`` for no bound.

    Attributes:
        calls: Calls; exceeded at most by what other cells ask between two looks at their logs.
        tokens: Prompt and completion tokens; what is in flight when they are spent is paid in addition.
        cost: In the paper's unit; likewise.
    """

    calls: PositiveInt | None = None
    tokens: PositiveInt | None = None
    cost: PositiveFloat | None = None

    def reached(self, spent: Spent, in_flight: int = 0) -> str | None:
        """Return which bound is reached, in words; ``None`` if none is."""
        if self.calls is not None and spent.calls + in_flight >= self.calls:
            return f"{spent.calls:,} of {self.calls:,} calls"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"{spent.tokens:,} of {self.tokens:,} tokens"
        if self.cost is not None and spent.cost >= self.cost:
            return f"{spent.cost:,.4g} of {self.cost:,.4g} cost"
        return None


class Spent(NamedTuple):
    """What was asked and answered: calls, prompt and completion tokens, cost in the paper's unit."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.cost + other.cost)


class BudgetError(UserError):
    """The budget of a run is spent."""


class Prices:
    """What calls cost.

    Args:
        backbones: Those a run may ask.
    """

    def __init__(self, backbones: Iterable[Backbone]) -> None:
        self._backbones = {backbone.model: backbone for backbone in backbones}

    def of(self, model: str, reply: Reply) -> Spent:
        """Return what one call took; nothing if it failed."""
        if reply.error is not None:
            return Spent()
        return self.of_all(model, 1, reply.prompt_tokens, reply.completion_tokens)

    def of_all(self, model: str, calls: int, prompt_tokens: int, completion_tokens: int) -> Spent:
        """Return what calls of one model took together."""
        backbone = self._backbones.get(model)
        cost = backbone.cost(prompt_tokens, completion_tokens) if backbone else 0.0
        return Spent(calls, prompt_tokens + completion_tokens, cost)


def spent_in(logs: Iterable[Path], prices: Prices) -> Spent:
    """Return what cells asked, in all their configurations.

    Args:
        logs: Their call logs.
        prices: What calls cost.

    Raises:
        UserError: A log is damaged.
    """
    spent = Spent()
    for log in logs:
        with CallLogReader(log) as reader:
            for paid in reader.paid():
                spent = spent.plus(prices.of_all(*paid))
    return spent


class Spending:
    """Keeps a cell within the budget of its preset: asked before every call, told after it.

    Args:
        preset: Names the run.
        budget: Of all its cells together.
        spent: Sums up the logs of the preset, this cell's own included.
        prices: What calls cost.

    Raises:
        UserError: A log is damaged.
    """

    def __init__(self, preset: str, budget: Budget, spent: Callable[[], Spent], prices: Prices) -> None:
        self._preset = preset
        self._budget = budget
        self._sum = spent
        self._prices = prices
        self._spent = spent()
        self._paid = 0
        self._in_flight = 0
        self._ended = asyncio.Event()

    async def pay(self, request: Request, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """Ask where the budget allows it.

        Args:
            request: The call.
            ask: Asks and records it.

        Raises:
            BudgetError: It is spent. That is said when all that is in flight in this process has been recorded.
        """
        while (reached := self._budget.reached(self._spent, self._in_flight)) is not None:
            if not self._in_flight:
                raise self._refusal(reached)
            self._ended.clear()
            await self._ended.wait()
        self._in_flight += 1
        try:
            reply = await ask()
            self._spent = self._spent.plus(self._prices.of(request.model, reply))
        finally:
            self._in_flight -= 1
            self._ended.set()
        self._paid += 1
        if self._paid % CHECK_EVERY == 0:
            self._spent = self._sum()
        return reply

    def _refusal(self, reached: str) -> BudgetError:
        spent = self._spent
        return BudgetError(
            f"the budget of preset {self._preset} is spent: {reached} (in all {spent.calls:,} calls, {spent.tokens:,} "
            f"tokens, cost {spent.cost:.4g}). Every finished call is kept; raise `budget`, in "
            f"config/presets/{self._preset}.yaml or with --config budget='{{...}}', and give the same command again to "
            "go on"
        )

"""The budget of a run and its use: the sums in the call logs of its preset.

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

    What other cells ask between two looks at their logs comes on top, and the tokens and cost of what is in flight.
    """

    calls: PositiveInt | None = None
    tokens: PositiveInt | None = None  # of prompts and completions
    cost: PositiveFloat | None = None  # in the paper's unit


class Spent(NamedTuple):
    """The use of finished calls: calls, prompt and completion tokens, cost in the paper's unit."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class BudgetError(UserError):
    """The budget of a run is spent."""


class Spending:
    """Keeps a cell within the budget of its preset: asked before every call, told after it.

    Args:
        preset: Names the run.
        budget: Of all its cells together.
        logs: Finds the logs of the preset, this cell's own included.
        backbones: Those of the preset, for their prices.
    """

    def __init__(
        self, preset: str, budget: Budget, logs: Callable[[], Iterable[Path]], backbones: Iterable[Backbone]
    ) -> None:
        self._preset = preset
        self._budget = budget
        self._logs = logs
        self._backbones = {backbone.model: backbone for backbone in backbones}
        self.spent = self._sum()
        self._paid = 0
        self._in_flight = 0
        self._ended = asyncio.Event()

    async def pay(self, request: Request, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """Ask, and record, where the budget allows it.

        Raises:
            BudgetError: It is spent. That is said when all that is in flight in this process has been recorded.
        """
        while (reached := self._reached()) is not None:
            if not self._in_flight:
                raise BudgetError(reached)
            self._ended.clear()
            await self._ended.wait()
        self._in_flight += 1
        try:
            reply = await ask()
            if reply.error is None:
                self.spent = self._plus(self.spent, request.model, 1, reply.prompt_tokens, reply.completion_tokens)
        finally:
            self._in_flight -= 1
            self._ended.set()
        self._paid += 1
        if self._paid % CHECK_EVERY == 0:
            self.spent = self._sum()
        return reply

    def _sum(self) -> Spent:
        spent = Spent()
        for log in self._logs():
            with CallLogReader(log) as reader:
                for row in reader.paid():
                    spent = self._plus(spent, *row)
        return spent

    def _plus(self, spent: Spent, model: str, calls: int, sent: int, written: int) -> Spent:
        cost = self._backbones[model].cost(sent, written) if model in self._backbones else 0.0
        return Spent(spent.calls + calls, spent.tokens + sent + written, spent.cost + cost)

    def _reached(self) -> str | None:
        spent = self.spent
        for name, most in self._budget:
            here = getattr(spent, name)
            if most is not None and here + (self._in_flight if name == "calls" else 0) >= most:
                return (
                    f"the budget of preset {self._preset} is spent: {here:,.10g} of {most:,.10g} {name} (in all "
                    f"{spent.calls:,} calls, {spent.tokens:,} tokens, cost {spent.cost:.4g}). Every finished call is "
                    f"kept; raise `budget`, in config/presets/{self._preset}.yaml or with --config budget='{{...}}', "
                    "and give the same command again to resume"
                )
        return None

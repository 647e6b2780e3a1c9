"""Budget of a preset, summed over the call logs of its cells."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from pydantic import PositiveFloat, PositiveInt

from harness.errors import UserError
from harness.files import Declaration
from harness.llm.backbones import Backbone
from harness.llm.call_log import CallLogReader
from harness.llm.request import Reply, Request

# Number of calls after which the logs of other processes are read again.
CHECK_EVERY = 200


class Budget(Declaration):
    """Limits on the sum over all cells of a preset. Calls made between two log reads can exceed them."""

    calls: PositiveInt | None = None
    tokens: PositiveInt | None = None  # prompt plus completion
    cost: PositiveFloat | None = None  # in the paper's unit of cost


class BudgetError(UserError):
    """The budget of a preset is spent."""


class Spending:
    """Budget accounting of one cell: refuses calls once the cells of its preset have spent the budget."""

    def __init__(
        self, preset: str, budget: Budget, logs: Callable[[], Iterable[Path]], backbones: Iterable[Backbone]
    ) -> None:
        self._preset, self._budget, self._logs = preset, budget, logs
        self._backbones = {backbone.model: backbone for backbone in backbones}
        self._paid = self._in_flight = 0
        self._ended = asyncio.Event()
        #: Totals of the finished calls of all cells. Those of other processes date from the last reading of the logs.
        self.spent = self._sum()

    async def pay(self, request: Request, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """Run ``ask``, which records its reply. If the budget is spent, await calls in flight and raise BudgetError."""
        while (reached := self._reached()) is not None:
            if not self._in_flight:
                raise BudgetError(reached)
            self._ended.clear()
            await self._ended.wait()
        self._in_flight += 1
        try:
            reply = await ask()
            if reply.error is None:
                self.add(request.model, reply.prompt_tokens, reply.completion_tokens)
        finally:
            self._in_flight -= 1
            self._ended.set()
        self._paid += 1
        if self._paid % CHECK_EVERY == 0:
            total = await asyncio.to_thread(self._sum)
            self.spent |= total  # the larger of both, since calls may have ended meanwhile
        return reply

    def add(self, model: str, prompt_tokens: int, completion_tokens: int) -> None:
        self.spent += self._spent(model, 1, prompt_tokens, completion_tokens)

    def _sum(self) -> Counter[str]:
        spent = Counter[str]()
        for log in self._logs():
            with CallLogReader(log) as reader:
                for row in reader.paid():
                    spent += self._spent(*row)
        return spent

    def _spent(self, model: str, calls: int, prompt_tokens: int, completion_tokens: int) -> Counter[str]:
        cost: Any = self._backbones[model].cost(prompt_tokens, completion_tokens) if model in self._backbones else 0.0
        return Counter(calls=calls, tokens=prompt_tokens + completion_tokens, cost=cost)

    def _reached(self) -> str | None:
        for name, limit in self._budget:
            used = self.spent[name]
            if limit is not None and used + (self._in_flight if name == "calls" else 0) >= limit:
                calls, tokens, cost = (self.spent[name] for name in Budget.model_fields)
                return (
                    f"the budget of preset {self._preset} is spent: {used:,.10g} of {limit:,.10g} {name} (in all "
                    f"{calls:,} calls, {tokens:,} tokens, cost {cost:.4g}). Every finished call of a cell is kept; "
                    f"raise `budget`, in config/presets/{self._preset}.yaml or with --config budget='{{...}}', and "
                    "give the same command again to resume"
                )
        return None

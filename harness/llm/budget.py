"""What a run may ask of servers, and what it has asked.

What counts is what servers were asked and answered: once for every call in the call logs of a preset. What a log
answers, this cell's own or one it shares, costs nothing, and neither does a call that failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.llm.call_log import CallLogReader
from harness.llm.request import Reply
from harness.runner.config import Budget


class Spent(NamedTuple):
    """What servers were paid: calls, prompt and completion tokens, cost in the paper's unit."""

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
        """What one call took; nothing if it failed."""
        if reply.error is not None:
            return Spent()
        return self.of_all(model, 1, reply.prompt_tokens, reply.completion_tokens)

    def of_all(self, model: str, calls: int, prompt_tokens: int, completion_tokens: int) -> Spent:
        """What calls of one model took together."""
        backbone = self._backbones.get(model)
        cost = backbone.cost(prompt_tokens, completion_tokens) if backbone else 0.0
        return Spent(calls, prompt_tokens + completion_tokens, cost)


def spent_in(log: Path, prices: Prices) -> Spent:
    """What a cell asked of servers, in all its configurations.

    Args:
        log: Its call log.
        prices: What calls cost.

    Raises:
        UserError: The log is damaged.
    """
    spent = Spent()
    with CallLogReader(log) as reader:
        for paid in reader.paid():
            spent = spent.plus(prices.of_all(*paid))
    return spent


def state_of(log: Path) -> int:
    """A number that is another one after a log has changed; 0 if there is none."""
    try:
        found = log.stat()
    except FileNotFoundError:
        return 0
    return hash((found.st_size, found.st_mtime_ns)) & ((1 << 56) - 1) or 1


def spent_up(budget: Budget, spent: Spent) -> str | None:
    """Which bound is reached, in words; ``None`` if none is."""
    bounds: Mapping[str, tuple[float | None, float]] = {
        "calls": (budget.calls, spent.calls),
        "tokens": (budget.tokens, spent.tokens),
        "cost": (budget.cost, spent.cost),
    }
    for name, (bound, reached) in bounds.items():
        if bound is not None and reached >= bound:
            return f"{reached:,.4g} of {bound:,.4g} cost" if name == "cost" else f"{reached:,} of {bound:,} {name}"
    return None


def refusal(preset: str, reached: str, spent: Spent) -> BudgetError:
    """What to say when no further call may be asked."""
    return BudgetError(
        f"the budget of preset {preset} is spent: {reached} (in all {spent.calls:,} calls, {spent.tokens:,} tokens, "
        f"cost {spent.cost:.4g}). Every finished call is kept; raise `budget`, in config/presets/{preset}.yaml or with "
        "--config budget='{...}', and give the same command again to go on"
    )

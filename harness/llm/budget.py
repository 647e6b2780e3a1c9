"""What a run may ask of servers, and what it has asked.

What counts is what servers were asked and answered: once for every call in the call logs of a preset. What a log
answers, this cell's own or one it shares, costs nothing, and neither does a call that failed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.errors import UserError
from harness.llm.backbones import Backbone
from harness.llm.call_log import outcomes
from harness.llm.request import Reply
from harness.llm.sealed_log import SealedLog, sealed_of, spare_of
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
        backbone = self._backbones.get(model)
        cost = backbone.cost(reply.prompt_tokens, reply.completion_tokens) if backbone else 0.0
        return Spent(1, reply.prompt_tokens + reply.completion_tokens, cost)


def spent_in(log: Path, shared: Iterable[SealedLog], prices: Prices) -> Spent:
    """What the calls of a log took, other configurations of its cell included.

    Args:
        log: The log.
        shared: Logs that answered some of them.
        prices: What calls cost.

    Raises:
        UserError: The log is damaged.
    """
    answering, spent = list(shared), Spent()
    for key, model, reply in outcomes(log):
        if not any(one.get(key) for one in answering):
            spent = spent.plus(prices.of(model, reply))
    return spent


def state_of(log: Path) -> int:
    """A number that is another one after a log has changed; 0 if there is none."""
    files = [file for file in (log, sealed_of(log), spare_of(log)) if file.exists() and file.stat().st_size]
    if not files:
        return 0
    said = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
    return int.from_bytes(hashlib.sha256("\n".join(said).encode()).digest()[:7], "little") or 1


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

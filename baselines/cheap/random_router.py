"""Random choice of one backbone a question, each as likely as the others."""

from __future__ import annotations

import math

from harness.agents.runtime import Context
from harness.agents.trajectory import Decision
from harness.benchmarks.items import Item
from harness.files import Declaration
from harness.runner.method import Setting


class Config(Declaration):
    """Settings of the random choice: none."""


class RandomRouter:
    """One backbone, drawn for each question; one call."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self._pool = list(setting.pool)

    async def solve(self, item: Item, context: Context) -> str:
        """Return the reply of the backbone that was drawn."""
        size = len(self._pool)
        backbone = self._pool[int(size * context.uniform(1, "backbone"))]
        context.decide(Decision(1, "backbone", 0, backbone, size, -math.log(size)))
        return await context.ask_question(backbone)


build = RandomRouter

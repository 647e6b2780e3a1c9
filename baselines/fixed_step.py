"""The best constant policy of a GMR of one step: the role and backbone that did best on the training questions."""

from __future__ import annotations

from itertools import product

from gmr.config import Config, pool_of
from gmr.enumeration import Branch
from harness.agents.runtime import Context
from harness.agents.trajectory import Answered, Decision
from harness.benchmarks.items import Item
from harness.runner.method import Setting
from harness.training.option_scores import OptionScores

__all__ = ["Config", "build"]


class FixedStep(OptionScores):
    """Role and backbone that are right most often on the training questions, with the step stored."""

    def __init__(self, setting: Setting, config: Config) -> None:
        pool = pool_of(config, setting)
        branches = (Branch(role, backbone.key, True) for backbone, role in product(pool.backbones, pool.roles))
        super().__init__(setting, {f"{branch.role.key} of {branch.backbone}": branch.solve for branch in branches})

    def utility(self, answered: Answered) -> float:
        """Return 1 for a right answer and 0 for a wrong one, whatever it costs."""
        return float(answered.verdict.correct)

    async def solve(self, item: Item, context: Context) -> str:
        """Return the answer of the chosen step."""
        context.decide(Decision(1, "step", 0, self.best, len(self.pool), 0.0))
        return await self.options[self.best](item, context)


build = FixedStep

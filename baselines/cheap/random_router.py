"""Random router: each question goes to a uniformly drawn backbone."""

import math

from harness.files import Declaration
from harness.method import Context, Decision, Item
from harness.runner.setting import Setting


class Config(Declaration):
    """The random router has no settings."""


class RandomRouter:
    """Makes one call per question, to a uniformly drawn backbone."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self._pool = list(setting.pool)

    async def solve(self, item: Item, context: Context) -> str:
        size = len(self._pool)
        backbone = self._pool[int(size * context.uniform(1, "backbone"))]
        context.decide(Decision(1, "backbone", 0, backbone, size, -math.log(size)))
        return await context.ask_question(backbone)


build = RandomRouter

"""Best constant role and backbone of a single-step GMR, by training accuracy. The step is always stored."""

from gmr.config import Config
from gmr.paths import stored_paths
from harness.method import Context, Decision, Item
from harness.runner.setting import Setting
from harness.training.loop import OptionScores

__all__ = ["Config", "build"]


class FixedStep(OptionScores):
    """Always acts with the role and backbone that are most accurate on the training questions."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self._paths = stored_paths(config, setting)
        super().__init__(self._paths, setting.max_epochs, self._paths)

    async def solve(self, item: Item, context: Context) -> str:
        context.decide(Decision(1, "step", 0, self.best, len(self.pool), 0.0))
        return await self._paths[self.best](item, context)


build = FixedStep

"""k-nearest-neighbour router over training questions (after RouterBench, Hu et al. 2024; D-BASE-3)."""

import numpy as np
from pydantic import NonNegativeFloat, PositiveInt

from harness.files import Declaration
from harness.method import Answered, Context, Decision, Item
from harness.runner.setting import Setting
from harness.training.loop import OptionScores


class Config(Declaration):
    """Settings of the router."""

    neighbours: PositiveInt = 10  # number k; reduced if there are fewer training questions
    cost_weight: NonNegativeFloat = 20.0  # accuracy that one unit of cost is worth, like λ_c of GMR


class KNNRouter(OptionScores):
    """Chooses one backbone per question by mean utility on the most similar training questions."""

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__(setting.pool, setting.max_epochs)
        self._config = config
        self._cost_weight = config.cost_weight * setting.cost_factor

    def utility(self, answered: Answered) -> float:
        """Correctness (1 or 0) minus weighted cost."""
        return float(answered.verdict.correct) - self._cost_weight * answered.trajectory.cost_total

    async def solve(self, item: Item, context: Context) -> str:
        """Ask the backbone with the highest mean utility (ties: the first). Before training, the first backbone."""
        best = 0
        if len(self.embeddings):
            # Vectors have unit length, so their product is the cosine.
            similarities = self.embeddings @ await context.embed(item.question)
            neighbours = np.argsort(-similarities, kind="stable")[: self._config.neighbours]
            utilities = self.correct[neighbours] - self._cost_weight * self.costs[neighbours]
            best = int(utilities.mean(axis=0).argmax())
        context.decide(Decision(1, "backbone", 0, self.pool[best], len(self.pool), 0.0))
        return await context.ask_question(self.pool[best])


build = KNNRouter

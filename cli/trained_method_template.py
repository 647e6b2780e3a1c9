"""Template of a trained router: asks the backbone with the highest predicted accuracy minus weighted cost."""

import torch

from harness.agents.trajectory import Answered, Decision
from harness.benchmarks.items import Item
from harness.files import Declaration
from harness.method import Context
from harness.runner.setting import Setting
from harness.training.learning import Learning, seeded
from harness.training.loop import Learned, Training


class Config(Declaration):
    """Fields of ``config`` in the entry of the method."""

    cost_weight: float = 20.0  # accuracy that a unit of cost is worth in the paper's pool, as λ_c of GMR


class Router:
    """A method that learns from the training questions."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self.pool, self.seed = list(setting.pool), setting.seed
        self.cost_weight = config.cost_weight * setting.cost_factor

    async def fit(self, training: Training) -> Learned:
        """Ask each backbone each training question once, and learn from the outcomes."""
        outcomes = await training.outcomes()
        # Shapes (questions, 384), (questions, backbones), (questions, backbones).
        embeddings, correct, costs = (torch.tensor(array).double() for array in outcomes.tensors.values())
        self.costs = costs.mean(0)
        self.layer = seeded(lambda: torch.nn.Linear(embeddings.shape[1], len(self.pool)), "weights", self.seed)
        learning = Learning(self.layer, lr=0.05)
        for _ in range(200):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(self.layer(embeddings), correct)
            learning.step(loss + self.layer.weight.square().sum() / (2 * correct.numel()))
        return outcomes

    async def solve(self, item: Item, context: Context) -> str:
        """Return the reply of the backbone with the highest predicted utility."""
        chances = self.layer(torch.tensor(await context.embed(item.question)).double()).sigmoid()
        backbone = self.pool[int((chances - self.cost_weight * self.costs).argmax())]
        context.decide(Decision(1, "backbone", 0, backbone, len(self.pool), 0.0))
        return await context.ask_question(backbone)

    def utility(self, answered: Answered) -> float:
        """Return the router's objective, which the training tables show."""
        return answered.verdict.correct - self.cost_weight * answered.trajectory.cost_total


def build(setting: Setting, config: Config) -> Router:
    """Build the method for a row, a benchmark and a seed."""
    return Router(setting, config)

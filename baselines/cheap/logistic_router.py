"""Logistic regression on embeddings: takes the option with the highest predicted accuracy minus weighted cost."""

from collections.abc import Mapping
from functools import partial
from typing import Literal

import torch

from gmr.config import Config as Steps
from gmr.paths import stored_paths
from harness.files import Declaration
from harness.method import Answered, Context, Decision, Item, Solve
from harness.runner.setting import Setting
from harness.training.learning import Learning, seeded
from harness.training.loop import Learned, Training, ask_once


class Config(Declaration):
    """Fields of ``config`` in the entry of the method."""

    cost_weight: float = 20.0  # accuracy that a unit of cost is worth in the paper's pool, as λ_c of GMR
    # Chosen is a backbone, or a stored first step of GMR: a role of the benchmark's domain on a backbone.
    choice: Literal["backbone", "path"] = "backbone"
    shuffle_labels: bool = False  # a control, which learns how good each option is, but nothing about questions


class Router:
    """A method that learns from the training questions."""

    def __init__(self, setting: Setting, config: Config) -> None:
        self.options: Mapping[str, Solve] = {key: partial(ask_once, key) for key in setting.pool}
        if config.choice == "path":
            self.options = stored_paths(Steps(epochs={"default": 1}, role_pool="domain"), setting)
        self.choice, self.seed, self.is_control = config.choice, setting.seed, config.shuffle_labels
        self.cost_weight = config.cost_weight * setting.cost_factor

    async def fit(self, training: Training) -> Learned:
        """Try each option on each training question once, and learn from the outcomes."""
        outcomes = await training.outcomes(self.options)
        # Shapes (questions, 384), (questions, options), (questions, options).
        embeddings, correct, costs = (torch.tensor(array).double() for array in outcomes.tensors.values())
        if self.is_control:
            correct = correct[torch.randperm(len(correct), generator=torch.Generator().manual_seed(self.seed))]
        self.costs = costs.mean(0)
        self.layer = seeded(lambda: torch.nn.Linear(embeddings.shape[1], len(self.options)), "weights", self.seed)
        learning = Learning(self.layer, lr=0.05)
        for _ in range(200):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(self.layer(embeddings), correct)
            learning.step(loss + self.layer.weight.square().sum() / (2 * correct.numel()))
        return outcomes

    async def solve(self, item: Item, context: Context) -> str:
        """Return the reply of the option with the highest predicted utility."""
        chances = self.layer(torch.tensor(await context.embed(item.question)).double()).sigmoid()
        option = list(self.options)[int((chances - self.cost_weight * self.costs).argmax())]
        context.decide(Decision(1, self.choice, 0, option, len(self.options), 0.0))
        return await self.options[option](item, context)

    def utility(self, answered: Answered) -> float:
        """Return the router's objective, which the training tables show."""
        return answered.verdict.correct - self.cost_weight * answered.trajectory.cost_total


build = Router

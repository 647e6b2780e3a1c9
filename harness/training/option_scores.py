"""Scores of every option on every training question, for methods that learn without a network."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.llm.encoder import EMBEDDING
from harness.method import Solve
from harness.runner.setting import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.loop import Training


class OptionScores:
    """Per-option accuracy and cost on the training questions. Empty until :meth:`fit` has run.

    Args:
        setting: Setting of the method.
        options: Solvers by name. Default: one call to each backbone of the pool.
    """

    def __init__(self, setting: Setting, options: Mapping[str, Solve] | None = None) -> None:
        self._options = options
        self.pool = tuple(setting.pool if options is None else options)
        self._passes = setting.epochs({"default": 1})
        self.embeddings: NDArray[Any] = np.zeros((0, EMBEDDING))  # shape (questions, 384)
        # Verdicts and costs, shape (questions, options).
        self.correct: NDArray[Any] = np.zeros((0, len(self.pool)))
        self.costs: NDArray[Any] = self.correct

    @property
    def best(self) -> str:
        """Most accurate option; ties go to the cheapest. The first option before training."""
        order = np.lexsort((self.costs.sum(axis=0), -self.correct.sum(axis=0)))
        return self.pool[order[0]]

    async def fit(self, training: Training) -> None:
        """Run every option on all questions, or load the finished checkpoint."""
        self.load(await training.outcomes(self._options, self._passes))

    def load(self, checkpoint: Checkpoint) -> None:
        tensors = (checkpoint.tensors[name] for name in ("embeddings", "correct", "costs"))
        self.embeddings, self.correct, self.costs = tensors

"""Scores of every option on every training question, for methods that learn without a network."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.llm.encoder import EMBEDDING
from harness.method import Solve
from harness.training.loop import Learned, Training


class OptionScores:
    """Per-option accuracy and cost on the training questions. Empty until :meth:`fit` has run.

    Args:
        pool: Names of the options.
        max_epochs: 0 leaves the scores empty.
        options: Solvers by name. Default: one call to each backbone of the pool.
    """

    def __init__(self, pool: Iterable[str], max_epochs: int | None, options: Mapping[str, Solve] | None = None) -> None:
        self.pool = tuple(pool)
        self._max_epochs, self._options = max_epochs, options
        self.embeddings: NDArray[Any] = np.zeros((0, EMBEDDING))  # shape (questions, 384)
        # Verdicts and costs, shape (questions, options).
        self.correct: NDArray[Any] = np.zeros((0, len(self.pool)))
        self.costs: NDArray[Any] = self.correct

    @property
    def best(self) -> str:
        """Most accurate option; ties go to the cheapest. The first option before training."""
        order = np.lexsort((self.costs.sum(axis=0), -self.correct.sum(axis=0)))
        return self.pool[order[0]]

    async def fit(self, training: Training) -> Learned:
        """Run every option on all questions."""
        if self._max_epochs == 0:
            tensors = {"embeddings": self.embeddings, "correct": self.correct, "costs": self.costs}
            return Learned(tensors, {"pool": [*self.pool]})
        learned = await training.outcomes(self._options)
        self.embeddings, self.correct, self.costs = learned.tensors.values()
        return learned

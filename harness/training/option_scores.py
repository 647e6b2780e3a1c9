"""Scores of every option on every training question, for methods that learn without a network."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness.agents.prompts import question_prompt
from harness.agents.runtime import Context, Solve
from harness.agents.trajectory import Episode
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.llm.encoder import EMBEDDING
from harness.runner.method import Setting
from harness.training.checkpoint import Checkpoint
from harness.training.loop import Training, TrainingStep

_TENSORS = ("embeddings", "correct", "costs")


async def ask_once(backbone: str, item: Item, context: Context) -> str:
    """Ask a backbone the question at temperature 0, with the prompt of Single LLM."""
    return (await context.ask(backbone, question_prompt("", context.rules, item))).text


class OptionScores:
    """Per-option accuracy and cost on the training questions. Empty until :meth:`fit` has run.

    Args:
        setting: Setting of the method.
        options: Solvers by name. Default: one call to each backbone of the pool.
    """

    def __init__(self, setting: Setting, options: Mapping[str, Solve] | None = None) -> None:
        self.options = {key: partial(ask_once, key) for key in setting.pool} if options is None else options
        self.pool = tuple(self.options)
        self._passes = setting.epochs({"default": 1})
        self.embeddings: NDArray[np.generic] = np.zeros((0, EMBEDDING))  # shape (questions, 384)
        # Verdicts and costs, shape (questions, options).
        self.correct: NDArray[np.generic] = np.zeros((0, len(self.pool)))
        self.costs: NDArray[np.generic] = self.correct

    @property
    def best(self) -> str:
        """Most accurate option; ties go to the cheapest. The first option before training."""
        order = np.lexsort((self.costs.sum(axis=0), -self.correct.sum(axis=0)))
        return self.pool[order[0]]

    async def fit(self, training: Training) -> None:
        """Run every option on all questions, or load the finished checkpoint."""
        checkpoint = training.resume()
        if checkpoint is None:
            self._save(training, 0)
        if checkpoint is not None and checkpoint.metadata["epoch"] == 1:
            self.load(checkpoint)
        elif self._passes:
            await self._ask_all(training)
            self._save(training, 1)

    def load(self, checkpoint: Checkpoint) -> None:
        self.embeddings, self.correct, self.costs = (checkpoint.tensors[name] for name in _TENSORS)

    async def _ask_all(self, training: Training) -> None:
        size, solves = len(training.items), [*self.options.values()]
        training.expect_attempts(size * len(solves))
        attempts = await gather(
            training.attempt(solve, item, Episode(1, at)) for at, solve in enumerate(solves) for item in training.items
        )
        for at in range(len(solves)):
            step = TrainingStep(1, at + 1, len(solves))
            training.log_update(step, {"backbone": at}, attempts[at * size : (at + 1) * size])
        values = [(verdict.correct, trajectory.cost_total) for _, (trajectory, verdict) in attempts]
        self.correct, self.costs = np.array(values, float).T.reshape(2, len(self.pool), -1).swapaxes(1, 2)
        self.embeddings = np.stack([await training.embed(item.question) for item in training.items])

    def _save(self, training: Training, epoch: int) -> None:
        tensors = {name: np.ascontiguousarray(getattr(self, name)) for name in _TENSORS}
        training.save(epoch, tensors, {}, {"pool": list(self.pool)})

"""Training of one cell: graded attempts and the log of updates. Nothing is written before a training ends.

The call log is its only checkpoint: an interrupted training runs again with the same decisions, and repeats no call.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from harness.agents.runtime import Runtime
from harness.agents.trajectory import Answered, Episode, Trajectory, rounded
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.llm.encoder import EMBEDDING
from harness.method import Context, Solve

Tensors = Mapping[str, NDArray[np.generic]]


def progress_line(n: int, of: int, elapsed: float, label: str, unit: str, measures: str) -> str:
    """Return the text of a progress bar without the bar, since lines of several jobs are interleaved."""
    form = "{desc}: {n_fmt}/{total_fmt} {unit} [{elapsed}<{remaining}]{postfix}"
    return tqdm.format_meter(n, of, elapsed, prefix=label, unit=unit, bar_format=form, postfix=measures)


class Learned(NamedTuple):
    """What a method has learned, which ``trained.safetensors`` stores."""

    tensors: Tensors
    metadata: Mapping[str, Any]  # JSON values


class Attempt(NamedTuple):
    """One graded rollout."""

    episode: Episode
    answered: Answered


class TrainingStep(NamedTuple):
    """Epoch and update, both from 1, and the total number of updates."""

    epoch: int
    update: int
    of: int


@dataclass(eq=False)
class Training:
    """Training of one cell: its questions, graded attempts, and log of updates."""

    items: Sequence[Item]
    runtime: Runtime
    label: str  # name of the cell in progress lines
    in_flight: int  # maximum number of concurrent attempts

    def __post_init__(self) -> None:
        self.seed = self.runtime.seed
        self.updates: list[dict[str, Any]] = []  # rows of ``training.parquet``
        self.trajectories: list[tuple[Episode, Trajectory]] = []
        self._slots = asyncio.Semaphore(self.in_flight)
        self._started = time.monotonic()
        self._last: tuple[TrainingStep, str] = TrainingStep(0, 0, 0), ""  # update, and its measures

    async def embed(self, text: str) -> NDArray[np.float32]:
        return (await self.runtime.embeddings.embed(text)).vector

    def expect_attempts(self, attempts: int) -> None:
        """Set the expected number of attempts, to which the limit on failed attempts refers."""
        self.runtime.errors.expect_attempts(attempts)

    async def attempt(self, solve: Solve, item: Item, episode: Episode) -> Attempt:
        async with self._slots:
            return Attempt(episode, await self.runtime.attempt(solve, item, episode))

    @contextmanager
    def auxiliary_calls(self, purpose: str, episode: Episode) -> Iterator[Context]:
        """Yield a context for calls that are not an attempt at a question, such as calls of AFlow's optimizer.

        Training tables list them with ``purpose`` as question id. Together they count as one attempt, which fails if
        the last call (by step, then slot) fails.
        """
        item = Item(id=purpose, benchmark=self.runtime.benchmark.key, question="", gold="")
        context = self.runtime.context(item, episode)
        yield context
        trajectory = context.close("")
        self.trajectories.append((episode, trajectory))
        self.runtime.errors.count_attempt(trajectory.failed_call)

    async def outcomes(self, options: Mapping[str, Solve] | None = None) -> Learned:
        """Try every option once on every training question.

        Args:
            options: Solvers by name. Default: one call to each backbone, as in Single LLM.

        Returns:
            Tensors ``embeddings`` (questions, 384), ``correct`` and ``costs`` (questions, options), in this order.
        """
        if options is None:
            options = {key: partial(ask_once, key) for key in self.runtime.backbones}
        size = len(self.items)
        self.expect_attempts(size * len(options))
        attempts = await gather(
            self.attempt(solve, item, Episode(1, at))
            for at, solve in enumerate(options.values())
            for item in self.items
        )
        for at in range(len(options)):
            step = TrainingStep(1, at + 1, len(options))
            self.log_update(step, {"backbone": at}, attempts[at * size : (at + 1) * size])
        values = [(verdict.correct, trajectory.cost_total) for _, (trajectory, verdict) in attempts]
        correct, costs = np.array(values, float).T.reshape(2, len(options), size).swapaxes(1, 2)
        self._last = step, f"encoding {size:,} questions"
        embeddings = np.stack(await gather(self.embed(item.question) for item in self.items))
        tensors = {"embeddings": embeddings, "correct": correct.copy(order="C"), "costs": costs.copy(order="C")}
        return Learned(tensors, {"pool": [*options]})

    def log_update(self, step: TrainingStep, measures: Mapping[str, float], attempts: Sequence[Attempt]) -> None:
        """Log one update: the method's measures and accuracy, costs and depth of its attempts."""
        measures = {
            **_measures([answered for _, answered in attempts]),
            **{name: rounded(float(value)) for name, value in measures.items()},
        }
        self.updates += (
            {"epoch": step.epoch, "update": step.update, "measure": name, "value": float(value)}
            for name, value in measures.items()
        )
        self.trajectories += ((episode, answered.trajectory) for episode, answered in attempts)
        accuracy, depth, cost = (measures[name] for name in ("accuracy", "depth", "cost_total"))
        self._last = step, f"{100 * accuracy:.1f} % right, depth {depth:.2f}, cost {cost:.2e} a question"

    def progress(self) -> str:
        """Return a progress line with the measures of the last update."""
        step, measures = self._last
        elapsed, label = time.monotonic() - self._started, f"{self.label}, training, epoch {step.epoch}"
        return progress_line(step.update, step.of, elapsed, label, "updates", measures)


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

    def utility(self, answered: Answered) -> float:
        """1 if correct, else 0. Cost does not count."""
        return float(answered.verdict.correct)

    async def fit(self, training: Training) -> Learned:
        if self._max_epochs == 0:
            tensors = {"embeddings": self.embeddings, "correct": self.correct, "costs": self.costs}
            return Learned(tensors, {"pool": [*self.pool]})
        learned = await training.outcomes(self._options)
        self.embeddings, self.correct, self.costs = learned.tensors.values()
        return learned


async def ask_once(backbone: str, _item: Item, context: Context) -> str:
    return await context.ask_question(backbone)


def _measures(answered: Sequence[Answered]) -> dict[str, float]:
    trajectories = [attempt.trajectory for attempt in answered]
    n = len(trajectories)
    return {
        "trajectories": n,
        "accuracy": sum(attempt.verdict.correct for attempt in answered) / n,
        "cost_total": sum(trajectory.cost_total for trajectory in trajectories) / n,
        "cost_steps": sum(trajectory.cost_steps for trajectory in trajectories) / n,
        "depth": sum(trajectory.depth for trajectory in trajectories) / n,
        "calls": sum(len(trajectory.calls) for trajectory in trajectories),
        "truncated": sum(trajectory.truncated for trajectory in trajectories)
        / max(sum(trajectory.embedded for trajectory in trajectories), 1),
    }

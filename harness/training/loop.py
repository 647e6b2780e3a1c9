"""Training of one cell: graded attempts and the log of updates. Nothing is written before a training ends.

The call log is its only checkpoint: an interrupted training runs again with the same decisions, and repeats no call.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
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
from harness.method import Context, Solve

Tensors = Mapping[str, NDArray[np.generic]]


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
        self._timed_updates = 0  # since ``_started``, without those repeated from the call log
        self._begun = self._ended = 0  # attempts since the last update
        self._last_update = ""

    async def embed(self, text: str) -> NDArray[np.float32]:
        return (await self.runtime.embeddings.embed(text)).vector

    def expect_attempts(self, attempts: int) -> None:
        """Set the expected number of attempts, to which the limit on failed attempts refers."""
        self.runtime.errors.expect_attempts(attempts)

    async def attempt(self, solve: Solve, item: Item, episode: Episode) -> Attempt:
        """Solve and grade a question once."""
        self._begun += 1
        async with self._slots:
            answered = await self.runtime.attempt(solve, item, episode)
        self._ended += 1
        return Attempt(episode, answered)

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
        embeddings = np.stack([await self.embed(item.question) for item in self.items])
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
        self._begun = self._ended = 0
        self._last_update = (
            f", epoch {step.epoch}, update {step.update}/{step.of}, {100 * measures['accuracy']:.1f} % right, "
            f"depth {measures['depth']:.2f}, cost {measures['cost_total']:.2e} a question{self._time_left(step)}"
        )

    def _time_left(self, step: TrainingStep) -> str:
        """Estimate the time left. Empty while calls are repeated, and after the last update, since the test follows."""
        if self.runtime.client.repeats_log:
            self._started = time.monotonic()
            return ""
        self._timed_updates += 1
        left = (time.monotonic() - self._started) / self._timed_updates * (step.of - step.update)
        return f", {tqdm.format_interval(left)} of training left" if left else ""

    def progress(self) -> str:
        """Describe the last update and the attempts of the next one, for a progress line."""
        under_way = f", {self._ended}/{self._begun} attempts at the next update" if self._begun else ""
        return f"{self.label}: training{self._last_update}{under_way}"


async def ask_once(backbone: str, _item: Item, context: Context) -> str:
    """Ask one backbone the question, as Single LLM does."""
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

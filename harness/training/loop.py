"""The training loop of a learning method: questions, graded attempts, checkpoints, and the training log.

An epoch is the unit of resumption. What it produced (log rows, uses of calls, decisions) is written next to its
checkpoint and before it, so a checkpoint that exists vouches for everything up to its epoch; what an interrupted epoch
had begun is done again, from the call log.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa
from tqdm import tqdm

from harness.agents.runtime import Runtime, Solve
from harness.agents.trajectory import Answered, Context, Episode, Trajectory, rounded
from harness.benchmarks.items import Item, Status
from harness.concurrency import LongestFirstSemaphore
from harness.files import write_atomically
from harness.runner.results import CALLS, DECISIONS, rows, rows_of, write_table
from harness.training import checkpoint
from harness.training.checkpoint import Checkpoint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[np.generic]]

logger = logging.getLogger(__name__)
T = TypeVar("T")

CHECKPOINT = "trained.safetensors"
# Mean entropy of a decision in nats below which its policy has settled on one option.
COLLAPSED_ENTROPY = 0.1
_CHECKPOINTS = "checkpoints"
_OPTIMISER = ".optimiser"
UPDATES = pa.schema([("epoch", pa.int64()), ("update", pa.int64()), ("measure", pa.string()), ("value", pa.float64())])
_EPISODE = [("epoch", pa.int64()), ("rollout", pa.int64())]
TABLES: Mapping[str, pa.Schema] = {
    "training": UPDATES,
    "training_calls": pa.schema([*_EPISODE, *CALLS]),
    "training_decisions": pa.schema([*_EPISODE, *DECISIONS]),
}


class Attempt(NamedTuple):
    """One graded rollout of training."""

    episode: Episode
    answered: Answered


class TrainingStep(NamedTuple):
    """One step of a training: its epoch and its update, both counted from 1, and how many updates there will be."""

    epoch: int
    update: int
    of: int


class Training:
    """The training of one cell."""

    def __init__(
        self,
        items: Sequence[Item],
        runtime: Runtime,
        folder: Path,  # the cell's
        facts: Mapping[str, Any],  # identify the training; a checkpoint with another ``identity`` is not continued
        label: str,  # names the cell in progress lines
        has_call: Callable[[str], bool],  # whether the call log holds a call, by its key
        in_flight: int,  # attempts under way at the same time
    ) -> None:
        self.items = tuple(items)
        self.seed = runtime.seed
        self._runtime = runtime
        self._folder, self._checkpoints = folder, folder / _CHECKPOINTS
        self._facts = facts
        self._label = label
        self._has_call = has_call
        self._semaphore = LongestFirstSemaphore(in_flight)
        self._updates_of_epoch: list[dict[str, Any]] = []
        self._trajectories: list[tuple[Episode, Trajectory]] = []
        self._finished = 0
        self._started = time.monotonic()
        self._updates = 0
        self._begun = self._ended = 0  # attempts since the last update
        self._last_update = ""
        self.seconds: dict[str, float] = {}  # wall-clock time by phase, since this process began

    async def embed(self, text: str) -> NDArray[np.float32]:
        """The sentence embedding of a text, shape (384,)."""
        return (await self._runtime.embeddings.embed(text)).vector

    def plan(self, attempts: int) -> None:
        """Expect so many attempts: too many failed ones, which stop the cell, are a share of these."""
        self._runtime.errors.plan(attempts)

    async def attempt(self, solve: Solve, item: Item, episode: Episode) -> Attempt:
        """Let the method try a question once, of those waiting the longest first, and grade it as the runtime does."""
        self._begun += 1
        async with self._semaphore.slot(len(item.question)):
            answered = await self._runtime.attempt(solve, item, episode)
        self._ended += 1
        return Attempt(episode, answered)

    async def consult(self, purpose: str, episode: Episode, work: Callable[[Context], Awaitable[T]]) -> T:
        """Let the method ask models something that is no attempt at a question; returns what ``work`` found out.

        The calls are in the ledger of the training, where ``purpose``, such as ``optimizer``, takes the place of the
        question's id. Together they count as one attempt, which has failed where the last (by step, then slot) has.
        """
        context = self._runtime.context(
            Item(id=purpose, benchmark=self._runtime.benchmark.key, question="", gold=""), episode
        )
        found = await work(context)
        trajectory = context.close("")
        self._trajectories.append((episode, trajectory))
        last = trajectory.final_call
        failed = last is not None and last.error is not None
        self._runtime.errors.note(Status.CALL_FAILED if failed else Status.GRADED, last)
        return found

    def resume(self) -> Checkpoint | None:
        """The checkpoint to resume from, ``None`` to begin; one of another training or with lost files is removed."""
        for torn in self._checkpoints.glob(".*"):
            torn.unlink()
        finished = self._finished_epochs()
        if not finished:
            return None
        found = checkpoint.load(self._checkpoint(finished[-1]))
        why = ""
        if found.facts.get("identity") != self._facts["identity"]:
            why = "its checkpoints come from other code, data or configuration"
        elif not self._has_all_files(finished[-1]):
            why = "files of its checkpoints or calls in its log are gone"
        if why:
            logger.warning("%s: %s; training starts over (finished calls are kept)", self._label, why)
            delete_checkpoints(self._folder)
            return None
        self._finished = finished[-1]
        logger.info("%s: training resumes after epoch %d", self._label, self._finished)
        optimiser = checkpoint.load(self._checkpoint(self._finished, _OPTIMISER))
        return Checkpoint({**found.tensors, **optimiser.tensors}, found.facts)

    def _has_all_files(self, finished: int) -> bool:
        epochs = range(finished + 1)
        if not all(self._piece(epoch, name).exists() for epoch in epochs for name in TABLES):
            return False
        calls = (row for epoch in epochs for row in rows_of(self._piece(epoch, "training_calls"), ["key"]))
        return all(self._has_call(row["key"]) for row in calls)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Count the time of a block towards a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - started

    def note(self, step: TrainingStep, measures: Mapping[str, float], attempts: Sequence[Attempt]) -> None:
        """Keep one update: what the method measured, with accuracy, costs, depth and calls of its attempts."""
        learned = {name: rounded(float(value)) for name, value in measures.items()}
        measures = {**_measures([attempt.answered for attempt in attempts]), **learned}
        self._updates_of_epoch += (
            {"epoch": step.epoch, "update": step.update, "measure": name, "value": float(value)}
            for name, value in measures.items()
        )
        self._trajectories += ((episode, one.trajectory) for episode, one in attempts)
        self._updates += 1
        self._begun = self._ended = 0
        left = (time.monotonic() - self._started) / self._updates * (step.of - step.update)
        # The test is still to come, so training is never said to leave nothing.
        self._last_update = (
            f", epoch {step.epoch}, update {step.update}/{step.of}, {100 * measures['accuracy']:.1f} % right, "
            f"depth {measures['depth']:.2f}, cost {measures['cost_total']:.2e} a question"
            + (f", {tqdm.format_interval(left)} of training left" if step.update < step.of else "")
        )

    def so_far(self) -> str:
        """Return the last update in words, and how many attempts at the next one have ended."""
        under_way = f", {self._ended}/{self._begun} attempts at the next update" if self._begun else ""
        return f"{self._label}: training{self._last_update}{under_way}"

    def save(self, epoch: int, learned: Tensors, optimiser: Tensors, facts: Mapping[str, Any]) -> None:
        """Write the checkpoint of a finished epoch, 0 before any training; of the optimiser only the last is kept."""
        for name, schema in TABLES.items():
            found = self._updates_of_epoch if name == "training" else self._rows(name.removeprefix("training_"))
            write_table(self._piece(epoch, name), schema, found, simulated=self._facts["simulated"])
        self._updates_of_epoch, self._trajectories = [], []
        whole = {**facts, **self._facts, "epoch": epoch}
        checkpoint.save(self._checkpoint(epoch, _OPTIMISER), Checkpoint(optimiser, whole))
        checkpoint.save(self._checkpoint(epoch), Checkpoint(learned, whole))
        for earlier in range(epoch):
            self._checkpoint(earlier, _OPTIMISER).unlink(missing_ok=True)
        self._finished = epoch

    def finish(self) -> None:
        """Write the tables of the whole training and its last checkpoint into the cell's folder."""
        write_atomically(self._folder / CHECKPOINT, self._checkpoint(self._finished).read_bytes())
        for name, schema in TABLES.items():
            pieces = (self._piece(epoch, name) for epoch in range(self._finished + 1))
            found = (row for piece in pieces for row in rows_of(piece))
            write_table(self._folder / f"{name}.parquet", schema, found, simulated=self._facts["simulated"])

    def _rows(self, kind: str) -> Iterator[Mapping[str, Any]]:
        return ({**episode._asdict(), **row} for episode, one in self._trajectories for row in rows(one, kind))

    def _finished_epochs(self) -> list[int]:
        """The epochs that training can resume from: only the last is sure to have what the optimiser remembers."""
        moments = self._checkpoints.glob(f"epoch-*{_OPTIMISER}.safetensors")
        epochs = sorted(int(path.name.split(".")[0].removeprefix("epoch-")) for path in moments)
        return [epoch for epoch in epochs if self._checkpoint(epoch).exists()]

    def _piece(self, epoch: int, name: str) -> Path:
        return self._checkpoints / f"epoch-{epoch:02d}.{name}.parquet"

    def _checkpoint(self, epoch: int, of: str = "") -> Path:
        return self._checkpoints / f"epoch-{epoch:02d}{of}.safetensors"


def delete_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a cell, so that its training starts over."""
    shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)


def _measures(answered: Sequence[Answered]) -> dict[str, float]:
    trajectories = [one.trajectory for one in answered]
    n = len(trajectories)
    return {
        "trajectories": n,
        "accuracy": sum(one.verdict.correct for one in answered) / n,
        "cost_total": sum(one.cost_total for one in trajectories) / n,
        "cost_steps": sum(one.cost_steps for one in trajectories) / n,
        "depth": sum(one.depth for one in trajectories) / n,
        "calls": sum(len(one.calls) for one in trajectories),
        "truncated": sum(one.truncated for one in trajectories) / max(sum(one.embedded for one in trajectories), 1),
    }

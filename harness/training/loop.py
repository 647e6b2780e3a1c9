"""Training of one cell: graded attempts, training log, checkpoints and resumption.

Training resumes after the last finished epoch. An interrupted epoch is repeated from the call log. The tables of an
epoch (measures, calls, decisions) are written before its checkpoint. A checkpoint therefore implies the tables of all
epochs so far. A finished cell keeps its last checkpoint and the merged tables.
"""

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tqdm import tqdm

from harness.agents.runtime import Runtime
from harness.agents.trajectory import Answered, Episode, Trajectory, rounded
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.errors import UserError
from harness.files import write_atomically
from harness.llm.encoder import EMBEDDING
from harness.method import Context, Solve
from harness.runner.layout import CHECKPOINT
from harness.runner.results import CALLS, DECISIONS, read_rows, trajectory_rows, write_table
from harness.training import checkpoint
from harness.training.checkpoint import Checkpoint, Resumable, State, Tensors

logger = logging.getLogger(__name__)

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
    """Training of one cell: its questions, graded attempts, log and checkpoints."""

    items: Sequence[Item]
    runtime: Runtime
    folder: Path  # of the cell
    metadata: Mapping[str, Any]  # of every checkpoint; training resumes only if ``identity`` is equal
    label: str  # name of the cell in progress lines
    has_call: Callable[[str], bool]  # whether the call log has a call, by key
    in_flight: int  # maximum number of concurrent attempts
    keep_epochs: bool  # whether to keep the checkpoint of every epoch

    def __post_init__(self) -> None:
        self.seed = self.runtime.seed
        self.finished = 0  # last finished epoch
        self._checkpoints = self.folder / _CHECKPOINTS
        self._slots = asyncio.Semaphore(self.in_flight)
        self._measures: list[dict[str, Any]] = []  # of the current epoch
        self._trajectories: list[tuple[Episode, Trajectory]] = []  # of the current epoch
        self._started = time.monotonic()
        self._updates = 0
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
        self._trajectories.append((episode, trajectory))
        self.runtime.errors.count_attempt(trajectory.failed_call)

    async def outcomes(self, options: Mapping[str, Solve] | None = None, passes: int = 1) -> Checkpoint:
        """Try every option once on every training question. Save the outcomes as epoch 1 and return that checkpoint.

        Its tensors are ``embeddings`` (questions, 384), ``correct`` and ``costs`` (questions, options). All are empty
        if ``passes`` is 0.

        Args:
            options: Solvers by name. Default: one call to each backbone, as in Single LLM.
            passes: 1, or 0 if the run limits epochs to 0.
        """
        if options is None:
            options = {key: partial(_ask_once, key) for key in self.runtime.backbones}
        outcomes, size = _Outcomes([*options]), len(self.items)
        for epoch in self.epochs(passes, outcomes):
            self.expect_attempts(size * len(options))
            attempts = await gather(
                self.attempt(solve, item, Episode(epoch, at))
                for at, solve in enumerate(options.values())
                for item in self.items
            )
            for at in range(len(options)):
                step = TrainingStep(epoch, at + 1, len(options))
                self.log_update(step, {"backbone": at}, attempts[at * size : (at + 1) * size])
            values = [(verdict.correct, trajectory.cost_total) for _, (trajectory, verdict) in attempts]
            correct, costs = np.array(values, float).T.reshape(2, len(options), -1).swapaxes(1, 2)
            embeddings = np.stack([await self.embed(item.question) for item in self.items])
            outcomes.tensors = {
                "embeddings": embeddings,
                "correct": correct.copy(order="C"),
                "costs": costs.copy(order="C"),
            }
        return Checkpoint(outcomes.tensors, outcomes.metadata)

    def epochs(self, most: int, method: Resumable) -> Iterator[int]:
        """Yield the remaining epochs, and write a checkpoint after each.

        Args:
            most: Number of epochs of the whole training.
            method: Its state is epoch 0 of a new training. If training resumes, it loads the last checkpoint.
        """
        checkpoint = self._resume()
        if checkpoint is None:
            self._save(0, method.state())
        else:
            method.load(checkpoint)

        def remaining() -> Iterator[int]:
            for epoch in range(self.finished + 1, most + 1):
                yield epoch
                self._save(epoch, method.state())

        return remaining()

    def _resume(self) -> Checkpoint | None:
        """Load the checkpoint to resume from. None means a new start. Unusable checkpoints are deleted."""
        for torn in self._checkpoints.glob(".*"):
            torn.unlink()
        epochs = self._resumable_epochs()
        if not epochs:
            delete_checkpoints(self.folder)
            return None
        stored = checkpoint.load(self._checkpoint(epochs[-1]))
        why = ""
        if stored.metadata.get("identity") != self.metadata["identity"]:
            why = "its checkpoints come from other code, data or configuration"
        elif not self._has_all_files(epochs[-1]):
            why = "files of its checkpoints or calls in its log are missing"
        if why:
            logger.warning("%s: %s; training starts over (finished calls are kept)", self.label, why)
            delete_checkpoints(self.folder)
            return None
        self.finished = epochs[-1]
        logger.info("%s: training resumes after epoch %d", self.label, self.finished)
        optimiser = checkpoint.load(self._checkpoint(self.finished, _OPTIMISER))
        return Checkpoint({**stored.tensors, **optimiser.tensors}, stored.metadata)

    def log_update(self, step: TrainingStep, measures: Mapping[str, float], attempts: Sequence[Attempt]) -> None:
        """Log one update: the method's measures and accuracy, costs and depth of its attempts."""
        measures = {
            **_measures([answered for _, answered in attempts]),
            **{name: rounded(float(value)) for name, value in measures.items()},
        }
        self._measures += (
            {"epoch": step.epoch, "update": step.update, "measure": name, "value": float(value)}
            for name, value in measures.items()
        )
        self._trajectories += ((episode, answered.trajectory) for episode, answered in attempts)
        self._updates += 1
        self._begun = self._ended = 0
        left = (time.monotonic() - self._started) / self._updates * (step.of - step.update)
        # After the last update the test follows, so no time left is shown.
        self._last_update = (
            f", epoch {step.epoch}, update {step.update}/{step.of}, {100 * measures['accuracy']:.1f} % right, "
            f"depth {measures['depth']:.2f}, cost {measures['cost_total']:.2e} a question"
            + (f", {tqdm.format_interval(left)} of training left" if step.update < step.of else "")
        )

    def progress(self) -> str:
        """Describe the last update and the attempts of the next one, for a progress line."""
        under_way = f", {self._ended}/{self._begun} attempts at the next update" if self._begun else ""
        return f"{self.label}: training{self._last_update}{under_way}"

    def _save(self, epoch: int, state: State) -> None:
        """Write tables and checkpoint of a finished epoch, and delete the checkpoint before it."""
        for name, schema in TABLES.items():
            table = self._measures if name == "training" else self._rows(name.removeprefix("training_"))
            write_table(self._piece(epoch, name), schema, table, simulated=self.metadata["simulated"])
        self._measures, self._trajectories = [], []
        metadata = {**state.metadata, **self.metadata, "epoch": epoch}
        checkpoint.save(self._checkpoint(epoch, _OPTIMISER), Checkpoint(state.optimiser, metadata))
        checkpoint.save(self._checkpoint(epoch), Checkpoint(state.learned, metadata))
        for earlier in range(epoch):
            self._checkpoint(earlier, _OPTIMISER).unlink(missing_ok=True)
            if not self.keep_epochs:
                self._checkpoint(earlier).unlink(missing_ok=True)
        self.finished = epoch

    def finish(self) -> None:
        """Write the merged tables and the last checkpoint to the cell's folder."""
        if not self._checkpoint(self.finished).exists():
            raise UserError("`fit` did not iterate over `training.epochs`, so nothing was trained; train in its loop")
        write_atomically(self.folder / CHECKPOINT, self._checkpoint(self.finished).read_bytes())
        for name, schema in TABLES.items():
            pieces = (self._piece(epoch, name) for epoch in range(self.finished + 1))
            table = (row for piece in pieces for row in read_rows(piece))
            write_table(self.folder / f"{name}.parquet", schema, table, simulated=self.metadata["simulated"])

    def _rows(self, table: str) -> Iterator[Mapping[str, Any]]:
        for episode, trajectory in self._trajectories:
            yield from ({**episode._asdict(), **row} for row in trajectory_rows(trajectory, table))

    def _resumable_epochs(self) -> list[int]:
        """List the epochs that have both checkpoint files, ascending. Normally only the last epoch."""
        optimisers = self._checkpoints.glob(f"epoch-*{_OPTIMISER}.safetensors")
        epochs = sorted(int(path.name.split(".")[0].removeprefix("epoch-")) for path in optimisers)
        return [epoch for epoch in epochs if self._checkpoint(epoch).exists()]

    def _has_all_files(self, finished: int) -> bool:
        epochs = range(finished + 1)
        if not all(self._piece(epoch, name).exists() for epoch in epochs for name in TABLES):
            return False
        calls = (row for epoch in epochs for row in read_rows(self._piece(epoch, "training_calls"), ["key"]))
        return all(self.has_call(row["key"]) for row in calls)

    def _piece(self, epoch: int, name: str) -> Path:
        return self._checkpoints / f"epoch-{epoch:02d}.{name}.parquet"

    def _checkpoint(self, epoch: int, suffix: str = "") -> Path:
        return self._checkpoints / f"epoch-{epoch:02d}{suffix}.safetensors"


def delete_checkpoints(folder: Path) -> None:
    shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)


class _Outcomes:
    """Outcomes of every option on every training question, empty before the first epoch."""

    def __init__(self, options: list[str]) -> None:
        self.metadata, empty = {"pool": options}, np.zeros((0, len(options)))
        self.tensors: Tensors = {"embeddings": np.zeros((0, EMBEDDING)), "correct": empty, "costs": empty}

    def state(self) -> State:
        return State(self.tensors, {}, self.metadata)

    def load(self, checkpoint: Checkpoint) -> None:
        self.tensors = checkpoint.tensors


async def _ask_once(backbone: str, _item: Item, context: Context) -> str:
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

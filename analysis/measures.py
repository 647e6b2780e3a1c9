"""From cells to measurements: what one method scored and spent on one benchmark, over all its seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from analysis.results import Cell
from analysis.statistics import Estimate, accuracy
from harness.benchmarks.items import Status

# The log that learning leaves in the folder of a cell.
TRAINING = "training.parquet"


class Key(NamedTuple):
    """What a measurement is of."""

    method: str
    backbone: str
    benchmark: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """All seeds of one method with one backbone on one benchmark.

    Attributes:
        cells: One a seed, in order of seed.
        accuracy: Fraction of correct answers; an item without a verdict counts as wrong.
        math_verify: The same by the secondary grader of mathematics, ``None`` where it was never asked.
        shares: Fraction of the answers by status, over all seeds.
        calls: Of models, over the test set; mean over seeds, as are the following.
        cost: By the definition of the published cost (:attr:`analysis.results.Cell.costs`), over the test set, in the
            paper's unit.
        cost_total: Of all calls over the test set.
        cost_steps: Without the final aggregation calls.
        prompt_tokens: Over the test set.
        completion_tokens: Over the test set.
    """

    cells: tuple[Cell, ...]
    accuracy: Estimate
    math_verify: Estimate | None
    shares: Mapping[Status, float]
    calls: float
    cost: float
    cost_total: float
    cost_steps: float
    prompt_tokens: float
    completion_tokens: float

    @property
    def n(self) -> int:
        """Number of test items."""
        return self.cells[0].run.data.n_test

    @property
    def seeds(self) -> tuple[int, ...]:
        """The training seeds, ascending."""
        return tuple(cell.run.seed for cell in self.cells)

    @property
    def calibrated(self) -> bool:
        """Whether any seed was fitted to the paper."""
        return any(cell.run.calibrated for cell in self.cells)

    @property
    def seed_0(self) -> float | None:
        """Accuracy of seed 0 alone, what a table of single runs shows; ``None`` where that seed was not run."""
        verdicts = [cell.items.correct for cell in self.cells if cell.run.seed == 0]
        return sum(verdicts[0]) / len(verdicts[0]) if verdicts else None

    @property
    def math_verify_undecided(self) -> float | None:
        """Fraction of the answers, over all seeds, that were judged but not by Math-Verify; ``None`` without it."""
        if self.math_verify is None:
            return None
        items = [cell.items for cell in self.cells]
        judged = [pair for one in items for pair in zip(one.status, one.math_verify, strict=True)]
        return sum(status is Status.GRADED and verdict is None for status, verdict in judged) / len(judged)

    @property
    def learned(self) -> bool:
        """Whether something was learned from training questions, so that another seed is another method to measure."""
        return len(self.cells) > 1 or (self.cells[0].folder / TRAINING).is_file()


def measure(cells: Iterable[Cell]) -> dict[Key, Measurement]:
    """One measurement for every method, backbone and benchmark among comparable cells."""
    seeds: dict[Key, list[Cell]] = {}
    for cell in cells:
        key = Key(cell.run.method, cell.run.backbone, cell.run.benchmark)
        seeds.setdefault(key, []).append(cell)
    return {key: _measurement(seeds[key]) for key in sorted(seeds)}


def _measurement(cells: Sequence[Cell]) -> Measurement:
    ordered = tuple(sorted(cells, key=lambda cell: cell.run.seed))
    items = [cell.items for cell in ordered]
    return Measurement(
        cells=ordered,
        accuracy=accuracy([one.correct for one in items]),
        math_verify=_math_verify([one.math_verify for one in items]),
        shares=_shares([status for one in items for status in one.status]),
        calls=_mean([sum(one.calls) for one in items]),
        cost=_mean([sum(cell.costs) for cell in ordered]),
        cost_total=_mean([sum(one.cost_total) for one in items]),
        cost_steps=_mean([sum(one.cost_steps) for one in items]),
        prompt_tokens=_mean([sum(one.prompt_tokens) for one in items]),
        completion_tokens=_mean([sum(one.completion_tokens) for one in items]),
    )


def _math_verify(seeds: Sequence[Sequence[bool | None]]) -> Estimate | None:
    """An item without a secondary verdict beside items with one counts as wrong, so that ``n`` stays the same."""
    if all(verdict is None for seed in seeds for verdict in seed):
        return None
    return accuracy([[bool(verdict) for verdict in seed] for seed in seeds])


def _shares(statuses: Sequence[Status]) -> dict[Status, float]:
    return {status: statuses.count(status) / len(statuses) for status in Status}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

"""The numbers of one side, the paper or a run, by functions that are the same for both.

Accuracies, rates and shares are in percent on both sides. A cost of the paper is the total over a
test set, one of a run the mean of a test question, of the calls that the printed total counts (D-REPORT-2). Claims
therefore compare costs as ratios only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.published import Published
from harness.errors import unknown
from harness.runner import config
from harness.runner.config import POOL

Array: TypeAlias = NDArray[np.float64]
Value: TypeAlias = float | Array
#: A method and the backbone it runs on.
Row: TypeAlias = tuple[str, str]
AVERAGE, OVERALL = "average", "overall"
LARGE = "qwen-2.5-32B"
GMR, MASROUTER, PUPPETEER = ("gmr", POOL), ("masrouter", POOL), ("puppeteer", LARGE)
#: What can be asked of a row on a benchmark.
MEASURES: Mapping[str, str] = {
    "accuracy": "accuracy, over the seeds of the preset",
    "cost": "cost, in the paper's unit",
    "flops": "PFLOPs of a question",
    "seconds": "wall-clock seconds of a question, many at a time",
    "depth": "mean number of steps",
    "six_steps": "share of the trajectories of six steps",
    "depth_by_difficulty": "rank correlation of the steps of a question with its difficulty",
    "write_rate": "share of the steps that entered memory",
    **{f"retrieved_{step}": f"share of the records that is shown at step {step}, from 0" for step in range(1, 6)},
    **{f"entropy_{gate}": f"lowest entropy of the {gate} gate in training" for gate in ("write", "retrieval", "halt")},
    "training_steps": "steps of a whole training",
    "training_depth": "mean number of steps of a training trajectory",
    "seed_mean": "accuracy over several training seeds",
    "seed_lowest": "average over the benchmarks of the worst seed",
    "seed_highest": "average over the benchmarks of the best seed",
}


class AbsentError(Exception):
    """A number that is needed and that this side does not have; the message says which."""


def least(*values: Value) -> Value:
    """The smallest; of several leads above 0 it is that all of them are."""
    return reduce(np.minimum, values)


def most(*values: Value) -> Value:
    """The largest."""
    return reduce(np.maximum, values)


def mean(*values: Value) -> Value:
    """The arithmetic mean."""
    return reduce(np.add, values) / len(values)


def alike(first: Value, second: Value) -> Value:
    """Positive where both have one sign, negative where they have not; as far from 0 as the nearer of them."""
    both: Value = np.sign(first) * np.sign(second) * np.minimum(np.abs(first), np.abs(second))
    return both


class Numbers(ABC):
    """One side of every claim.

    A ``row`` is a key of ``config/methods.yaml`` and one of ``config/backbones.yaml`` or ``pool``; a method alone is
    the one on the pool. Every function raises :class:`AbsentError` where this side has no such number, and
    :class:`UserError` for a name that is no key.
    """

    def __init__(self, published: Published) -> None:
        self.paper = published
        self.rows = [(row.method, row.backbone) for row in published.rows]
        #: The baselines that ask several times, and the rows that answer a question with a single call.
        self.multi_agent = [row for row in self.rows if published.methods[row[0]].multi_agent and row != GMR]
        self.single_calls = [row for row in self.rows if not published.methods[row[0]].multi_agent]

    @abstractmethod
    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Value:
        """One of :data:`MEASURES`, the names checked."""

    @abstractmethod
    def _at(self, place: int, rows: Sequence[Row], benchmark: str) -> Value:
        """The accuracy in a place among some rows, from 1."""

    @abstractmethod
    def _row_at(self, place: int, rows: Sequence[Row], benchmark: str) -> Row:
        """The row in a place by accuracy among some, from 1, as far as rounding or chance decide it."""

    @abstractmethod
    def seed_lead(self, row: Row, other: Row) -> Value:
        """The smallest lead of one row over another under the same seed, in the average over the benchmarks."""

    def of(self, measure: str, row: Row | str, benchmark: str, table: str = "") -> Value:
        """One of :data:`MEASURES`; in the paper, ``table`` tells which of several tables is meant."""
        method, backbone = (row, POOL) if isinstance(row, str) else row
        # A slip in a name must not pass for a number that is missing.
        _check("measure", measure, MEASURES)
        _check("method", method, _methods())
        _check("benchmark", benchmark, [*self.paper.benchmarks, AVERAGE, OVERALL])
        _check("row", backbone, self.paper.backbones)
        return self._value(measure, (method, backbone), benchmark, table)

    def accuracy(self, row: Row | str, benchmark: str, table: str = "") -> Value:
        """In percent."""
        return self.of("accuracy", row, benchmark, table)

    def cost(self, row: Row | str, benchmark: str, table: str = "") -> Value:
        """In the paper's unit."""
        return self.of("cost", row, benchmark, table)

    def lead(self, row: Row | str, other: Row | str, benchmark: str) -> Value:
        """Points of accuracy by which a row is ahead of another."""
        return self.accuracy(row, benchmark) - self.accuracy(other, benchmark)

    def saving(self, row: Row | str, other: Row | str, benchmark: str) -> Value:
        """By how many percent a row costs less than another."""
        return 100 * (1 - self.cost(row, benchmark) / self.cost(other, benchmark))

    def rival(self, row: Row, benchmark: str, *others: Row) -> Value:
        """The highest accuracy in a column of the main table but for this row, some others, and GMR."""
        return self._at(1, [one for one in self.rows if one not in (row, *others, GMR)], benchmark)

    def runner_up(self, benchmark: str, *methods: str) -> Value:
        """The second highest accuracy in a column of the main table among all rows of some methods."""
        return self._at(2, [row for row in self.rows if row[0] in methods], benchmark)

    def strongest_cost(self, benchmark: str) -> Value:
        """As the cost, of the multi-agent baseline that is the most accurate on the benchmark."""
        return self.cost(self._row_at(1, self.multi_agent, benchmark), benchmark)

    def ranked(self, benchmark: str, place: int) -> Value:
        """The accuracy in one place of a column of the main table, from 1; equal values share a place. Print only."""
        return sorted({float(self.accuracy(row, benchmark)) for row in self.rows}, reverse=True)[place - 1]

    def undominated(self, benchmark: str) -> Value:
        """How far GMR is from being dominated on a benchmark; positive where no row of the main table dominates it.

        Another row dominates where it is at least as accurate and no dearer. The margin to a row is the larger of the
        lead in points and of its extra cost in percent; the value is the smallest margin to any row.
        """
        accuracy, cost = self.accuracy(GMR, benchmark), self.cost(GMR, benchmark)
        margins = [
            most(accuracy - self.accuracy(row, benchmark), 100 * (self.cost(row, benchmark) / cost - 1))
            for row in self.rows
            if row != GMR
        ]
        return least(*margins)


@cache
def _methods() -> Sequence[str]:
    return tuple(config.methods())


def _check(kind: str, name: str, known: Mapping[str, object] | Sequence[str]) -> None:
    if name not in known:
        raise unknown(kind, name, known, "config; named in analysis/claims/statements")

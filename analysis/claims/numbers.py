"""The numbers of one side, the print or a run, by functions that are the same for both.

Accuracies, rates and fractions are in percent on both sides. A cost is what the side has: in print the total over a
test set, in a run the mean of a test question, of the calls that the printed total counts (D-REPORT-2). Claims
therefore compare costs as ratios only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import cache, reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.agents.roles import DOMAINS
from harness.errors import unknown
from harness.runner import config
from harness.runner.config import POOL

if TYPE_CHECKING:
    from analysis.published import Price, Published

Value: TypeAlias = float | NDArray[np.float64]
Rows: TypeAlias = Sequence[tuple[str, str]]
AVERAGE = "average"
OVERALL = "overall"
OWN = "gmr"


class AbsentError(Exception):
    """A number that is needed and that this side does not have; the message says which."""


def least(*values: Value) -> Value:
    """The smallest; of several leads above 0 it is that all of them are."""
    smallest: Value = reduce(np.minimum, values)
    return smallest


def most(*values: Value) -> Value:
    """The largest."""
    largest: Value = reduce(np.maximum, values)
    return largest


def mean(*values: Value) -> Value:
    """The arithmetic mean."""
    total: Value = reduce(np.add, values)
    return total / len(values)


def alike(first: Value, second: Value) -> Value:
    """Positive where both have one sign, negative where they have not; as far from 0 as the nearer of them."""
    both: Value = np.sign(first) * np.sign(second) * np.minimum(np.abs(first), np.abs(second))
    return both


class Numbers(ABC):
    """One side of every claim.

    Arguments are keys: ``method`` of ``config/methods.yaml``, ``benchmark`` of ``config/benchmarks.yaml`` (or
    ``average`` where an accuracy is meant), ``backbone`` of ``config/backbones.yaml`` or ``pool``. Every function
    raises :class:`AbsentError` where this side has no such number, and :class:`UserError` for a name that is no key.
    """

    def __init__(self, published: Published) -> None:
        self._paper = published

    @abstractmethod
    def accuracy(self, method: str, benchmark: str, backbone: str = POOL, table: str = "") -> Value:
        """In percent, over the seeds of the preset; in print, ``table`` tells which of several tables is meant."""

    @abstractmethod
    def cost(self, method: str, benchmark: str, backbone: str = POOL, table: str = "") -> Value:
        """In print the total over the test set, in a run the mean of a test question; in the paper's unit."""

    @abstractmethod
    def strongest_cost(self, benchmark: str) -> Value:
        """As the cost, of the multi-agent baseline that is the most accurate on the benchmark."""

    @abstractmethod
    def depth(self, method: str, benchmark: str) -> Value:
        """Mean number of steps of a test trajectory."""

    @abstractmethod
    def steps_share(self, method: str, benchmark: str, steps: int) -> Value:
        """Share of the test trajectories that have so many steps, in percent."""

    @abstractmethod
    def depth_by_difficulty(self, benchmark: str) -> Value:
        """Rank correlation of the steps of GMR's test trajectories with the difficulty of their questions.

        Spearman's, between -1 and 1. Difficulty is the share of the main table's single-call rows that answer the
        question wrong; they have no part in GMR's decisions. It is 0 where all trajectories have as many steps, or all
        questions are as difficult.
        """

    @abstractmethod
    def write_rate(self, benchmark: str) -> Value:
        """Share of GMR's test steps that entered memory, in percent."""

    @abstractmethod
    def retrieved(self, benchmark: str, step: int) -> Value:
        """Share of the records available at a step (the first is 0) that GMR's agent was shown, in percent."""

    @abstractmethod
    def lowest_entropy(self, benchmark: str, gate: str) -> Value:
        """Lowest mean entropy of one gate of GMR in any update of training, in nats."""

    @abstractmethod
    def training_steps(self, method: str, benchmark: str) -> Value:
        """Steps executed over a whole training."""

    @abstractmethod
    def training_depth(self, method: str, benchmark: str) -> Value:
        """Mean number of steps of a training trajectory."""

    @abstractmethod
    def flops(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """PFLOPs of a test question."""

    @abstractmethod
    def seconds(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """Wall-clock seconds of a test question, many at a time."""

    @abstractmethod
    def seed_mean(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """Mean accuracy over training seeds; of ``overall``, of each seed's average over the benchmarks."""

    @abstractmethod
    def seed_lowest(self, method: str, backbone: str = POOL) -> Value:
        """The average over the benchmarks of the worst seed."""

    @abstractmethod
    def seed_highest(self, method: str, backbone: str = POOL) -> Value:
        """The average over the benchmarks of the best seed."""

    @abstractmethod
    def seed_lead(self, method: str, backbone: str, other: str, its: str) -> Value:
        """The smallest lead of one row over another under the same seed, in the average over the benchmarks."""

    @abstractmethod
    def roles(self, domain: str) -> Value:
        """How many roles of a domain there are to choose from."""

    def size(self, backbone: str) -> Value:
        """Parameters in billions, from the paper's price table on both sides."""
        return self._price(backbone).size

    def price_in(self, backbone: str) -> Value:
        """For a million prompt tokens, from the same table."""
        return self._price(backbone).input

    def price_out(self, backbone: str) -> Value:
        """For a million completion tokens, from the same table."""
        return self._price(backbone).output

    def rival(self, method: str, benchmark: str, backbone: str = POOL, other: str = "", its: str = POOL) -> Value:
        """The highest accuracy in a column of the main table among the baselines.

        Left out are this row, another one if there is, and GMR.
        """
        rows = self._rivals(method, benchmark, backbone, other, its)
        return most(*[self.accuracy(row, benchmark, runs) for row, runs in rows])

    def runner_up(self, benchmark: str, *methods: str) -> Value:
        """The second highest accuracy in a column of the main table among all rows of some methods."""
        values = [self.accuracy(row, benchmark, its) for row, its in self._rows_of(*methods)]
        second: Value = np.sort(np.stack(np.broadcast_arrays(*values)), axis=0)[-2]
        return second

    def ranked(self, benchmark: str, place: int) -> Value:
        """The accuracy in one place of a column of the main table, from 1; equal values share a place. Print only."""
        column = sorted({self.accuracy(method, benchmark, its) for method, its in self._rows_but()}, reverse=True)
        return column[place - 1]

    def undominated(self, benchmark: str) -> Value:
        """How far GMR is from being dominated on a benchmark; positive where no row of the main table dominates it.

        Another row dominates where it is at least as accurate and no dearer. The margin to a row is the larger of the
        lead in points and of its extra cost in percent; the value is the smallest margin to any row.
        """
        accuracy, cost = self.accuracy(OWN, benchmark), self.cost(OWN, benchmark)
        margins = [
            most(accuracy - self.accuracy(row, benchmark, its), 100 * (self.cost(row, benchmark, its) / cost - 1))
            for row, its in self._rows_but((OWN, POOL))
        ]
        return least(*margins)

    def _rows_but(self, *left_out: tuple[str, str]) -> Rows:
        return [(row.method, row.backbone) for row in self._paper.rows if (row.method, row.backbone) not in left_out]

    def _rows_of(self, *methods: str) -> Rows:
        for method in methods:
            _check("method", method, _methods())
        return [row for row in self._rows_but() if row[0] in methods]

    def _rivals(self, method: str, benchmark: str, backbone: str, other: str, its: str) -> Rows:
        """Whoever may be the rival; the arguments as there."""
        for row, runs in [(method, backbone), *([(other, its)] if other else [])]:
            self._check_names(row, benchmark, runs)
        return self._rows_but((method, backbone), (other, its), (OWN, POOL))

    def _multi_agent(self) -> Rows:
        """The multi-agent baselines."""
        return [row for row in self._rows_but((OWN, POOL)) if self._paper.methods[row[0]].multi_agent]

    def _single_calls(self) -> Rows:
        """The rows that answer a question with a single call."""
        return [row for row in self._rows_but() if not self._paper.methods[row[0]].multi_agent]

    def _price(self, backbone: str) -> Price:
        _check("backbone", backbone, self._paper.prices)
        return self._paper.prices[backbone]

    def _check_names(self, method: str, benchmark: str, backbone: str) -> None:
        """A slip in a name must not pass for a number that is missing."""
        columns = [*self._paper.benchmarks, AVERAGE, OVERALL]
        _check("method", method, _methods())
        _check("benchmark", benchmark, columns)
        _check("row", backbone, self._paper.backbones)

    @staticmethod
    def _check_domain(domain: str) -> None:
        _check("domain", domain, DOMAINS)


@cache
def _methods() -> frozenset[str]:
    return frozenset(config.methods())


def _check(kind: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise unknown(kind, name, known, "config; named in analysis/claims/statements")

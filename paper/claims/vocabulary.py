"""The functions an expression can call, whichever side they look at: the print or a run.

Accuracies, rates and fractions are in percent on both sides. A cost is what the side has: in print the total over a
test set, in a run the mean of a test question. Claims therefore compare costs as ratios only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, cached_property, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness import config
from harness.config import POOL
from harness.errors import unknown
from paper.claims.language import evaluate

if TYPE_CHECKING:
    from paper.published import Price, Published

Value: TypeAlias = float | NDArray[np.float64]
AVERAGE = "average"
OVERALL = "overall"
OWN = "gmr"
FUNCTIONS = (
    "accuracy",
    "rival",
    "ranked",
    "cost",
    "undominated",
    "depth",
    "steps_share",
    "write_rate",
    "retrieved",
    "lowest_entropy",
    "training_steps",
    "training_depth",
    "flops",
    "seconds",
    "seed_mean",
    "seed_lowest",
    "seed_highest",
    "size",
    "price_in",
    "price_out",
    "least",
    "most",
    "mean",
    "abs",
)


class AbsentError(Exception):
    """A number an expression needs and this side does not have; the message says which."""


class Vocabulary(ABC):
    """One side of every claim.

    Arguments are keys: ``method`` of ``config/methods.yaml``, ``benchmark`` of ``config/benchmarks.yaml`` (or
    ``average`` where an accuracy is meant), ``backbone`` of ``config/backbones.yaml`` or ``pool``. Every function
    raises :class:`AbsentError` where this side has no such number, and :class:`UserError` for a name that is no key.
    """

    def __init__(self, published: Published) -> None:
        self._paper = published

    def evaluate(self, expression: str, variables: Mapping[str, Any]) -> Value:
        """The value of an expression on this side."""
        value: Value = evaluate(expression, self._functions, variables)
        return value

    @cached_property
    def _functions(self) -> dict[str, Callable[..., Value]]:
        return {name: getattr(self, name) for name in FUNCTIONS}

    @abstractmethod
    def accuracy(self, method: str, benchmark: str, backbone: str = POOL, table: str = "") -> Value:
        """In percent, over all seeds there are; in print, ``table`` tells which of several tables is meant."""

    @abstractmethod
    def cost(self, method: str, benchmark: str, backbone: str = POOL, table: str = "") -> Value:
        """In print the total over the test set, in a run the mean of a test question; in the paper's unit."""

    @abstractmethod
    def depth(self, method: str, benchmark: str) -> Value:
        """Mean number of steps of a test trajectory."""

    @abstractmethod
    def steps_share(self, method: str, benchmark: str, steps: int) -> Value:
        """Share of the test trajectories that have so many steps, in percent."""

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

    def size(self, backbone: str) -> Value:
        """Parameters in billions, from the paper's price table on both sides."""
        return self._price(backbone).size

    def price_in(self, backbone: str) -> Value:
        """For a million prompt tokens, from the same table."""
        return self._price(backbone).input

    def price_out(self, backbone: str) -> Value:
        """For a million completion tokens, from the same table."""
        return self._price(backbone).output

    def rival(self, method: str, benchmark: str, backbone: str = POOL) -> Value:
        """The highest accuracy in a column of the main table among the rows that are neither this one nor GMR's."""
        self._check_names(method, benchmark, backbone)
        rows = self._rows_but((method, backbone), (OWN, POOL))
        return self.most(*[self.accuracy(other, benchmark, its) for other, its in rows])

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
            self.most(accuracy - self.accuracy(row, benchmark, its), 100 * (self.cost(row, benchmark, its) / cost - 1))
            for row, its in self._rows_but((OWN, POOL))
        ]
        return self.least(*margins)

    @staticmethod
    def least(*values: Value) -> Value:
        """The smallest."""
        smallest: Value = reduce(np.minimum, values)
        return smallest

    @staticmethod
    def most(*values: Value) -> Value:
        """The largest."""
        largest: Value = reduce(np.maximum, values)
        return largest

    @staticmethod
    def mean(*values: Value) -> Value:
        """The arithmetic mean."""
        total: Value = reduce(np.add, values)
        return total / len(values)

    @staticmethod
    def abs(value: Value) -> Value:
        """Without its sign."""
        size: Value = np.abs(value)
        return size

    def _rows_but(self, *left_out: tuple[str, str]) -> Sequence[tuple[str, str]]:
        return [(row.method, row.backbone) for row in self._paper.rows if (row.method, row.backbone) not in left_out]

    def _price(self, backbone: str) -> Price:
        _check("backbone", backbone, self._paper.prices)
        return self._paper.prices[backbone]

    def _check_names(self, method: str, benchmark: str, backbone: str) -> None:
        """A slip in a name must not pass for a number that is missing."""
        columns = [*self._paper.benchmarks, AVERAGE, OVERALL]
        _check("method", method, _methods())
        _check("benchmark", benchmark, columns)
        _check("row", backbone, self._paper.backbones)


@cache
def _methods() -> frozenset[str]:
    return frozenset(config.methods())


def _check(kind: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise unknown(kind, name, known, "config; named in paper/claims.yaml")

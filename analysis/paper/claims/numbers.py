"""Numbers for statements. Costs are totals in the paper and means in a run, so compare only ratios."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.published import load, row_of
from harness.runner.layout import POOL

Array: TypeAlias = NDArray[np.float64]
Number: TypeAlias = float | Array
Value: TypeAlias = "Number | Ordered"
#: A method and the backbone it runs on.
Row: TypeAlias = tuple[str, str]
OVERALL = "overall"
LARGE = "qwen-2.5-32B"
GMR, MASROUTER, PUPPETEER = ("gmr", POOL), ("masrouter", POOL), ("puppeteer", LARGE)
PAPER = load()
#: The rows of the main table, and those that answer with a single call.
ROWS = tuple((row.method, row.backbone) for row in PAPER.rows)
SINGLE_CALLS = tuple(row for row in ROWS if not PAPER.methods[row[0]].multi_agent)
#: The benchmarks of the ablations and of the cost tables.
GSM_AND_HUMANEVAL = ("gsm_hard", "humaneval")
_TABLES = ("ablation", "paradigm", "roles13")
_SHOWN = "share of the records shown at this step, counted from 0"
#: Measures by name: description; the paper's tables that print it, in order of preference;
#: its name there; half a unit of its last digit.
MEASURES: Mapping[str, tuple[str, tuple[str, ...], str, float]] = {
    "accuracy": ("accuracy, over the seeds of the preset", ("main", "costs", *_TABLES), "accuracy", 0.005),
    "cost": ("cost, in the paper's unit", ("costs", *_TABLES), "cost", 0.0005),
    "flops": ("PFLOPs of a question", ("hw_cost",), "pflops", 0.0005),
    "seconds": ("wall-clock seconds of a question, many at a time", ("hw_cost",), "seconds", 0.05),
    "depth": ("mean number of steps", ("gate_behaviour",), "depth", 0.005),
    "six_steps": ("share of the trajectories of six steps", (), "", 0),
    "depth_by_difficulty": ("rank correlation of the steps of a question with its difficulty", (), "", 0),
    "write_rate": ("share of the steps that entered memory", ("gate_behaviour",), "write_rate", 0.05),
    **{name: (_SHOWN, ("gate_behaviour",), name, 0.5) for name in (f"retrieved_{step}" for step in range(1, 6))},
    "entropy_write": ("lowest entropy of the write gate in training", (), "", 0),
    "entropy_retrieval": ("lowest entropy of the retrieval gate in training", (), "", 0),
    "training_steps": ("steps of a whole training", ("halting_training",), "steps", 50),
    "training_depth": ("mean number of steps of a training trajectory", ("halting_training",), "depth", 0.05),
    "seed_mean": ("accuracy over several training seeds", ("seed_variance",), "mean", 0.005),
    "seed_lowest": ("average over the benchmarks of the worst seed", ("seed_variance",), "lowest", 0.005),
    "seed_highest": ("average over the benchmarks of the best seed", ("seed_variance",), "highest", 0.005),
    "seeds": ("average over the benchmarks seed by seed", (), "", 0),
    "hard_accuracy": ("accuracy on questions that half of the single-call rows get wrong", (), "", 0),
    "later_prompt": ("tokens of a prompt after the first step", (), "", 0),
    f"calls_{LARGE}": (f"share of the steps' calls that go to {LARGE}", (), "", 0),
    "redundancy_stored": ("cosine similarity of stored contributions with what was stored", (), "", 0),
    "redundancy_refused": ("cosine similarity of refused contributions with what was stored", (), "", 0),
}
# Half a unit of the last digit of costs that are printed with four decimals.
_FINE_COST = 0.00005
# With more inputs than this, the range due to rounding is not computed.
_MOST_INPUTS = 12


def name_of(row: Row) -> str:
    return f"{PAPER.methods[row[0]].title} ({PAPER.backbones[row[1]]})"


class AbsentError(Exception):
    """A number that a claim needs and this side lacks."""


@dataclass(frozen=True)
class Ordered:
    """The value of a rank among several, from 1 for the largest. Which value has the rank is itself uncertain.

    A lead over the best of other rows is a lead over each of them, not only over the best in this sample. So arithmetic
    applies to every value, and the rank is taken last.
    """

    values: tuple[Any, ...]  # each a Value, or an object of analysis.paper.claims.joint
    rank: int
    names: tuple[str, ...] = ()  # names of rows, to report which one decides

    # NumPy arrays defer arithmetic to the methods below.
    __array_ufunc__ = None

    def __neg__(self) -> Ordered:
        return replace(self, values=tuple(-value for value in self.values), rank=len(self.values) + 1 - self.rank)

    def __add__(self, other: Value) -> Ordered:
        return replace(self, values=tuple(value + other for value in self.values))

    __radd__ = __add__

    def __sub__(self, other: Value) -> Ordered:
        return self + -other

    def __rsub__(self, other: Value) -> Ordered:
        return -self + other


@dataclass(frozen=True)
class Leading(Ordered):
    """The value with the highest score. It may be any value whose score is not significantly lower."""

    scores: tuple[Any, ...] = ()


def least(*values: Value) -> Ordered:
    """Return the smallest value. If it is above 0, all are."""
    return Ordered(values, len(values))


def most(*values: Value) -> Ordered:
    return Ordered(values, 1)


def mean(*values: Number) -> Number:
    return reduce(np.add, values) / len(values)


def resolve(value: Value) -> Number:
    """Return the array of an ordered value, or a plain number unchanged.

    Elementwise, it is the value of the rank, or for :class:`Leading` that of the highest score.
    """
    if not isinstance(value, Ordered):
        return value
    values = np.stack(np.broadcast_arrays(*map(resolve, value.values)))
    if isinstance(value, Leading):
        best = np.stack(np.broadcast_arrays(values[0], *value.scores))[1:].argmax(axis=0)
        return np.take_along_axis(values, best[np.newaxis], axis=0)[0]
    ranked: Array = np.sort(values, axis=0)[-value.rank]
    return ranked


class Numbers(ABC):
    """Numbers of one side by measure, row and benchmark. A ``row`` may be a method alone."""

    @abstractmethod
    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Any: ...

    def of(self, measure: str, row: Row | str, benchmark: str, table: str = "") -> Any:
        """Return one of :data:`MEASURES`, from the named table if the paper has several."""
        return self._value(measure, row_of(row) if isinstance(row, str) else row, benchmark, table)

    def seed_lead(self, row: Row, other: Row) -> Ordered:
        """Return the smallest lead with the same seed, in the average over the benchmarks."""
        seeds = (self.of("seeds", side, OVERALL) for side in (row, other))
        return least(*[first - second for first, second in zip(*seeds, strict=False)])

    def accuracy(self, row: Row | str, benchmark: str, table: str = "") -> Number:
        return self.of("accuracy", row, benchmark, table)

    def cost(self, row: Row | str, benchmark: str, table: str = "") -> Number:
        return self.of("cost", row, benchmark, table)

    def lead(self, row: Row | str, other: Row | str, benchmark: str, measure: str = "accuracy") -> Number:
        """Return the lead of a row over another in points."""
        return self.of(measure, row, benchmark) - self.of(measure, other, benchmark)

    def ratio(self, row: Row | str, other: Row | str, benchmark: str, measure: str) -> Number:
        return self.of(measure, row, benchmark) / self.of(measure, other, benchmark)

    def saving(self, row: Row | str, other: Row | str, benchmark: str, measure: str = "cost") -> Number:
        """Return the saving of a row relative to another, in percent of the other's cost."""
        return 100 * (1 - self.ratio(row, other, benchmark, measure))

    def rival(self, row: Row, benchmark: str, *others: Row) -> Ordered:
        """Return the highest accuracy of all rows but this one, ``others`` and GMR."""
        return self.at(1, [rival for rival in ROWS if rival not in (row, *others, GMR)], benchmark)

    def gain(self, row: Row, benchmark: str) -> Ordered:
        """Return the lead over :meth:`rival` in points."""
        return self.accuracy(row, benchmark) - self.rival(row, benchmark)

    def of_strongest(self, quantity: Callable[[Row], Number], benchmark: str) -> Leading:
        """Return a quantity of the most accurate multi-agent baseline."""
        rows = [row for row in ROWS if PAPER.methods[row[0]].multi_agent and row != GMR]
        scores = tuple(self.accuracy(row, benchmark) for row in rows)
        return Leading(tuple(map(quantity, rows)), 1, tuple(map(name_of, rows)), scores)

    def at(self, rank: int, rows: Sequence[Row], benchmark: str) -> Ordered:
        """Return the accuracy of a rank among rows, from 1 for the highest."""
        return Ordered(tuple(self.accuracy(row, benchmark) for row in rows), rank, tuple(map(name_of, rows)))


@cache
def _table(name: str) -> Mapping[tuple[str, ...], float]:
    """Return a table of the paper by method, backbone, benchmark and measure."""
    values: dict[tuple[str, ...], float] = PAPER.table(name).stack(future_stack=True).dropna().to_dict()
    return values


class Printed(Numbers):
    """Numbers of the paper. ``instead`` replaces some, by their key in ``read``."""

    def __init__(self, instead: Mapping[tuple[str, ...], Number] | None = None) -> None:
        self._instead = instead or {}
        #: Every number read, with half a unit of its last digit.
        self.read: dict[tuple[str, ...], tuple[float, float]] = {}

    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Number:
        words, tables, name, half = MEASURES[measure]
        key = (*row, benchmark, name)
        value = next((_table(each)[key] for each in ([table] if table else tables) if key in _table(each)), None)
        if value is None:
            what = f"{measure} of {' '.join(row)}" if tables else f"{words}, of {row[0]}"
            raise AbsentError(f"{what} on {benchmark}")
        is_fine = measure == "cost" and round(value, 3) != value
        self.read[measure, *row, benchmark, table] = value, _FINE_COST if is_fine else half
        return self._instead.get((measure, *row, benchmark, table), value)


def compute(quantity: Callable[[Numbers], Value]) -> tuple[float, float, float]:
    """Return a quantity of the paper's numbers, and its minimum and maximum before rounding."""
    # A quantity is monotone in each input, so its extremes are at corners of the inputs' box.
    plain = Printed()
    value = float(resolve(quantity(plain)))
    if not 0 < len(plain.read) <= _MOST_INPUTS:
        return value, value, value
    corners = np.array(list(product((-1, 1), repeat=len(plain.read)))).T
    shifted = {
        key: number + half * signs for (key, (number, half)), signs in zip(plain.read.items(), corners, strict=True)
    }
    values = np.asarray(resolve(quantity(Printed(shifted))))
    return value, float(values.min()), float(values.max())

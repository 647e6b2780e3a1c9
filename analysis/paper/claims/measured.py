"""Measurements of a run for claims: values of its cells, also with each question and each training left out."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import spearmanr

from analysis.finished_cells import TRAINING, FinishedCell, updates
from analysis.frames import Key
from analysis.paper import traces
from analysis.paper.claims.declaration import Claim
from analysis.paper.claims.joint import spreads
from analysis.paper.claims.numbers import (
    LARGE,
    OVERALL,
    PAPER,
    SINGLE_CALLS,
    Array,
    Numbers,
    Ordered,
    Row,
    Value,
    least,
    mean,
    most,
)
from analysis.paper.hw_cost import pflops, seconds
from analysis.published import AVERAGE
from analysis.registry import Selection, artefact
from analysis.statistics import Jackknife, Ratio, Spread, leave_one_out, mean_of
from harness.runner import config, run

#: Method, backbone, benchmark, measure.
Asked: TypeAlias = tuple[str, str, str, str]
# Measures that are functions of the averages of single seeds.
_OF_SEEDS: Mapping[str, Callable[..., Any]] = {
    "seeds": lambda *seeds: seeds,
    "seed_lowest": least,
    "seed_highest": most,
}
_OF_TRAININGS = ("training_", "entropy_")
_BY_DIFFICULTY = ("depth_by_difficulty", "hard_accuracy")
_ENTROPIES = ["entropy_write", "entropy_retrieval"]
# A question is hard if at least this percentage of the single-call rows gets it wrong.
_HARD = 50
# Measures that are ratios, by the function that computes them.
_RATIOS: Mapping[Callable[[FinishedCell], Mapping[str, Ratio]], tuple[str, ...]] = {
    traces.of_calls: ("later_prompt", f"calls_{LARGE}"),
    traces.redundancy: ("redundancy_stored", "redundancy_refused"),
    traces.of_gates: ("write_rate", *(f"retrieved_{step}" for step in traces.STEPS)),
}
# Measures with a value per question. Those not listed are columns of the items.
_VALUES: Mapping[str, Callable[[FinishedCell], ArrayLike]] = {
    **dict.fromkeys(("accuracy", "seed_mean", "hard_accuracy"), lambda cell: 100.0 * cell.items["correct"]),
    "depth_by_difficulty": lambda cell: cell.items["depth"],
    "six_steps": lambda cell: 100.0 * (cell.items["depth"] == 6),
    "flops": pflops,
}
# Trainings behind a published ``seed_mean``; every other published number is of one training.
_PUBLISHED_SEEDS = 3


class Seeds(NamedTuple):
    """The seeds of each row on any benchmark, ascending."""

    usual: Mapping[Row, tuple[int, ...]] = MappingProxyType({})  # one seed for rows that do not learn
    several: Mapping[Row, tuple[int, ...]] = MappingProxyType({})  # seeds for statements about trainings

    def of(self, asked: Asked) -> tuple[int, ...]:
        """Return the seeds of a number; empty for an unknown row."""
        return (self.several if asked[3] == "seed_mean" else self.usual).get(asked[:2], ())


def seeds_of(preset: run.Run) -> Seeds:
    """Return the seeds of a preset, and those of the table ``seed_variance``."""
    every = Selection(methods=tuple(config.methods())).cells(preset), artefact("seed_variance").cells_of(preset)
    return Seeds(*(by_row(((cell.method, cell.backbone), cell.seed) for cell in cells) for cells in every))


def by_row(seeds: Iterable[tuple[Row, int]]) -> dict[Row, tuple[int, ...]]:
    grouped: defaultdict[Row, set[int]] = defaultdict(set)
    for row, seed in seeds:
        grouped[row].add(seed)
    return {row: tuple(sorted(numbers)) for row, numbers in grouped.items()}


#: The cells of one row on one benchmark, in order of seed.
Group: TypeAlias = tuple[FinishedCell, ...]


class Measurement(NamedTuple):
    """A measure of a row on a benchmark."""

    whole: Array = np.empty(0)  # one value per training
    without: Array = np.empty(
        (0, 0)
    )  # without each question, shape (trainings, questions); empty if no question affects it
    groups: Sequence[Group] = ()  # groups that were read, starting with that of the row
    missing: tuple[str, ...] = ()  # descriptions of cells that were not run


Measure: TypeAlias = Callable[[Asked], Measurement]


@dataclass(frozen=True, eq=False)
class Run:
    """Finished cells that claims are compared with."""

    cells: Mapping[Key, Sequence[FinishedCell]] = field(default_factory=dict)
    seeds: Seeds = field(default_factory=Seeds)  # seeds that are read

    @property
    def simulated(self) -> bool:
        return any(cell.run.simulated for cells in self.cells.values() for cell in cells)

    def measure(self, asked: Asked) -> Measurement:
        """Return the measurement of a row on a benchmark, or the missing cells."""
        method, backbone, benchmark, measure = asked
        rows = [(method, backbone), *(SINGLE_CALLS if measure in _BY_DIFFICULTY else ())]
        groups: list[Group] = []
        missing: list[str] = []
        for row in rows:
            seeds = self.seeds.of((*row, benchmark, measure))
            cells = self.cells.get((*row, benchmark), ())
            groups.append(tuple(cell for cell in cells if cell.run.seed in seeds))
            absent = "/".join(str(seed) for seed in seeds if all(cell.run.seed != seed for cell in cells))
            if absent or not seeds:
                lost = f"seed {absent}" if absent else "which the preset does not have"
                missing.append(f"{' '.join(row)} on {benchmark}, {lost}")
        if missing:
            return Measurement(missing=tuple(missing))
        group, *singles = groups
        if measure == "seconds" or measure.startswith(_OF_TRAININGS):
            value = _of_cells(group, measure)
            if measure == "seconds" and math.isnan(value):
                return Measurement(missing=(f"seconds of {method} {backbone} on {benchmark}",))
            return Measurement(np.array([value]), groups=groups)
        tops, bottoms = _by_question(group, measure)
        if measure == "depth_by_difficulty":
            return Measurement(*_correlation(tops, _wrong(singles)), groups)
        if measure == "hard_accuracy":
            bottoms = bottoms * (_wrong(singles) >= _HARD)
            tops = tops * bottoms
        return Measurement(*leave_one_out(tops, bottoms), groups)


def _by_question(group: Group, measure: str) -> tuple[Array, Array]:
    """Return numerators and denominators of a measure, shape (trainings, questions)."""
    ratios = [of_questions(cell, measure) for cell in group]
    return np.array([ratio.numerators for ratio in ratios]), np.array([ratio.denominators for ratio in ratios])


def of_questions(cell: FinishedCell, measure: str) -> Ratio:
    """Return a measure by question, shares in percent. Denominators are 0 if nothing was drawn for it."""
    for read_ratios, names in _RATIOS.items():
        if measure in names:
            nothing = np.zeros(len(cell.items))
            ratio = _read_once(read_ratios, cell).get(measure, Ratio(nothing, nothing))
            return Ratio((100 if ratio.is_share else 1) * ratio.numerators, ratio.denominators)
    return mean_of(_VALUES[measure](cell) if measure in _VALUES else cell.items[measure])


@cache
def _read_once(read_ratios: Callable[[FinishedCell], Mapping[str, Ratio]], cell: FinishedCell) -> Mapping[str, Ratio]:
    return read_ratios(cell)


def _wrong(singles: Sequence[Group]) -> Array:
    """Return the percentage of single-call rows that answer wrong, by question."""
    return 100 - np.array([_by_question(group, "accuracy")[0].mean(axis=0) for group in singles]).mean(axis=0)


def _of_cells(group: Group, measure: str) -> float:
    """Return a cell-level measure over all seeds: the lowest entropy, a ratio of sums for a depth, else the mean.

    NaN if any seed lacks it.
    """
    cells = pd.DataFrame([of_training(cell) | {"seconds": seconds(cell)} for cell in group])
    if measure == "training_depth":
        return float(cells["training_steps"].sum(skipna=False) / cells["trajectories"].sum(skipna=False))
    values = cells[measure]
    return float(values.min(skipna=False) if measure.startswith("entropy_") else values.mean(skipna=False))


def of_training(cell: FinishedCell) -> dict[str, float]:
    """Return sums of the training log and the lowest entropies; NaN without a log."""
    has_log = (cell.folder / TRAINING).is_file()
    log = (updates(cell) if has_log else pd.DataFrame()).reindex(columns=["steps", "trajectories", *_ENTROPIES])
    sums = log[["steps", "trajectories"]].sum(min_count=1)
    return {"training_steps": sums["steps"], "trajectories": sums["trajectories"], **log[_ENTROPIES].min()}


class Measured(Numbers):
    """Numbers of a run as arrays: as measured, then without each question and training (:class:`Jackknife`)."""

    def __init__(self, measurements: Mapping[Asked, Measurement]) -> None:
        self._measurements = measurements
        known = list(measurements.values())
        self.groups = list(dict.fromkeys(group for each in known for group in each.groups))
        #: Descriptions of missing cells.
        self.missing = list(dict.fromkeys(text for each in known for text in each.missing))
        #: Whether all measures are computed from questions, as the jackknife needs.
        self.of_items = all(each.without.size for each in known)
        self.jackknife = Jackknife({}, {})
        if self.of_items:
            sizes: dict[Hashable, int] = {asked[2]: each.without.shape[-1] for asked, each in measurements.items()}
            self.jackknife = Jackknife(sizes, {group: len(group) for group in self.groups})
        #: The measures that were read.
        self.measures: set[str] = set()

    @property
    def unknown(self) -> list[str]:
        """Describe the measures that are NaN although their cells were run."""
        return [
            f"{measure} {'in the training of' if measure.startswith(_OF_TRAININGS) else 'of'} {method} on {benchmark}"
            for (method, _, benchmark, measure), each in self._measurements.items()
            if np.isnan(each.whole).all()
        ]

    @property
    def published_sizes(self) -> dict[Any, int]:
        """Return sample sizes of the published values: questions by benchmark, trainings by group of cells."""
        rows = {(cell.run.method, cell.run.backbone) for group in self.groups for cell in group}
        printed = [row for row in PAPER.rows if (row.method, row.backbone) in rows] or PAPER.rows
        sizes: dict[Any, int] = dict.fromkeys(self.groups, _PUBLISHED_SEEDS if "seed_mean" in self.measures else 1)
        for key in {cell.run.benchmark for group in self.groups for cell in group}:
            accuracies = [row.accuracies[key] for row in printed]
            counts = [count for accuracy in accuracies for count in (*accuracy.counts, accuracy.near) if count]
            sizes[key] = min(count.n for count in counts)
        return sizes

    def spread(self, value: Value, claim: Claim, **given: Any) -> Ordered | Spread:
        """Return the spread of each number of a claim's value (:meth:`Jackknife.spread`)."""
        # Counts of questions give an interval in points of accuracy, even if no question moves the value, but none
        # of a cost or correlation. A margin contains points; if its costs are equal, its sign stays open.
        are_points = claim.is_share or claim.unit in ("points", "margin")
        return spreads(value, partial(self.jackknife.spread, are_points=are_points, is_share=claim.is_share, **given))

    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Any:
        """Return the measured value. ``table`` names one of the paper and has no effect."""
        self.measures.add(measure)
        if measure in _OF_SEEDS:
            return _OF_SEEDS[measure](*self._by_seed(row))
        if benchmark in (AVERAGE, OVERALL):
            return mean(*[self._value(measure, row, key, table) for key in PAPER.benchmarks])
        each = self._measurements[*row, benchmark, measure]
        return self.jackknife.mean(each.whole, each.without, benchmark, next(iter(each.groups), None))

    def _by_seed(self, row: Row) -> Iterator[Value]:
        """Iterate over the average over the benchmarks of each seed."""
        known = {key: self._measurements[*row, key, "seed_mean"] for key in PAPER.benchmarks}
        for index in range(min(len(each.whole) for each in known.values())):
            alone = [(each.whole[[index]], each.without[[index]], key) for key, each in known.items()]
            yield mean(*[self.jackknife.mean(*values) for values in alone])

    def seed_lead(self, row: Row, other: Row) -> Ordered:
        """Return the smallest lead over another row with the same seed, which both must have."""
        lead = super().seed_lead(row, other)
        runs = [[cell.run for cell in group] for group in self.groups]
        seeds = {tuple(run.seed for run in of) for of in runs if (of[0].method, of[0].backbone) in (row, other)}
        if not self.missing and len(seeds) > 1:
            self.missing.append(f"the same seeds of {row[0]} and {other[0]}")
        return lead


def evaluate(claim: Claim, arguments: Sequence[Any], measure: Measure) -> tuple[Value, Measured]:
    """Compute a part of a claim from a run; also return the measured numbers it used."""
    # A first pass collects the measurements, whose questions and trainings the jackknife leaves out.
    asked: defaultdict[Asked, Measurement] = defaultdict(Measurement)
    claim.quantity(Measured(asked), *arguments)
    n = Measured({each: measure(each) for each in asked})
    return claim.quantity(n, *arguments), n


def _correlation(depths: Array, wrong: Array) -> tuple[Array, Array]:
    """Return Spearman's correlation of steps and difficulty by training, and again without each question."""
    without = [[_spearman(np.delete(depth, i), np.delete(wrong, i)) for i in range(len(wrong))] for depth in depths]
    return np.array([_spearman(depth, wrong) for depth in depths]), np.array(without)


def _spearman(depth: Array, wrong: Array) -> float:
    """Return the rank correlation; 0 if either side is constant."""
    has_ranks = len(np.unique(depth)) > 1 and len(np.unique(wrong)) > 1
    return float(spearmanr(depth, wrong).statistic) if has_ranks else 0.0

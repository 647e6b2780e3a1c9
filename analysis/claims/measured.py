"""Measurements of a run that claims read: from two frames, values with each question and training left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from analysis import traces
from analysis.claims.declaration import Claim
from analysis.claims.joint import spreads
from analysis.claims.numbers import (
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
from analysis.compute import pflops, seconds
from analysis.finished_cells import TRAINING, FinishedCell, updates
from analysis.frames import Key
from analysis.provenance import identity
from analysis.published import AVERAGE, KEY
from analysis.registry import Selection, artefact
from analysis.statistics import Jackknife, Ratio, Spread, leave_one_out
from harness.runner import config

#: Method, backbone, benchmark, measure.
Asked: TypeAlias = tuple[str, str, str, str]
#: The index of both frames.
CELL = [*KEY, "seed"]
#: Joined to the name of a ratio in the frame of questions: the column of its denominators.
OF = " of"
# Of the averages of single seeds, each of the accuracies that ``seed_mean`` averages.
_OF_SEEDS: Mapping[str, Callable[..., Any]] = {
    "seeds": lambda *seeds: seeds,
    "seed_lowest": least,
    "seed_highest": most,
}
_OF_TRAININGS = ("training_", "entropy_")
_BY_DIFFICULTY = ("depth_by_difficulty", "hard_accuracy")
_ENTROPIES = ["entropy_write", "entropy_retrieval"]
# A question is hard that so many percent of the single-call rows get wrong.
_HARD = 50
# Measures that are ratios, by the function that reads them.
_RATIOS: Mapping[Callable[[FinishedCell], Mapping[str, Ratio]], tuple[str, ...]] = {
    traces.of_calls: ("later_prompt", f"calls_{LARGE}"),
    traces.redundancy: ("redundancy_stored", "redundancy_refused"),
    traces.of_gates: ("write_rate", *(f"retrieved_{step}" for step in traces.STEPS)),
}
# Of ``seed_mean`` the paper prints a mean over so many trainings, of everything else one training.
_PUBLISHED_SEEDS = 3


class Seeds(NamedTuple):
    """The seeds of each row on any benchmark, ascending."""

    usual: Mapping[Row, tuple[int, ...]] = MappingProxyType({})  # a single one of a row that learns nothing
    several: Mapping[Row, tuple[int, ...]] = MappingProxyType({})  # for statements about trainings

    def of(self, asked: Asked) -> tuple[int, ...]:
        """Return the seeds that a number is asked of; none of an unknown row."""
        return (self.several if asked[3] == "seed_mean" else self.usual).get(asked[:2], ())


def seeds_of(preset: config.Preset) -> Seeds:
    """Return the seeds by a preset and, of several, by the table of seeds."""
    every = Selection(methods=tuple(config.methods())).cells(preset), artefact("seed_variance").cells_of(preset)
    return Seeds(*(by_row(((cell.method, cell.backbone), cell.seed) for cell in cells) for cells in every))


def by_row(seeds: Iterable[tuple[Row, int]]) -> dict[Row, tuple[int, ...]]:
    """Return the seeds of each row, ascending."""
    grouped: defaultdict[Row, set[int]] = defaultdict(set)
    for row, seed in seeds:
        grouped[row].add(seed)
    return {row: tuple(sorted(numbers)) for row, numbers in grouped.items()}


class Group(NamedTuple):
    """Some seeds of one method with one backbone on one benchmark, ascending."""

    method: str
    backbone: str
    benchmark: str
    seeds: tuple[int, ...]

    @property
    def cells(self) -> list[tuple[Any, ...]]:
        """Return the entries of its cells in the index of the frames."""
        return [(*self[:3], seed) for seed in self.seeds]


class Measurement(NamedTuple):
    """A measure of a row on a benchmark, of a run or of each of many samples."""

    whole: Array = np.empty(0)  # of each training, shape (..., trainings)
    without: Array = np.empty((0, 0))  # the same without each question, shape (..., trainings, questions); else empty
    groups: tuple[Group, ...] = ()  # that were read, that of the row first
    missing: tuple[str, ...] = ()  # what was not run, in words


Measure: TypeAlias = Callable[[Asked], Measurement]


@dataclass(frozen=True, eq=False)
class Run:
    """Results that claims are compared with: two frames by method, backbone, benchmark and seed."""

    cells: pd.DataFrame = field(default_factory=pd.DataFrame)  # a row a cell: what identifies it, and its training
    questions: pd.DataFrame = field(default_factory=pd.DataFrame)  # a row a question: a column a measure, and OF
    seeds: Seeds = field(default_factory=Seeds)  # that are read

    @classmethod
    def of(cls, claims: Iterable[Claim], rows: Mapping[Key, Sequence[FinishedCell]], seeds: Seeds) -> Run:
        """Return what claims ask of finished cells."""
        cells = {(*row, cell.run.seed): cell for row, group in rows.items() for cell in group}
        if not cells:
            return cls(seeds=seeds)
        asked: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for *row, measure in asked_by(claims):
            asked[*row,].add(measure)
        questions = {key: _questions(cell, asked[key[:3]]) for key, cell in cells.items()}
        return cls(
            pd.DataFrame(map(_of_cell, cells.values()), pd.MultiIndex.from_tuples(cells, names=CELL)),
            pd.concat(questions, names=CELL).droplevel(-1),
            seeds,
        )

    @property
    def simulated(self) -> bool:
        """Return whether the backbones were simulated."""
        return not self.cells.empty and bool(self.cells["simulated"].any())

    @cached_property
    def _by_cell(self) -> dict[tuple[Any, ...], pd.DataFrame]:
        return {} if self.questions.empty else dict(list(self.questions.groupby(level=CELL)))

    def measure(self, asked: Asked) -> Measurement:
        """Return the measurement of a row on a benchmark, or what is missing for it."""
        method, backbone, benchmark, measure = asked
        rows = [(method, backbone), *(SINGLE_CALLS if measure in _BY_DIFFICULTY else ())]
        groups = tuple(Group(*row, benchmark, self.seeds.of((*row, benchmark, measure))) for row in rows)
        if missing := tuple(text for group in groups if (text := self._lacking(group))):
            return Measurement(missing=missing)
        group, *singles = groups
        if measure == "seconds" and self.cells["seconds"].loc[group.cells].isna().any():
            return Measurement(missing=(f"seconds of {method} {backbone} on {benchmark}",))
        if measure == "seconds" or measure.startswith(_OF_TRAININGS):
            return Measurement(np.array([self._of_cells(group, measure)]), groups=groups)
        if measure == "depth_by_difficulty":
            return Measurement(*_correlation(self._sums(group, "depth")[0], self._wrong(singles)), groups)
        tops, bottoms = self._sums(group, "accuracy" if measure in ("seed_mean", "hard_accuracy") else measure)
        if measure == "hard_accuracy":
            bottoms = bottoms * (self._wrong(singles) >= _HARD)
            tops = tops * bottoms
        return Measurement(*leave_one_out(tops, bottoms), groups)

    def _lacking(self, group: Group) -> str:
        """Return in words which cells of a group were not run; empty if none."""
        absent = [str(cell[-1]) for cell in group.cells if cell not in self._by_cell]
        if group.seeds and not absent:
            return ""
        lost = f"seed {'/'.join(absent)}" if absent else "which the preset does not have"
        return f"{group.method} {group.backbone} on {group.benchmark}, {lost}"

    def _sums(self, group: Group, measure: str) -> tuple[Array, Array]:
        """Return numerators and denominators of a measure, shape (trainings, n); zeros for a training without."""
        frames = [self._by_cell[cell] for cell in group.cells]
        tops = np.array([frame[measure] for frame in frames], dtype=float)
        if measure + OF not in self.questions:
            return tops, np.ones_like(tops)
        return tops, np.array([frame[measure + OF] for frame in frames], dtype=float)

    def _wrong(self, groups: Sequence[Group]) -> Array:
        """Return the percentage of the rows that answer wrong, by question."""
        return 100 - np.array([self._sums(group, "accuracy")[0].mean(axis=0) for group in groups]).mean(axis=0)

    def _of_cells(self, group: Group, measure: str) -> float:
        """Return a measure that has no questions behind it, over all seeds; not a number where one has none.

        Of an entropy the lowest; of the depth of trainings their steps over their trajectories; else the mean.
        """
        cells = self.cells.loc[group.cells]
        if measure == "training_depth":
            return float(cells["training_steps"].sum(skipna=False) / cells["trajectories"].sum(skipna=False))
        values = cells[measure].astype(float)
        return float(values.min(skipna=False) if measure.startswith("entropy_") else values.mean(skipna=False))


def _of_cell(cell: FinishedCell) -> dict[str, Any]:
    """Return what identifies a cell, its seconds, and the sums of its training log; NaN without one."""
    has_log = (cell.folder / TRAINING).is_file()
    log = (updates(cell) if has_log else pd.DataFrame()).reindex(columns=["steps", "trajectories", *_ENTROPIES])
    sums = log[["steps", "trajectories"]].sum(min_count=1)
    training = {"training_steps": sums["steps"], "trajectories": sums["trajectories"], **log[_ENTROPIES].min()}
    known = {"cell": cell.run.cell, "simulated": cell.run.simulated, "seconds": seconds(cell)}
    return {**known, **identity([cell.run]), **training}


def _questions(cell: FinishedCell, asked: set[str]) -> pd.DataFrame:
    """Return a row a question with the measures that are asked of a cell, besides those that its items have."""
    items = cell.items
    columns: dict[str, Any] = {
        "accuracy": 100.0 * items["correct"].to_numpy(),
        "cost": items["cost"].to_numpy(),
        "cost_total": items["cost_total"].to_numpy(),
        "depth": items["depth"].to_numpy(dtype=float),
        "six_steps": 100.0 * (items["depth"].to_numpy() == 6),
    }
    if "flops" in asked:
        columns["flops"] = pflops(cell).to_numpy()
    nothing = Ratio(np.zeros(len(items)), np.zeros(len(items)))
    for read_ratios, names in _RATIOS.items():
        ratios = read_ratios(cell) if asked.intersection(names) else {}
        for name in asked.intersection(names):
            ratio = ratios.get(name, nothing)
            columns[name] = (100 if ratio.is_share else 1) * ratio.numerators
            columns[name + OF] = ratio.denominators
    return pd.DataFrame(columns)


class Measured(Numbers):
    """Numbers of a run, each an array: as measured, then without each question and training (:class:`Jackknife`)."""

    def __init__(self, measurements: Mapping[Asked, Measurement]) -> None:
        self._measurements = measurements
        known = list(measurements.values())
        self.groups = list(dict.fromkeys(group for each in known for group in each.groups))
        #: What was not run, in words.
        self.missing = list(dict.fromkeys(text for each in known for text in each.missing))
        #: Whether all measures are computed from questions, so that the jackknife gives an interval.
        self.of_items = all(each.without.size for each in known)
        self.jackknife = Jackknife({}, {})
        if self.of_items:
            sizes: dict[Hashable, int] = {each.groups[0].benchmark: each.without.shape[-1] for each in known}
            self.jackknife = Jackknife(sizes, {group: len(group.seeds) for group in self.groups})
        #: The measures that were asked for.
        self.measures: set[str] = set()

    @property
    def unknown(self) -> list[str]:
        """Return in words what was run and yet has no value."""
        return [
            f"{measure} {'in the training of' if measure.startswith(_OF_TRAININGS) else 'of'} {method} on {benchmark}"
            for (method, _, benchmark, measure), each in self._measurements.items()
            if np.isnan(each.whole).all()
        ]

    @property
    def published_sizes(self) -> dict[Any, int]:
        """Return the sample sizes of the published values: questions by test set, trainings by group of cells."""
        rows = {(group.method, group.backbone) for group in self.groups}
        printed = [row for row in PAPER.rows if (row.method, row.backbone) in rows] or PAPER.rows
        sizes: dict[Any, int] = dict.fromkeys(self.groups, _PUBLISHED_SEEDS if "seed_mean" in self.measures else 1)
        for key in {group.benchmark for group in self.groups}:
            accuracies = [row.accuracies[key] for row in printed]
            counts = [count for accuracy in accuracies for count in (*accuracy.counts, accuracy.near) if count]
            sizes[key] = min(count.n for count in counts)
        return sizes

    def spread(self, value: Value, claim: Claim, **given: Any) -> Ordered | Spread:
        """Return a claim's value with the spread of each of its numbers, as :meth:`Jackknife.spread`."""
        # Counts of questions are an interval in points, for what no question moves, too: not one of a cost or of a
        # correlation. A margin has points of accuracy in it; where its costs are equal, its sign stays open either way.
        are_points = claim.is_share or claim.unit in ("points", "margin")
        return spreads(value, partial(self.jackknife.spread, are_points=are_points, is_share=claim.is_share, **given))

    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Any:
        """Return the value that the run measured; ``table``, which names one of the paper, makes no difference."""
        self.measures.add(measure)
        if measure in _OF_SEEDS:
            return _OF_SEEDS[measure](*self._by_seed(row))
        if benchmark in (AVERAGE, OVERALL):
            return mean(*[self._value(measure, row, key, table) for key in PAPER.benchmarks])
        each = self._measurements[*row, benchmark, measure]
        return self.jackknife.mean(each.whole, each.without, benchmark, next(iter(each.groups), None))

    def _by_seed(self, row: Row) -> Iterator[Value]:
        """Iterate over the averages over the benchmarks of each seed."""
        known = {key: self._measurements[*row, key, "seed_mean"] for key in PAPER.benchmarks}
        for index in range(min(each.whole.shape[-1] for each in known.values())):
            alone = [(each.whole[..., [index]], each.without[..., [index], :], key) for key, each in known.items()]
            yield mean(*[self.jackknife.mean(*values) for values in alone])

    def seed_lead(self, row: Row, other: Row) -> Ordered:
        """Return the smallest lead of a row over another with the same seed, which both must have."""
        lead = super().seed_lead(row, other)
        groups = {group for group in self.groups if (group.method, group.backbone) in (row, other)}
        if not self.missing and len({group.seeds for group in groups}) > 1:
            self.missing.append(f"the same seeds of {row[0]} and {other[0]}")
        return lead


def asked_by(claims: Iterable[Claim]) -> list[Asked]:
    """Return method, backbone, benchmark and measure of every number that claims ask of a run, each once."""
    parts = ((claim, arguments) for claim in claims if claim.holds for arguments in claim.parts())
    return list(dict.fromkeys(asked for claim, arguments in parts for asked in asked_by_part(claim, arguments)))


def asked_by_part(claim: Claim, arguments: Sequence[Any]) -> list[Asked]:
    """Return what a part of a claim asks, as :func:`asked_by`."""
    asked: defaultdict[Asked, Measurement] = defaultdict(Measurement)
    claim.quantity(Measured(asked), *arguments)
    return list(asked)


def evaluate(claim: Claim, arguments: Sequence[Any], measure: Measure) -> tuple[Value, Measured]:
    """Return the value of a part of a claim, and the measured numbers that it was computed from."""
    n = Measured({asked: measure(asked) for asked in asked_by_part(claim, arguments)})
    return claim.quantity(n, *arguments), n


def _correlation(depths: Array, wrong: Array) -> tuple[Array, Array]:
    """Return Spearman's correlation of steps and difficulty by training, and again without each question."""
    without = [[_spearman(np.delete(depth, i), np.delete(wrong, i)) for i in range(len(wrong))] for depth in depths]
    return np.array([_spearman(depth, wrong) for depth in depths]), np.array(without)


def _spearman(depth: Array, wrong: Array) -> float:
    """Return the rank correlation; 0 where either is the same for all questions."""
    has_ranks = len(np.unique(depth)) > 1 and len(np.unique(wrong)) > 1
    return float(spearmanr(depth, wrong).statistic) if has_ranks else 0.0

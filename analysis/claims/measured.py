"""The numbers of a run: a frame of what claims ask of it, and its values with each question and training left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from analysis import traces
from analysis.claims.declaration import Claim
from analysis.claims.numbers import (
    OVERALL,
    PAPER,
    ROWS,
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
from analysis.finished_cells import TRAINING, FinishedCell, updates
from analysis.frames import Key
from analysis.published import AVERAGE
from analysis.registry import Selection, artefact
from analysis.statistics import Jackknife, Ratio, leave_one_out
from analysis.timings import Timing, pflops
from harness.runner import config

Seeds: TypeAlias = Mapping[Row, tuple[int, ...]]
#: Some seeds of one method with one backbone on one benchmark, in order of seed.
Cells: TypeAlias = tuple[FinishedCell, ...]
#: Method, backbone, benchmark, measure.
Asked: TypeAlias = tuple[str, str, str, str]
# By measure: one value a question.
_OF_ITEMS: Mapping[str, Callable[[FinishedCell], Array]] = {
    "accuracy": lambda cell: 100.0 * cell.items["correct"].to_numpy(),
    "cost": lambda cell: cell.items["cost"].to_numpy(),
    "cost_total": lambda cell: cell.items["cost_total"].to_numpy(),
    "flops": lambda cell: pflops(cell).to_numpy(),
    "depth": lambda cell: cell.items["depth"].to_numpy(dtype=float),
    "six_steps": lambda cell: 100.0 * (cell.items["depth"] == 6).to_numpy(),
}
# Values of single seeds, each of the accuracies that ``seed_mean`` averages.
_OF_SEEDS: Mapping[str, Callable[..., Any]] = {
    "seeds": lambda *seeds: seeds,
    "seed_lowest": least,
    "seed_highest": most,
}
_OF_TRAININGS = ("training_", "entropy_")
_BY_DIFFICULTY = ("depth_by_difficulty", "hard_accuracy")
# A question is hard that so many percent of the single-call rows get wrong.
_HARD = 50
_AS_MEASURED = Jackknife({}, {})
# Of these the paper prints a mean over some trainings, of everything else one training.
_SEVERAL, _PUBLISHED_SEEDS = {"seed_mean"}, 3
_NO_VALUES: Array = np.empty((0, 0))


@dataclass(frozen=True)
class Run:
    """Finished cells and timings that claims are compared with, maybe none, and the seeds that every row must have."""

    cells: Mapping[Key, Cells] = field(default_factory=dict)
    timings: Mapping[Key, Timing] = field(default_factory=dict)
    seeds: Seeds = field(default_factory=dict)  # of the preset, a single one of a row that learns nothing
    several: Seeds = field(default_factory=dict)  # of the table of seeds, for statements about trainings

    @property
    def simulated(self) -> bool:
        """Return whether the backbones were simulated."""
        return any(cell.run.simulated for cells in self.cells.values() for cell in cells)

    @property
    def main_rows(self) -> dict[Key, Cells]:
        """Return the cells of the rows of the main table."""
        return {key: cells for key, cells in self.cells.items() if key[:2] in ROWS}

    def measurements(self, claims: Iterable[Claim]) -> Measurements:
        """Return a measurement of every number that claims ask of a run."""
        return {entry: self._entry(entry[-1], entry[:2], entry[2]) for entry in asked_by(claims)}

    def _entry(self, measure: str, row: Row, benchmark: str) -> Measurement:
        """Return the measurement of a row on a benchmark, or what is missing for it."""
        if measure == "seconds":
            timing = self.timings.get((*row, benchmark))
            if timing is None:
                return Measurement(missing=(f"a timing job of {' '.join(row)} on {benchmark}",))
            cells, missing = self._take(row, benchmark, {row: (timing.seed,)})
            return Measurement(np.array([timing.per_query]), cells=(cells,), missing=missing)
        rows = [row, *(SINGLE_CALLS if measure in _BY_DIFFICULTY else ())]
        seeds = self.several if measure == "seed_mean" else self.seeds
        taken = [self._take(needed, benchmark, seeds) for needed in rows]
        if missing := tuple(text for _, texts in taken for text in texts):
            return Measurement(missing=missing)
        groups = tuple(group for group, _ in taken)
        cells, *singles = groups
        if measure.startswith(_OF_TRAININGS):
            return Measurement(np.array([_of_training(cells, measure)]), cells=groups)
        if measure == "depth_by_difficulty":
            return Measurement(*_correlation(_sums(cells, "depth")[0], _wrong(singles)), groups)
        tops, bottoms = _sums(cells, "accuracy" if measure in ("seed_mean", "hard_accuracy") else measure)
        if measure == "hard_accuracy":
            bottoms = bottoms * (_wrong(singles) >= _HARD)
            tops = tops * bottoms
        return Measurement(*leave_one_out(tops, bottoms), groups)

    def _take(self, row: Row, benchmark: str, seeds: Seeds) -> tuple[Cells, tuple[str, ...]]:
        """Return the cells of a row with the wanted seeds; if any is missing, no cell and the missing ones in words."""
        wanted = seeds.get(row, ())
        cells = tuple(cell for cell in self.cells.get((*row, benchmark), ()) if cell.run.seed in wanted)
        absent = sorted(set(wanted) - {cell.run.seed for cell in cells})
        if cells and not absent:
            return cells, ()
        lost = f"seed {'/'.join(map(str, absent))}" if absent else "which the preset does not have"
        return (), (f"{' '.join(row)} on {benchmark}, {lost}",)


class Measurement(NamedTuple):
    """A measure of a row on a benchmark, of a run or of each of many samples."""

    whole: Array = _NO_VALUES  # of each training, shape (..., trainings)
    without: Array = _NO_VALUES  # the same without each question, shape (..., trainings, questions); else empty
    cells: tuple[Cells, ...] = ()  # that were read, those of the row first
    missing: tuple[str, ...] = ()  # what was not run, in words


Measurements: TypeAlias = Mapping[Asked, Measurement]


def asked_by(claims: Iterable[Claim]) -> list[Asked]:
    """Return method, backbone, benchmark and measure of every number that claims ask of a run, each once."""
    asked: dict[Asked, None] = {}
    for claim in claims:
        for arguments in claim.parts() if claim.holds else ():
            claim.quantity(_Asked(asked), *arguments)
    return list(asked)


class _Asked(Numbers):
    """Collects which numbers are asked for."""

    def __init__(self, asked: dict[Asked, None]) -> None:
        self._asked = asked

    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Any:
        benchmarks = PAPER.benchmarks if benchmark in (AVERAGE, OVERALL) else (benchmark,)
        names = {"cost": ("cost", "cost_total"), **dict.fromkeys(_OF_SEEDS, ("seed_mean",))}.get(measure, (measure,))
        self._asked |= dict.fromkeys((*row, key, name) for key in benchmarks for name in names)
        return (np.nan,) if measure == "seeds" else np.nan


def seeds_of(preset: config.Preset) -> tuple[Seeds, Seeds]:
    """Return the seeds of every row on any benchmark, by a preset and by the table of seeds."""
    every = Selection(methods=tuple(config.methods())).cells(preset), artefact("seed_variance").cells_of(preset)
    usual, several = (by_row(((cell.method, cell.backbone), cell.seed) for cell in cells) for cells in every)
    return usual, several


def by_row(seeds: Iterable[tuple[Row, int]]) -> Seeds:
    """Return the seeds of each row, ascending."""
    grouped: defaultdict[Row, set[int]] = defaultdict(set)
    for row, seed in seeds:
        grouped[row].add(seed)
    return {row: tuple(sorted(numbers)) for row, numbers in grouped.items()}


class Measured(Numbers):
    """Numbers of a run; with a ``jackknife`` also those without each question and training (:class:`Jackknife`)."""

    def __init__(self, known: Measurements, jackknife: Jackknife = _AS_MEASURED, *, all_calls: bool = False) -> None:
        self._known, self._jackknife = known, jackknife
        self._cost = "cost_total" if all_calls else "cost"
        #: What was asked for and the entries read for it, in order; what was run and yet says nothing.
        self.measures: dict[str, None] = {}
        self.entries: list[Measurement] = []
        self.unknown: dict[str, None] = {}

    @property
    def used(self) -> dict[Cells, None]:
        """Return the groups of cells that were read."""
        return dict.fromkeys(cells for entry in self.entries for cells in entry.cells)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return what was not run, in words."""
        return tuple(dict.fromkeys(text for entry in self.entries for text in entry.missing))

    @property
    def of_items(self) -> bool:
        """Return whether all measures are computed from questions, so that the jackknife gives an interval."""
        return all(entry.without.size for entry in self.entries)

    @property
    def jackknife(self) -> Jackknife:
        """Return a jackknife over the questions and trainings that were read."""
        return Jackknife(
            {cells[0].run.benchmark: len(cells[0].items) for cells in self.used},
            {cells: len(cells) for cells in self.used},
        )

    @property
    def published_sizes(self) -> dict[Any, int]:
        """Return the sample sizes of the published values: questions by test set, trainings by group of cells."""
        rows = {(cells[0].run.method, cells[0].run.backbone) for cells in self.used}
        printed = [row for row in PAPER.rows if (row.method, row.backbone) in rows] or PAPER.rows
        trainings = 1 if _SEVERAL.isdisjoint(self.measures) else _PUBLISHED_SEEDS
        sizes: dict[Any, int] = dict.fromkeys(self.used, trainings)
        for key in {cells[0].run.benchmark for cells in self.used}:
            accuracies = [row.accuracies[key] for row in printed]
            counts = [count for accuracy in accuracies for count in (*accuracy.counts, accuracy.near) if count]
            sizes[key] = min(count.n for count in counts)
        return sizes

    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Any:
        """Return the value that the run measured; ``table``, which names one of the paper, makes no difference."""
        self.measures[measure] = None
        if measure in _OF_SEEDS:
            return _OF_SEEDS[measure](*self._by_seed(row))
        if benchmark in (AVERAGE, OVERALL):
            return mean(*[self._value(measure, row, key, table) for key in PAPER.benchmarks])
        entry = self._entry(self._cost if measure == "cost" else measure, row, benchmark)
        if entry.missing:
            return np.nan
        value = self._jackknife.mean(entry.whole, entry.without, benchmark, entry.cells[0])
        if np.isnan(value).all():
            of = "in the training of" if measure.startswith(_OF_TRAININGS) else "of"
            self.unknown[f"{measure} {of} {row[0]} on {benchmark}"] = None
        return value

    def seed_lead(self, row: Row, other: Row) -> Ordered:
        """Return the smallest lead of a row over another with the same seed, which both must have."""
        lead = super().seed_lead(row, other)
        seeds = {
            tuple(cell.run.seed for cell in cells)
            for side in (row, other)
            for cells in self._entry("seed_mean", side, next(iter(PAPER.benchmarks))).cells
        }
        if len(seeds) > 1:
            self.entries.append(Measurement(missing=(f"the same seeds of {row[0]} and {other[0]}",)))
        return lead

    def _by_seed(self, row: Row) -> Iterator[Value]:
        """Iterate over the averages over the benchmarks of each seed."""
        entries = {key: self._entry("seed_mean", row, key) for key in PAPER.benchmarks}
        if any(entry.missing for entry in entries.values()):
            yield np.nan
            return
        for place in range(next(iter(entries.values())).whole.shape[-1]):
            alone = [(entry.whole[..., [place]], entry.without[..., [place], :], key) for key, entry in entries.items()]
            yield mean(*(self._jackknife.mean(*values) for values in alone))

    def _entry(self, measure: str, row: Row, benchmark: str) -> Measurement:
        entry = self._known[*row, benchmark, measure]
        self.entries.append(entry)
        return entry


def _sums(cells: Cells, measure: str) -> tuple[Array, Array]:
    """Return numerators and denominators of a measure, shape (trainings, n); zeros for a training without a value."""
    if of_cell := _OF_ITEMS.get(measure):
        values = np.array([of_cell(cell) for cell in cells])
        return values, np.ones_like(values)
    nothing = np.zeros(len(cells[0].items))
    ratios = [_ratios(cell, measure).get(measure, Ratio(nothing, nothing)) for cell in cells]
    tops = [(100 if ratio.is_share else 1) * ratio.numerators for ratio in ratios]
    return np.array(tops), np.array([ratio.denominators for ratio in ratios])


def _ratios(cell: FinishedCell, measure: str) -> Mapping[str, Ratio]:
    """Return the ratios of a cell that include a measure: those of calls, of stored contributions, or of gates."""
    if measure.startswith(("later_prompt", "calls_")):
        return traces.of_calls(cell)
    return traces.redundancy(cell) if measure.startswith("redundancy_") else traces.of_gates(cell)


def _wrong(rows: Sequence[Cells]) -> Array:
    """Return the percentage of the rows that answer wrong, by question."""
    return 100 - np.array([_sums(cells, "accuracy")[0].mean(axis=0) for cells in rows]).mean(axis=0)


def _of_training(cells: Cells, measure: str) -> float:
    """Return a measure of the training log, over all updates and seeds; not a number without a log.

    Of an entropy the lowest; of ``training_steps`` the mean over seeds of their sum; else steps over trajectories.
    """
    if not all((cell.folder / TRAINING).is_file() for cell in cells):
        return np.nan
    log = pd.concat([updates(cell) for cell in cells], keys=range(len(cells)))
    by_seed = log.reindex(columns=[measure, "steps", "trajectories"]).groupby(level=0)
    if measure.startswith("entropy_"):
        return float(by_seed[measure].min().min(skipna=False))
    steps, trajectories = by_seed[["steps", "trajectories"]].sum(min_count=1).mean(skipna=False)
    return float(steps if measure == "training_steps" else steps / trajectories)


def _correlation(depths: Array, wrong: Array) -> tuple[Array, Array]:
    """Return Spearman's correlation of steps and difficulty by training, and again without each question."""
    n = len(wrong)
    whole = np.array([_rank_correlation(depth, wrong) for depth in depths])
    if n == 1:
        return whole, np.broadcast_to(whole[:, np.newaxis], depths.shape)
    left = np.nonzero(~np.eye(n, dtype=bool))[1].reshape(n, n - 1)
    return whole, np.array([_rank_correlation(depth[left], wrong[left]) for depth in depths])


def _rank_correlation(first: Array, second: Array) -> Array:
    ranks = [rankdata(side, axis=-1) for side in (first, second)]
    own_rank, other = (rank - rank.mean(axis=-1, keepdims=True) for rank in ranks)
    spread = np.sqrt((own_rank**2).sum(axis=-1) * (other**2).sum(axis=-1))
    return np.divide((own_rank * other).sum(axis=-1), spread, out=np.zeros_like(spread), where=spread > 0)

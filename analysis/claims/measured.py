"""The numbers of a run: over finished cells, once as measured and with each question and training left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from analysis import traces
from analysis.claims.numbers import (
    AVERAGE,
    OVERALL,
    PAPER,
    SINGLE_CALLS,
    Array,
    Number,
    Numbers,
    Row,
    Value,
    least,
    mean,
    most,
)
from analysis.frames import Key
from analysis.registry import Selection, artefact
from analysis.results import TRAINING, FinishedCell
from analysis.statistics import Jackknife, Ratio
from analysis.timings import Timing, pflops
from analysis.training_log import updates
from harness.runner import config

Seeds: TypeAlias = Mapping[Row, tuple[int, ...]]
#: Some seeds of one method with one backbone on one benchmark, in order of seed.
Cells: TypeAlias = tuple[FinishedCell, ...]
# By measure: one value a question.
_OF_ITEMS: Mapping[str, Callable[[FinishedCell], Array]] = {
    "accuracy": lambda cell: 100.0 * cell.items["correct"].to_numpy(),
    "cost": lambda cell: cell.items["cost"].to_numpy(),
    "cost_total": lambda cell: cell.items["cost_total"].to_numpy(),
    "flops": lambda cell: pflops(cell).to_numpy(),
    "depth": lambda cell: cell.items["depth"].to_numpy(dtype=float),
    "six_steps": lambda cell: 100.0 * (cell.items["depth"] == 6).to_numpy(),
}
# By the beginning of the name of a ratio where to find it; all others are of the gates.
_OF_RATIOS: Mapping[str, Callable[[FinishedCell], Mapping[str, Ratio]]] = {
    "later_prompt": traces.of_calls,
    "calls_": traces.of_calls,
    "redundancy_": traces.redundancy,
}
_EXTREMES: Mapping[str, Callable[..., Value]] = {"seed_lowest": least, "seed_highest": most}
_OF_TRAININGS = ("training_", "entropy_")
# A question is hard that so many percent of the single-call rows get wrong.
_HARD = 50
_AS_MEASURED = Jackknife({}, {})
# Of these the paper prints a mean over some trainings, of everything else one training.
_SEVERAL, _PUBLISHED_SEEDS = {"seed_mean"}, 3


@dataclass(frozen=True)
class Run:
    """What claims are compared with: finished cells and timings, maybe none, and the seeds that every row must have."""

    cells: Mapping[Key, Cells] = field(default_factory=dict)
    timings: Mapping[Key, Timing] = field(default_factory=dict)
    seeds: Seeds = field(default_factory=dict)  # of the preset, a single one of a row that learns nothing
    several: Seeds = field(default_factory=dict)  # of the table of seeds, for statements about trainings

    @property
    def simulated(self) -> bool:
        """Whether the backbones were simulated."""
        return any(cell.run.simulated for cells in self.cells.values() for cell in cells)


def seeds_of(preset: config.Preset) -> tuple[Seeds, Seeds]:
    """The seeds of every row on any benchmark, by a preset and by the table of seeds."""
    every = Selection(methods=tuple(config.methods())).cells(preset)
    return _by_row(every), _by_row(artefact("seed_variance").cells_of(preset))


def _by_row(cells: Sequence[config.Cell]) -> Seeds:
    found: dict[Row, set[int]] = {(cell.method, cell.backbone): set() for cell in cells}
    for cell in cells:
        found[cell.method, cell.backbone].add(cell.seed)
    return {row: tuple(sorted(seeds)) for row, seeds in found.items()}


class Measured(Numbers):
    """The side of a run: as measured, and of a ``jackknife`` also with each question and training left out."""

    def __init__(self, run: Run, jackknife: Jackknife = _AS_MEASURED, *, all_calls: bool = False) -> None:
        self._run, self._jackknife = run, jackknife
        self._names = {"cost": "cost_total" if all_calls else "cost", "seed_mean": "accuracy"}
        #: What was asked for, the cells read for it, what was not run, and what was run and yet says nothing; in order.
        self.measures: dict[str, None] = {}
        self.used: dict[Cells, None] = {}
        self.missing: dict[str, None] = {}
        self.unknown: dict[str, None] = {}

    @property
    def of_items(self) -> bool:
        """Return whether all measures are of questions, so that leaving questions out gives an interval."""
        return not any(measure.startswith(("seconds", *_OF_TRAININGS)) for measure in self.measures)

    @property
    def jackknife(self) -> Jackknife:
        """Return a jackknife over the questions and trainings that were read."""
        return Jackknife(
            {cells[0].run.benchmark: len(cells[0].items) for cells in self.used},
            {cells: len(cells) for cells in self.used},
        )

    @property
    def published_sizes(self) -> dict[Any, int]:
        """Return the numbers of questions and trainings behind the published values, by test set and measurement."""
        rows = {(cells[0].run.method, cells[0].run.backbone) for cells in self.used}
        printed = [one for one in PAPER.rows if (one.method, one.backbone) in rows] or PAPER.rows
        trainings = 1 if _SEVERAL.isdisjoint(self.measures) else _PUBLISHED_SEEDS
        found: dict[Any, int] = dict.fromkeys(self.used, trainings)
        for key in {cells[0].run.benchmark for cells in self.used}:
            accuracies = [row.accuracies[key] for row in printed]
            counts = [count for one in accuracies for count in (*one.counts, one.near) if count]
            found[key] = min(count.n for count in counts)
        return found

    def seed_lead(self, row: Row, other: Row) -> Value:
        """Return the smallest lead among the seeds that were trained."""
        return self._extreme(least, row, other)

    def _value(self, measure: str, row: Row, benchmark: str, table: str) -> Any:
        """There is one run, whichever table of the paper is meant."""
        self.measures[measure] = None
        if measure in _EXTREMES:
            return self._extreme(_EXTREMES[measure], row)
        if benchmark in (AVERAGE, OVERALL):
            return mean(*[self._value(measure, row, one, table) for one in PAPER.benchmarks])
        if measure == "seconds":
            return self._seconds(row, benchmark)
        cells = self._take(row, benchmark, self._run.several if measure == "seed_mean" else self._run.seeds)
        by_difficulty = measure in ("depth_by_difficulty", "hard_accuracy")
        singles = [self._take(one, benchmark, self._run.seeds) for one in SINGLE_CALLS if by_difficulty]
        if not cells or not all(singles):
            return np.nan
        if measure.startswith(_OF_TRAININGS):
            value: Number = _of_training(cells, measure)
        elif measure == "depth_by_difficulty":
            value = self._correlation(cells, singles)
        elif measure == "hard_accuracy":
            right, ones = _sums(cells, "accuracy")
            hard = ones * (_wrong(singles) >= _HARD)
            value = self._jackknife.ratio(right * hard, hard, benchmark, cells)
        else:
            value = self._jackknife.ratio(*_sums(cells, self._names.get(measure, measure)), benchmark, cells)
        if np.isnan(value).all():
            of = "in the training of" if measure.startswith(_OF_TRAININGS) else "of"
            self.unknown[f"{measure} {of} {row[0]} on {benchmark}"] = None
        return value

    def _correlation(self, cells: Cells, singles: Sequence[Cells]) -> Array:
        """Spearman's of steps and difficulty, the share of the main table's single-call rows that answer wrong."""
        wrong = _wrong(singles)
        depths, _ = _sums(cells, "depth")
        n, benchmark = len(wrong), cells[0].run.benchmark
        whole = np.array([_rank_correlation(depth, wrong) for depth in depths])
        without = np.broadcast_to(whole[:, np.newaxis], depths.shape)
        if benchmark in self._jackknife.questions and n > 1:
            left = np.nonzero(~np.eye(n, dtype=bool))[1].reshape(n, n - 1)
            without = np.array([_rank_correlation(depth[left], wrong[left]) for depth in depths])
        return self._jackknife.mean(whole, without, benchmark, cells)

    def _extreme(self, choose: Callable[..., Value], *rows: Row) -> Value:
        columns = [[self._take(row, one, self._run.several) for one in PAPER.benchmarks] for row in rows]
        if not all(map(all, columns)):
            return np.nan
        if len({self._run.several[row] for row in rows}) > 1:
            return self._lacks(f"the same seeds of {' and '.join(method for method, _ in rows)}")

        def average(of_row: Sequence[Cells], seed: int) -> Number:
            verdicts = ((cells[0].run.benchmark, _sums(cells, "accuracy")[0][[seed]]) for cells in of_row)
            return mean(*[self._jackknife.ratio(right, None, benchmark) for benchmark, right in verdicts])

        of_seeds = [[average(of_row, seed) for of_row in columns] for seed in range(len(columns[0][0]))]
        return choose(*[first - sum(other) for first, *other in of_seeds])

    def _seconds(self, row: Row, benchmark: str) -> Value:
        timing = self._run.timings.get((*row, benchmark))
        if timing is None:
            return self._lacks(f"a timing job of {' '.join(row)} on {benchmark}")
        self._take(row, benchmark, {row: (timing.seed,)})
        return timing.per_query

    def _take(self, row: Row, benchmark: str, seeds: Seeds) -> Cells:
        wanted = seeds.get(row, ())
        found = tuple(cell for cell in self._run.cells.get((*row, benchmark), ()) if cell.run.seed in wanted)
        absent = sorted(set(wanted) - {cell.run.seed for cell in found})
        if absent or not found:
            lost = f"seed {'/'.join(map(str, absent))}" if absent else "which the preset does not have"
            self._lacks(f"{' '.join(row)} on {benchmark}, {lost}")
            return ()
        self.used[found] = None
        return found

    def _lacks(self, what: str) -> float:
        self.missing[what] = None
        return np.nan


@cache
def _sums(cells: Cells, measure: str) -> tuple[Array, Array]:
    """What a measure is a ratio of, each of shape (seeds, n); a seed without a part in it has zeros."""
    if of := _OF_ITEMS.get(measure):
        values = np.array([of(cell) for cell in cells])
        return values, np.ones_like(values)
    nothing = np.zeros(len(cells[0].items))
    each = [_ratios(cell, measure).get(measure, Ratio(nothing, nothing)) for cell in cells]
    tops = [(100 if one.is_share else 1) * one.numerators for one in each]
    return np.array(tops), np.array([one.denominators for one in each])


def _ratios(cell: FinishedCell, measure: str) -> Mapping[str, Ratio]:
    for beginning, of in _OF_RATIOS.items():
        if measure.startswith(beginning):
            return of(cell)
    return traces.ratios(traces.read(cell))


def _wrong(rows: Sequence[Cells]) -> Array:
    """Return the percentage of some rows that answers wrong, by question."""
    wrong: Array = 100 - np.mean([_sums(one, "accuracy")[0].mean(axis=0) for one in rows], axis=0)
    return wrong


def _of_training(cells: Cells, measure: str) -> float:
    """Lowest of any update and seed; steps of all updates, mean over seeds; steps over trajectories."""
    if not all((cell.folder / TRAINING).is_file() for cell in cells):
        return np.nan
    log = pd.concat([updates(cell) for cell in cells], keys=range(len(cells)))
    by_seed = log.reindex(columns=[measure, "steps", "trajectories"]).groupby(level=0)
    if measure.startswith("entropy_"):
        return float(by_seed[measure].min().min(skipna=False))
    steps, trajectories = by_seed[["steps", "trajectories"]].sum(min_count=1).mean(skipna=False)
    return float(steps if measure == "training_steps" else steps / trajectories)


def _rank_correlation(first: Array, second: Array) -> Array:
    ranks = [rankdata(side, axis=-1) for side in (first, second)]
    own, other = (one - one.mean(axis=-1, keepdims=True) for one in ranks)
    spread = np.sqrt((own**2).sum(axis=-1) * (other**2).sum(axis=-1))
    return np.divide((own * other).sum(axis=-1), spread, out=np.zeros_like(spread), where=spread > 0)

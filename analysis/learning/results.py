"""Results of the study in the cells of a preset: learned cells by seed, single backbones, and its answers.

An answer is a paired difference with an interval over seeds: both sides answered the same questions with the same seed
(a single backbone, which has no seed of its own, counts for all of them), so a difference of means is the mean of the
differences question by question.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.learning import measures
from analysis.learning.study import BEST_SINGLE, PATH, RANDOM, Contrast, Study, load
from analysis.results import TRAINING, Cell, read_all, read_table
from analysis.statistics import CONFIDENCE
from analysis.training import updates
from harness.errors import UserError
from harness.runner.config import POOL, methods

_DECISIONS = ("item_id", "step", "name", "choice", "options", "log_prob")

Values = Mapping[str, float]


class Row(NamedTuple):
    """What the report has a line for: a method with its backbone, or with the pool."""

    method: str
    backbone: str

    def title(self, method_title: str) -> str:
        """How a reader knows it; the pool goes without saying."""
        return method_title if self.backbone == POOL else f"{method_title} ({self.backbone})"


class Learned(NamedTuple):
    """One seed of a row that learned, on one benchmark.

    Attributes:
        values: By key of :data:`analysis.learning.measures.MEASURES`; what does not apply is absent.
        backbones: Share of the steps in percent by backbone, the most used first; empty where no policy chose.
        log: The training log as of :func:`analysis.training.updates`; empty where nothing was trained.
    """

    values: Values
    backbones: Values
    log: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Column:
    """Everything measured on one benchmark: its title, how many questions, what learned by row and seed, and singles.

    Learned rows are in the order of the study; a single backbone has accuracy, utility and cost of one call.
    """

    title: str
    n: int
    learned: Mapping[Row, Mapping[int, Learned]]
    singles: Mapping[str, Values]

    @property
    def best_single(self) -> str | None:
        """The most accurate single backbone, the cheaper of equals; ``None`` where none was run."""
        return min(self.singles, key=self._rank, default=None)

    def dominator(self, backbone: str) -> str | None:
        """The best backbone that is at least as accurate as this one and cheaper, on these very questions."""
        own = self.singles.get(backbone)
        better = [
            key
            for key, other in self.singles.items()
            if own and other["accuracy"] >= own["accuracy"] and other["cost_total"] < own["cost_total"]
        ]
        return min(better, key=self._rank, default=None)

    @property
    def trained(self) -> dict[Row, dict[int, pd.DataFrame]]:
        """The training logs by row and seed, without rows that were left as initialised."""
        logs = {row: {seed: one.log for seed, one in of.items() if len(one.log)} for row, of in self.learned.items()}
        return {row: by_seed for row, by_seed in logs.items() if by_seed}

    def _rank(self, backbone: str) -> tuple[float, float, str]:
        values = self.singles[backbone]
        return -values["accuracy"], values["cost_total"], backbone


class Difference(NamedTuple):
    """One contrast by one measure on one benchmark.

    Attributes:
        row: Side ``a`` with its backbone, or with the pool; the other side, where it is a method, has the same.
        seeds: Difference of each seed, in the unit of the measure.
        mean: Over the seeds.
        reach: Half the width of the 95 % t interval; ``None`` for a single seed.
    """

    contrast: Contrast
    row: Row
    measure: str
    benchmark: str
    seeds: Mapping[int, float]
    mean: float
    reach: float | None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the study found.

    Attributes:
        cells: What it was found in.
        unfinished: How many cells of the run are missing.
        columns: The measures, by benchmark.
        differences: The answers, in the order of the declaration.
        unanswered: Contrasts for which these cells do not suffice, with benchmarks and backbones.
    """

    study: Study
    cells: tuple[Cell, ...]
    unfinished: int
    columns: Mapping[str, Column]
    differences: Sequence[Difference]
    unanswered: Sequence[str]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every training seed of any learned cell, ascending."""
        learned = [one for column in self.columns.values() for one in column.learned.values()]
        return tuple(sorted({seed for one in learned for seed in one}))

    @property
    def titles(self) -> dict[Row, str]:
        """How a reader knows the rows, single backbones among them."""
        keys = {Row(cell.run.method, cell.run.backbone): cell.run.method_title for cell in self.cells}
        return {row: row.title(method_title) for row, method_title in keys.items()}


def build(folders: Iterable[Path], declaration: Path = PATH) -> Report:
    """Measure the finished cells of a run and answer the questions of the study as far as they allow.

    Args:
        folders: Cells of one preset, in any order; those not finished are counted and left out.
        declaration: The study.

    Raises:
        UserError: A cell cannot be read, the cells do not belong together, none has learned anything, or the
            declaration is wrong.
    """
    study, whole = load(declaration), list(folders)
    cells = read_all(folder for folder in whole if (folder / "run.json").is_file())
    keys = dict.fromkeys(cell.run.benchmark for cell in cells)
    columns = {key: _column([cell for cell in cells if cell.run.benchmark == key], study) for key in keys}
    if not any(column.learned for column in columns.values()):
        raise UserError(
            "no cell of a method that learns among the finished ones; run `snakemake --cores all "
            f"reports/{cells[0].run.preset}/learning.md`, or name such a method under `methods` of the preset"
        )
    found = [one for contrast in study.contrasts for one in _answers(contrast, columns, study)]
    missing = []
    for contrast in study.contrasts:
        answered = {(one.benchmark, one.row) for one in found if one.contrast is contrast}
        asked = [(key, row) for key in contrast.benchmarks if key in columns for row in _rows(contrast.a, columns)]
        lacking = [pair for pair in asked if pair not in answered]
        if lacking:
            names = (key if row.backbone == POOL else f"{key} {row.backbone}" for key, row in lacking)
            missing.append(f"{contrast.name} ({', '.join(names)})")
    return Report(study, cells, len(whole) - len(cells), columns, found, missing)


def interval(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % t interval of the mean of some values; ``None`` for fewer than two."""
    from scipy.stats import t

    if len(values) < 2:
        return None
    quantile = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return quantile * stdev(values) / math.sqrt(len(values))


def at_depth(points: Sequence[tuple[float, float]], depth: float) -> float | None:
    """A value between measured depths, on the straight line between its neighbours; ``None`` outside of them."""
    ordered = sorted(points)
    if not ordered or not ordered[0][0] <= depth <= ordered[-1][0]:
        return None
    depths, values = zip(*ordered, strict=True)
    return float(np.interp(depth, depths, values))


def _column(cells: Sequence[Cell], study: Study) -> Column:
    learned: dict[Row, dict[int, Learned]] = {}
    place = {method: number for number, method in enumerate(methods())}
    for cell in sorted(cells, key=lambda cell: (place.get(cell.run.method, len(place)), _row(cell), cell.run.seed)):
        if (cell.folder / TRAINING).is_file():
            learned.setdefault(_row(cell), {})[cell.run.seed] = _learned(cell, study)
    singles = {
        cell.run.backbone: measures.of_items(cell.items, study.cost_weight)
        for cell in cells
        if cell.run.method == study.single
    }
    return Column(cells[0].run.benchmark_title, cells[0].run.data.n_test, learned, singles)


def _row(cell: Cell) -> Row:
    return Row(cell.run.method, cell.run.backbone)


def _learned(cell: Cell, study: Study) -> Learned:
    decisions, log = read_table(cell.folder / "decisions.parquet", _DECISIONS), updates(cell)
    values = {
        **measures.of_items(cell.items, study.cost_weight),
        **measures.of_answers(read_table(cell.folder / "items.parquet", ("depth", "utility"))),
        **measures.of_memory(decisions, cell.run.data.n_test),
        **measures.of_choices(decisions),
        **measures.of_training(log, study.collapsed_entropy),
    }
    return Learned(values, measures.shares(decisions, "backbone"), log)


def _rows(method: str, columns: Mapping[str, Column]) -> list[Row]:
    """Those of a method on any benchmark; where it was not run at all, the pool stands for what is missing."""
    found = dict.fromkeys(row for column in columns.values() for row in column.learned if row.method == method)
    return list(found) or [Row(method, POOL)]


def _answers(contrast: Contrast, columns: Mapping[str, Column], study: Study) -> Iterator[Difference]:
    for row in _rows(contrast.a, columns):
        for benchmark in contrast.benchmarks:
            for measure in contrast.measures if benchmark in columns else ():
                seeds = dict(_by_seed(contrast, row, measure, columns[benchmark], study))
                if seeds:
                    values = list(seeds.values())
                    yield Difference(contrast, row, measure, benchmark, seeds, fmean(values), interval(values))


def _by_seed(contrast: Contrast, row: Row, measure: str, column: Column, study: Study) -> Iterator[tuple[int, float]]:
    for seed, one in column.learned.get(row, {}).items():
        own = one.values.get(measure)
        other = _other(Row(contrast.b, row.backbone), column, study, seed, one.values["depth"]).get(measure)
        # An update that never came is no number to subtract.
        if own is not None and other is not None and math.isfinite(own) and math.isfinite(other):
            yield seed, own - other


def _other(row: Row, column: Column, study: Study, seed: int, depth: float) -> Values:
    """What one seed is compared with: the row itself, or what it stands for."""
    if row.method == BEST_SINGLE:
        return column.singles[column.best_single] if column.best_single else {}
    if row.method == study.single:
        return column.singles.get(row.backbone, {})
    rows = [Row(method, row.backbone) for method in study.random] if row.method == RANDOM else [row]
    found = [one.values for row in rows if (one := column.learned.get(row, {}).get(seed))]
    if row.method != RANDOM:
        return found[0] if found else {}
    keys = dict.fromkeys(key for one in found for key in one)
    at = {key: at_depth([(one["depth"], one[key]) for one in found if key in one], depth) for key in keys}
    return {key: value for key, value in at.items() if value is not None}

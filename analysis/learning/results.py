"""The study of learning: what the cells of a run show, seed by seed, and the answers to the questions of the study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

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
_PLACE = ["benchmark", "method", "backbone", "seed"]
_SHARE = "backbone_share"


class Row(NamedTuple):
    """What the report has a line for: a method with its backbone, or with the pool."""

    method: str
    backbone: str

    def title(self, method_title: str) -> str:
        """How a reader knows it; the pool goes without saying."""
        return method_title if self.backbone == POOL else f"{method_title} ({self.backbone})"


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


@dataclass(frozen=True)
class Report:
    """Everything the study found.

    Attributes:
        cells: What it was found in.
        unfinished: How many cells of the run are missing.
        values: One row a benchmark, method, backbone, seed and measure. Shares are in percent, utility in points, own
            utility in the unit of the method, costs in the paper's unit, entropies in nats. A method that routes stands
            under the backbone ``pool``; the rows of its measure ``backbone_share`` name one each, the most used first.
            A single backbone has no seed. A measure that does not apply has no row; ``collapse`` is ``inf`` where the
            choice never settled.
        logs: The training logs by benchmark, row and seed, without rows that were left as initialised.
    """

    study: Study
    cells: tuple[Cell, ...]
    unfinished: int
    values: pd.DataFrame
    logs: Mapping[str, Mapping[Row, Mapping[int, pd.DataFrame]]]

    @cached_property
    def learned(self) -> pd.DataFrame:
        """What learned: one row a benchmark, method, backbone and seed, one column a measure."""
        own = self.values[(self.values["method"] != self.study.single) & (self.values["measure"] != _SHARE)]
        places = pd.MultiIndex.from_frame(own[_PLACE].drop_duplicates())
        return own.pivot(index=_PLACE, columns="measure", values="value").reindex(places)

    @cached_property
    def singles(self) -> pd.DataFrame:
        """Accuracy, utility and cost of one call of the single backbones, by benchmark, the best first."""
        own = self.values[self.values["method"] == self.study.single]
        frame = own.pivot(index=["benchmark", "backbone"], columns="measure", values="value")
        if frame.empty:
            return frame
        return frame.sort_values(["accuracy", "cost_total", "backbone"], ascending=[False, True, True])

    @property
    def benchmarks(self) -> dict[str, str]:
        """Keys and titles."""
        return {cell.run.benchmark: cell.run.benchmark_title for cell in self.cells}

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Every training seed of any learned cell, ascending."""
        return tuple(sorted(set(self.learned.index.get_level_values("seed"))))

    @cached_property
    def titles(self) -> dict[Row, str]:
        """How a reader knows the rows, single backbones among them."""
        keys = {Row(cell.run.method, cell.run.backbone): cell.run.method_title for cell in self.cells}
        return {row: row.title(method_title) for row, method_title in keys.items()}

    def rows(self, benchmark: str) -> dict[Row, pd.DataFrame]:
        """What learned on a benchmark: by row, one line a seed of the report, without values where there is no cell."""
        own = self.learned[self.learned.index.get_level_values("benchmark") == benchmark].droplevel("benchmark")
        by_row = own.groupby(["method", "backbone"], sort=False)
        return {Row(*row): of.droplevel(["method", "backbone"]).reindex(self.seeds) for row, of in by_row}

    def shares(self, benchmark: str, method: str) -> dict[int, pd.Series]:
        """By seed the share of each backbone of the pool in the steps, the most used first; without undrawn ones."""
        own = self.values.query("benchmark == @benchmark and method == @method and measure == @_SHARE")
        return {seed: of.set_index("backbone")["value"] for seed, of in own.groupby("seed", sort=False)}

    def singles_of(self, benchmark: str) -> pd.DataFrame:
        """The single backbones of a benchmark, the most accurate first, the cheaper of equals."""
        return self.singles[self.singles.index.get_level_values("benchmark") == benchmark].droplevel("benchmark")

    def dominator(self, benchmark: str, backbone: str) -> str | None:
        """The best backbone that is at least as accurate as this one and cheaper, on these very questions."""
        singles = self.singles_of(benchmark)
        if backbone not in singles.index:
            return None
        own = singles.loc[backbone]
        better = (singles["accuracy"] >= own["accuracy"]) & (singles["cost_total"] < own["cost_total"])
        return next(iter(singles.index[better]), None)

    @cached_property
    def differences(self) -> list[Difference]:
        """The answers, in the order of the declaration."""
        return [one for contrast in self.study.contrasts for one in self._answers(contrast)]

    @property
    def unanswered(self) -> list[str]:
        """Contrasts for which these cells do not suffice, with benchmarks and backbones."""
        found = []
        for contrast in self.study.contrasts:
            answered = {(one.benchmark, one.row) for one in self.differences if one.contrast is contrast}
            asked = [(key, row) for key in contrast.benchmarks if key in self.benchmarks for row in self._of(contrast)]
            pairs = [pair for pair in asked if pair not in answered]
            lacking = [key if row.backbone == POOL else f"{key} {row.backbone}" for key, row in pairs]
            if lacking:
                found.append(f"{contrast.name} ({', '.join(lacking)})")
        return found

    def _of(self, contrast: Contrast) -> list[Row]:
        """Rows of its first side on any benchmark; where none was run, the pool stands for what is missing."""
        places = self.learned.index[self.learned.index.get_level_values("method") == contrast.a]
        return list(dict.fromkeys(Row(*row) for _, *row, _ in places)) or [Row(contrast.a, POOL)]

    def _answers(self, contrast: Contrast) -> Iterator[Difference]:
        for row in self._of(contrast):
            for benchmark in contrast.benchmarks:
                rows = self.rows(benchmark)
                if row not in rows:
                    continue
                own = rows[row]
                gaps = own - self._other(contrast.b, row, own, benchmark).reindex(index=own.index, columns=own.columns)
                for measure in contrast.measures:
                    # An update that never came is no number to subtract.
                    found = gaps[measure] if measure in gaps else pd.Series(dtype=float)
                    seeds = {seed: float(gap) for seed, gap in found.items() if math.isfinite(gap)}
                    if seeds:
                        values = list(seeds.values())
                        yield Difference(contrast, row, measure, benchmark, seeds, fmean(values), interval(values))

    def _other(self, side: str, row: Row, own: pd.DataFrame, benchmark: str) -> pd.DataFrame:
        """What each seed of a row is compared with: a method with the same backbone, or what the side stands for."""
        rows, singles = self.rows(benchmark), self.singles_of(benchmark)
        if side == RANDOM:
            randoms = [rows[key] for method in self.study.random if (key := Row(method, row.backbone)) in rows]
            points = {seed: pd.DataFrame([one.loc[seed] for one in randoms], range(len(randoms))) for seed in own.index}
            return pd.DataFrame({seed: _at(depth, points[seed]) for seed, depth in own["depth"].items()}, dtype=float).T
        if side in (BEST_SINGLE, self.study.single):
            backbone = row.backbone if side == self.study.single else next(iter(singles.index), None)
            known = singles.loc[backbone] if backbone in singles.index else pd.Series(dtype=float)
            return pd.DataFrame(dict.fromkeys(own.index, known)).T
        return rows.get(Row(side, row.backbone), pd.DataFrame(index=own.index))


def build(folders: Iterable[Path], declaration: Path = PATH) -> Report:
    """Measure the finished cells of a run for a study, which answers its questions as far as they allow.

    Args:
        folders: Cells of one preset, in any order; those not finished are counted and left out.
        declaration: The study.

    Raises:
        UserError: A cell cannot be read, the cells do not belong together, none has learned anything, or the
            declaration is wrong.
    """
    study, whole = load(declaration), list(folders)
    cells = read_all(folder for folder in whole if (folder / "run.json").is_file())
    place = {method: number for number, method in enumerate(methods())}
    keys = list(dict.fromkeys(cell.run.benchmark for cell in cells))
    logs: dict[str, dict[Row, dict[int, pd.DataFrame]]] = {key: {} for key in keys}
    rows: list[tuple[Any, ...]] = []

    def order(cell: Cell) -> tuple[Any, ...]:
        run = cell.run
        rank = len(place) + 1 if run.method == study.single else place.get(run.method, len(place))
        return keys.index(run.benchmark), rank, run.method, run.backbone, run.seed

    for cell in sorted(cells, key=order):
        run = cell.run
        if run.method == study.single:
            of_single = measures.of_items(cell.items, study.cost_weight)
            rows += [(run.benchmark, run.method, run.backbone, "", *value) for value in of_single.items()]
        elif (cell.folder / TRAINING).is_file():
            log, decisions = updates(cell), read_table(cell.folder / "decisions.parquet", _DECISIONS)
            values, shares = _measured(cell, log, decisions, study), measures.shares(decisions, "backbone")
            rows += [(run.benchmark, run.method, run.backbone, run.seed, *value) for value in values.items()]
            rows += [(run.benchmark, run.method, used, run.seed, _SHARE, share) for used, share in shares.items()]
            if len(log):
                logs[run.benchmark].setdefault(Row(run.method, run.backbone), {})[run.seed] = log
    found = Report(
        study, cells, len(whole) - len(cells), pd.DataFrame(rows, columns=[*_PLACE, "measure", "value"]), logs
    )
    if found.learned.empty:
        raise UserError(
            "no cell of a method that learns among the finished ones; run `snakemake --cores all "
            f"reports/{cells[0].run.preset}/learning.md`, or name such a method under `methods` of the preset"
        )
    return found


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


def _at(depth: float, points: pd.DataFrame) -> dict[str, float | None]:
    """Every measure of routers of several depths, interpolated at another."""
    known = {key: points[points[key].notna()] for key in points}
    return {key: at_depth(list(zip(of["depth"], of[key], strict=True)), depth) for key, of in known.items()}


def _measured(cell: Cell, log: pd.DataFrame, decisions: pd.DataFrame, study: Study) -> dict[str, float]:
    """By key of :data:`analysis.learning.measures.MEASURES`; what does not apply is absent."""
    return {
        **measures.of_items(cell.items, study.cost_weight),
        **measures.of_answers(read_table(cell.folder / "items.parquet", ("depth", "utility"))),
        **measures.of_memory(decisions, cell.run.data.n_test),
        **measures.of_choices(decisions),
        **measures.of_training(log, study.collapsed_entropy),
    }

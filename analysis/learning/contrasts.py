"""The answers of the study of learning: paired differences with an interval over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from analysis.learning.results import Column, Row, Values
from analysis.learning.study import BEST_SINGLE, RANDOM, Contrast, Study
from analysis.statistics import CONFIDENCE
from harness.runner.config import POOL


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


def differences(columns: Mapping[str, Column], study: Study) -> list[Difference]:
    """Every contrast that the cells at hand can answer, in the order of the declaration.

    Both sides of a difference answered the same questions with the same seed (a single backbone, which has no seed of
    its own, counts for all of them), so a difference of means is the mean of the differences question by question.
    """
    return [found for contrast in study.contrasts for found in _answers(contrast, columns, study)]


def unanswered(columns: Mapping[str, Column], study: Study) -> list[str]:
    """Contrasts without an answer for a row on a benchmark that was run, each with these benchmarks and backbones.

    The pool goes without saying, and so does the backbone where no row of the method was run.
    """
    missing = []
    for contrast in study.contrasts:
        answered = {(one.benchmark, one.row) for one in _answers(contrast, columns, study)}
        asked = [(key, row) for key in contrast.benchmarks if key in columns for row in _rows(contrast.a, columns)]
        open_ = [(key, row) for key, row in asked if (key, row) not in answered]
        names = [key if row.backbone == POOL else f"{key} {row.backbone}" for key, row in open_]
        if names:
            missing.append(f"{contrast.name} ({', '.join(names)})")
    return missing


def interval(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % t interval of the mean of some values; ``None`` for fewer than two."""
    from scipy.stats import t

    if len(values) < 2:
        return None
    quantile = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return quantile * stdev(values) / math.sqrt(len(values))


def at_depth(points: Sequence[tuple[float, float]], depth: float) -> float | None:
    """A value between measured depths, on the straight line between its neighbours.

    Args:
        points: Depth and value, in any order.
        depth: Where the value is wanted.

    Returns:
        ``None`` outside the measured depths: nothing is extrapolated.
    """
    ordered = sorted(points)
    if not ordered or not ordered[0][0] <= depth <= ordered[-1][0]:
        return None
    depths, values = zip(*ordered, strict=True)
    return float(np.interp(depth, depths, values))


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
        other = _other(Row(contrast.b, row.backbone), column, study, seed, one.values).get(measure)
        # An update that never came is no number to subtract.
        if own is not None and other is not None and math.isfinite(own) and math.isfinite(other):
            yield seed, own - other


def _other(row: Row, column: Column, study: Study, seed: int, own: Values) -> Values:
    """What one seed is compared with: the row itself, or what it stands for."""
    if row.method == BEST_SINGLE:
        return column.singles[column.best_single] if column.best_single else {}
    if row.method == study.single:
        return column.singles.get(row.backbone, {})
    if row.method == RANDOM:
        return _interpolated([Row(method, row.backbone) for method in study.random], column, seed, own["depth"])
    found = column.learned.get(row, {}).get(seed)
    return found.values if found else {}


def _interpolated(rows: Sequence[Row], column: Column, seed: int, depth: float) -> Values:
    """The values of some rows at a depth between theirs."""
    found = [column.learned.get(row, {}).get(seed) for row in rows]
    values = [one.values for one in found if one]
    keys = dict.fromkeys(key for one in values for key in one)
    at = {key: at_depth([(one["depth"], one[key]) for one in values if key in one], depth) for key in keys}
    return {key: value for key, value in at.items() if value is not None}

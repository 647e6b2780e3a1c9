"""The answers of the study of learning: paired differences with an interval over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from paper.learning.results import Column, Values
from paper.learning.study import BEST_SINGLE, RANDOM, Contrast, Study
from paper.statistics import CONFIDENCE


class Difference(NamedTuple):
    """One contrast by one measure on one benchmark.

    Attributes:
        seeds: Difference of each seed, in the unit of the measure.
        mean: Over the seeds.
        reach: Half the width of the 95 % t interval; ``None`` for a single seed.
    """

    contrast: Contrast
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
    """Contrasts without any answer on a benchmark that was run, each with the keys of these benchmarks."""
    missing = [
        (contrast.name, [key for key in contrast.benchmarks if key in columns and key not in answered])
        for contrast in study.contrasts
        for answered in [{one.benchmark for one in _answers(contrast, columns, study)}]
    ]
    return [f"{name} ({', '.join(keys)})" for name, keys in missing if keys]


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


def _answers(contrast: Contrast, columns: Mapping[str, Column], study: Study) -> Iterator[Difference]:
    for benchmark in contrast.benchmarks:
        for measure in contrast.measures if benchmark in columns else ():
            seeds = dict(_by_seed(contrast, measure, columns[benchmark], study))
            if seeds:
                values = list(seeds.values())
                yield Difference(contrast, measure, benchmark, seeds, fmean(values), interval(values))


def _by_seed(contrast: Contrast, measure: str, column: Column, study: Study) -> Iterator[tuple[int, float]]:
    for seed, one in column.learned.get(contrast.a, {}).items():
        own, other = one.values.get(measure), _other(contrast.b, measure, column, study, (seed, one.values))
        # An update that never came is no number to subtract.
        if own is not None and other is not None and math.isfinite(own) and math.isfinite(other):
            yield seed, own - other


def _other(b: str, measure: str, column: Column, study: Study, of: tuple[int, Values]) -> float | None:
    seed, values = of
    if b == BEST_SINGLE:
        return column.singles[column.best_single].get(measure) if column.best_single else None
    if b != RANDOM:
        found = column.learned.get(b, {}).get(seed)
        return found.values.get(measure) if found else None
    routers = [column.learned.get(method, {}).get(seed) for method in study.random]
    points = [(one.values["depth"], one.values[measure]) for one in routers if one and measure in one.values]
    return at_depth(points, values["depth"])

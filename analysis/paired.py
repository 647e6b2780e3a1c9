"""Two methods on the same items: what differs between them, how surely, and what these items could have shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from analysis.frames import KEY, Key, Results
from analysis.results import Cell
from analysis.statistics import Array, Drawn, Estimate, Z, estimate, ratios, resampled, wilson

ALPHA = 0.05
POWER = 0.8
ENDS = ("", "_low", "_high")
_MEASURES = ("difference", "cost_difference", "cost_ratio", "cost_ratio_all_calls")
COLUMNS = [
    *("n", *(f"{name}{end}" for name in _MEASURES for end in ENDS), "variance", "difference_first_seed"),
    *("first_alone", "second_alone", "p_exact", "odds_ratio", "cohens_g", "detectable"),
]
# An interval narrower than this has no width but for rounding.
_DUST = 1e-9


def compare(first: Sequence[Cell], second: Sequence[Cell]) -> dict[str, Any]:
    """First minus or over second on the same items: accuracy in points, costs, McNemar test of the first seeds."""
    # Percentile bootstrap: items are drawn for both, and apart from them the seeds of a method that has several.
    own, other = _values(first), _values(second)
    n, found = own.shape[2], _estimates(own, other)
    accuracy = found["difference"]
    if accuracy.high - accuracy.low <= _DUST:
        # Items that all differ alike are no certainty: the interval goes as far as as many without a miss reach.
        mean, reach = accuracy.mean, wilson(0, n)[1]
        accuracy = Estimate(mean, max(-1.0, mean - reach), min(1.0, mean + reach), (reach / Z) ** 2)
    found["difference"] = Estimate(*(100 * one for one in accuracy))
    alone, others = int((own[0, 0] > other[0, 0]).sum()), int((own[0, 0] < other[0, 0]).sum())
    return {
        "n": n,
        **{f"{name}{end}": one for name, of in found.items() for end, one in zip(ENDS, of[:3], strict=True)},
        "variance": accuracy.variance,
        "difference_first_seed": 100 * (alone - others) / n,
        "first_alone": alone,
        "second_alone": others,
        "p_exact": mcnemar(alone, others),
        "odds_ratio": alone / others if others else math.inf if alone else math.nan,
        "cohens_g": alone / (alone + others) - 0.5 if alone + others else 0.0,
        "detectable": 100 * detectable(own[0].mean(axis=0) - other[0].mean(axis=0)),
    }


def comparisons(results: Results, pairs: Mapping[Key, tuple[Key, Key]]) -> pd.DataFrame:
    """What :func:`compare` says of pairs of places, by the keys of the mapping; missing unless both were run."""
    found = {
        key: compare(results.trainings[first], results.trainings[second])
        for key, (first, second) in pairs.items()
        if first in results.trainings and second in results.trainings
    }
    return pd.DataFrame(
        [found.get(key, {}) for key in pairs], index=pd.MultiIndex.from_tuples(pairs, names=KEY), columns=COLUMNS
    )


def mcnemar(first: int, second: int) -> float:
    """P of the exact two-sided McNemar test, from the items that only one of two methods answered correctly."""
    from statsmodels.stats.contingency_tables import mcnemar as test

    return float(test([[0, first], [second, 0]], exact=True).pvalue)


def holm(p_values: pd.Series) -> pd.Series:
    """Holm's adjustment of p values that belong to one question; without those that are missing."""
    from statsmodels.stats.multitest import multipletests

    known = p_values.dropna()
    return known if known.empty else pd.Series(multipletests(known, ALPHA, method="holm")[1], known.index)


def detectable(differences: Array) -> float:
    """The smallest true mean difference that so many items show with 80 % power at two-sided 5 %, or infinity."""
    # Of a paired t test on differences by item; no mean can exceed the mean absolute difference.
    n = len(differences)
    needed = _effect(n) * math.sqrt(np.mean(differences**2)) if n > 1 else math.inf
    return needed if 0 < needed <= np.abs(differences).mean() else math.inf


@cache
def _effect(n: int) -> float:
    """In standard deviations. Half of a two-sided test: the other half is not a number for some ``n``."""
    from statsmodels.stats.power import TTestPower

    return float(TTestPower().solve_power(nobs=n, alpha=ALPHA / 2, power=POWER, alternative="larger"))


def _values(cells: Sequence[Cell]) -> Array:
    return np.array([[cell.items[name] for cell in cells] for name in ("correct", "cost", "cost_total")], dtype=float)


def _estimates(first: Array, second: Array) -> dict[str, Estimate]:
    def statistic(items: Drawn, *seeds: Drawn) -> Array:
        rest = iter(seeds)
        own, other = (ratios(one, None, items, next(rest) if one.shape[1] > 1 else None) for one in (first, second))
        factors = np.divide(own[1:], other[1:], out=np.full_like(own[1:], math.inf), where=other[1:] > 0)
        return np.concatenate([own[:2] - other[:2], factors])

    n = first.shape[2]
    counts = [n, *(one.shape[1] for one in (first, second) if one.shape[1] > 1)]
    points = statistic(*(np.arange(count)[np.newaxis] for count in counts))[:, 0]
    if n > 1:
        found = [estimate(float(one), row) for one, row in zip(points, resampled(counts, statistic), strict=True)]
    else:
        ends = ((0.0, 0.0), (-math.inf, math.inf), (0.0, math.inf), (0.0, math.inf))
        found = [Estimate(float(point), *end, math.inf) for point, end in zip(points, ends, strict=True)]
    return dict(zip(_MEASURES, found, strict=True))

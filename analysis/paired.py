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
from analysis.statistics import Array, Drawn, Estimate, estimate, means, resampled, wilson
from harness.errors import UserError

ALPHA = 0.05
POWER = 0.8
ENDS = ("", "_low", "_high")
_MEASURES = ("difference", "cost_difference", "cost_ratio", "cost_ratio_all_calls")
#: What a comparison says.
COLUMNS = [
    *("n", *(f"{name}{end}" for name in _MEASURES for end in ENDS), "variance", "difference_first_seed"),
    *("first_alone", "second_alone", "p_exact", "odds_ratio", "cohens_g", "detectable"),
]
# An interval narrower than this has no width but for rounding.
_DUST = 1e-9


def compare(first: Sequence[Cell], second: Sequence[Cell]) -> dict[str, Any]:
    """Compare two methods item by item; each is given as its cells, one a seed, in order of seed.

    Both are drawn on the same items: an item comes with all its answers, however many seeds gave one (percentile
    bootstrap). The seeds of a method that has several are drawn, too, apart from the items, so that the spread between
    its trainings is in the intervals as in those of :func:`analysis.statistics.accuracy`, with the same weakness at
    three seeds. A method without training has one seed and may meet one with several.

    Returns:
        ``n`` items; over all seeds with the ends of a 95 % interval (``_low``, ``_high``) ``difference`` in accuracy,
        first minus second in points (and ``variance``, of the fraction), ``cost_difference`` of a question,
        ``cost_ratio`` (first over second, infinite where the second cost nothing) by the calls that published costs
        count, and ``cost_ratio_all_calls``; of the first seed of each ``difference_first_seed`` in points,
        ``first_alone`` and ``second_alone``, the items that only the one answered correctly, ``p_exact`` of the
        two-sided McNemar test, ``odds_ratio`` and ``cohens_g``; ``detectable``, see :func:`detectable`, in points.

    Raises:
        UserError: They did not answer the same items.
    """
    for cell in (*first, *second):
        if not cell.items["item_id"].equals(first[0].items["item_id"]):
            raise UserError(
                f"{first[0].folder} ({len(first[0].items)} items) and {cell.folder} ({len(cell.items)} items) "
                "did not answer the same items; expected the same test set; run one of them again"
            )
    own, other = _values(first), _values(second)
    found = dict(zip(_MEASURES, _estimates(own, other), strict=True))
    right, n = own[0].mean(axis=0) - other[0].mean(axis=0), own.shape[2]
    accuracy = found["difference"]
    if accuracy.high - accuracy.low <= _DUST:
        # Items that all differ alike are no certainty: the interval goes as far as as many without a miss reach.
        reach = wilson(0, n)[1]
        accuracy = Estimate(accuracy.mean, max(-1.0, accuracy.mean - reach), min(1.0, accuracy.mean + reach), 0.0)
    found["difference"] = Estimate(100 * accuracy.mean, 100 * accuracy.low, 100 * accuracy.high, accuracy.variance)
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
        "detectable": 100 * detectable(right),
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
    """The smallest true mean difference that as many items show with 80 % power at a two-sided 5 %, or infinity.

    The test is taken for a paired t test whose standard deviation is the root mean square of the differences, that is
    of one seed the root of the share of discordant items. No mean can exceed the mean absolute difference, so where
    the solution does, even discordance that is all to one side would not have been enough.

    Args:
        differences: By item, between -1 and 1.
    """
    n = len(differences)
    needed = _effect(n) * math.sqrt(np.mean(differences**2)) if n > 1 else math.inf
    return needed if 0 < needed <= np.abs(differences).mean() else math.inf


@cache
def _effect(n: int) -> float:
    """In standard deviations, of ``n`` paired differences, at least two.

    Half of a two-sided test: a difference is shown where it lies. The other half adds next to nothing to the power, and
    the tail of its distribution is not a number for some ``n``, which leads the solver astray.
    """
    from statsmodels.stats.power import TTestPower

    return float(TTestPower().solve_power(nobs=n, alpha=ALPHA / 2, power=POWER, alternative="larger"))


def _values(cells: Sequence[Cell]) -> Array:
    """Verdicts, costs, and costs of all calls, by seed and item."""
    return np.array([[cell.items[name] for cell in cells] for name in ("correct", "cost", "cost_total")], dtype=float)


def _estimates(first: Array, second: Array) -> list[Estimate]:
    """Differences in accuracy and cost, and two ratios of costs; a single item leaves all of them open."""

    def statistic(items: Drawn, *seeds: Drawn, axis: int = -1) -> Array:
        rest = iter(seeds)
        of_first, of_second = (next(rest) if values.shape[1] > 1 else None for values in (first, second))
        own = [means(values, items, of_first, axis=axis) for values in first]
        other = [means(values, items, of_second, axis=axis) for values in second]
        ratios = [
            np.divide(cost, its, out=np.full_like(cost, math.inf), where=its > 0)
            for cost, its in zip(own[1:], other[1:], strict=True)
        ]
        return np.stack([own[0] - other[0], own[1] - other[1], *ratios])

    n = first.shape[2]
    counts = [n, *(values.shape[1] for values in (first, second) if values.shape[1] > 1)]
    points = statistic(*map(np.arange, counts))
    if n > 1:
        return [estimate(float(point), row) for point, row in zip(points, resampled(counts, statistic), strict=True)]
    ends = ((0.0, 0.0), (-math.inf, math.inf), (0.0, math.inf), (0.0, math.inf))
    return [Estimate(float(point), *end, math.inf) for point, end in zip(points, ends, strict=True)]

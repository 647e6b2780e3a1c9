"""Two methods on the same items: what differs between them, how surely, and what these items could have shown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from analysis.exhibit import signed
from analysis.finished_cells import FinishedCell
from analysis.frames import KEY, Key, Results
from analysis.statistics import Array, Jackknife, t_quantile

ALPHA = 0.05
POWER = 0.8
ENDS = ("", "_low", "_high")
_MEASURES = ("difference", "cost_difference", "cost_ratio", "cost_ratio_all_calls")
COLUMNS = [
    *("n", *(f"{name}{end}" for name in _MEASURES for end in ENDS), "variance", "df", "p", "p_not_worse"),
    *("first_alone", "second_alone", "odds_ratio", "cohens_g", "detectable", "detectable_holm"),
]


def compare(
    first: Sequence[FinishedCell], second: Sequence[FinishedCell], margin: float | None = None, tests: int = 1
) -> dict[str, Any]:
    """Compare two rows on the same items, over all seeds; return :data:`COLUMNS`.

    Differences are first minus second, in points of accuracy and in cost; ratios of costs are first over second.
    ``detectable_holm`` is for the first threshold of Holm's correction for so many ``tests``.

    Where each item is right or wrong on both sides, as of one seed each, the test is the exact one of McNemar and the
    interval that of :func:`analysis.statistics.paired`; otherwise both are of t (:meth:`Jackknife.spread`).
    """
    first_values, second_values = _values(first), _values(second)
    n = first_values.shape[2]
    jackknife = Jackknife({None: n}, {"first": len(first), "second": len(second)})
    points, *costs = jackknife.ratio(first_values, None, None, "first")
    other_points, *other_costs = jackknife.ratio(second_values, None, None, "second")
    accuracy = jackknife.spread(points - other_points, are_points=True)
    cost_difference = jackknife.spread(costs[0] - other_costs[0])
    measures: dict[str, Sequence[Any]] = {
        "difference": accuracy.estimate(-100.0, 100.0)[:3],
        "cost_difference": (cost_difference.value, *cost_difference.ends()),
    }
    for name, cost, other_cost in zip(_MEASURES[2:], costs, other_costs, strict=True):
        # What costs nothing is infinitely cheaper, and beside what costs nothing either there is no ratio.
        with np.errstate(divide="ignore", invalid="ignore"):
            log = jackknife.spread(np.log(cost) - np.log(other_cost))
            measures[name] = np.exp([log.value, *log.ends()]).tolist()
    lead = first_values[0].mean(axis=0) - second_values[0].mean(axis=0)
    alone, others = int((lead > 0).sum()), int((lead < 0).sum())
    # What differs in no item is no certainty: the interval stands for the spread.
    is_known = 0 < accuracy.variance < math.inf
    width = float(np.subtract(*accuracy.ends())) / (2 * t_quantile(math.inf))
    trainings = 0.0 if accuracy.counts or n == 1 else max(0.0, accuracy.variance - lead.var(ddof=1) / n)
    return {
        "n": n,
        **{f"{name}{end}": value for name, ends in measures.items() for end, value in zip(ENDS, ends, strict=True)},
        "variance": accuracy.variance if is_known else width**2,
        "df": accuracy.df if is_known else math.inf,
        "p": accuracy.p,
        "p_not_worse": math.nan if margin is None else accuracy.p_above(-margin),
        "first_alone": alone,
        "second_alone": others,
        "odds_ratio": alone / others if others else math.inf if alone else math.nan,
        "cohens_g": alone / (alone + others) - 0.5 if alone + others else 0.0,
        **{
            f"detectable{name}": detectable(lead, trainings, None if accuracy.counts else accuracy.df, level)
            for name, level in (("", ALPHA), ("_holm", ALPHA / tests))
        },
    }


def comparisons(results: Results, pairs: Mapping[Key, tuple[Key, Key]], margin: float | None = None) -> pd.DataFrame:
    """Return :func:`compare` of pairs of rows, by the keys of the mapping; missing unless both were run."""
    cells = results.cells_by_row
    run = {key: pair for key, pair in pairs.items() if cells.keys() >= {*pair}}
    tests = Counter(key[:2] for key in run)
    compared = {
        key: compare(cells[first], cells[second], margin, tests[key[:2]]) for key, (first, second) in run.items()
    }
    index = pd.MultiIndex.from_tuples(pairs, names=KEY)
    return pd.DataFrame([compared.get(key, {}) for key in pairs], index, COLUMNS)


def noise_floor(results: Results, again: Iterable[FinishedCell]) -> str:
    """Return a sentence on how far rows differ from themselves when they are asked a second time; empty without one."""
    found = []
    for cell in again:
        run = cell.run
        first = results.cells_by_row.get((run.method, run.backbone, run.benchmark))
        if first is not None:
            pair = compare(first, [cell])
            alone, others = pair["first_alone"], pair["second_alone"]
            found.append(
                f"{run.backbone} on {run.benchmark_title}: {alone + others} of {pair['n']} verdicts ({alone} right the "
                f"first time alone, {others} the second), {signed(pair['difference'])} points"
            )
    return f" Noise floor, the same single calls asked again: {'; '.join(found)}." if found else ""


def holm(p_values: pd.Series) -> pd.Series:
    """Return Holm's adjustment of p values that belong to one question, without those that are missing."""
    from statsmodels.stats.multitest import multipletests

    present = p_values.dropna()
    return present if present.empty else pd.Series(multipletests(present, ALPHA, method="holm")[1], present.index)


def detectable(differences: Array, trainings: float, df: float | None, level: float = ALPHA) -> float:
    """Return the smallest true mean difference shown with 80 % power at a two-sided level, or infinity.

    Items are taken to differ as often and as far as these do. A larger difference than that allows could still be
    shown: where it is infinite, none at this rate.

    Args:
        differences: Of each item, shape (n,), in the unit of the result.
        trainings: What the spread between trainings adds to the squared standard error.
        df: Degrees of freedom of the t test; None where the test is the exact one of McNemar.
        level: Of the test.
    """
    n = len(differences)
    # At this rate no mean can exceed the mean absolute difference.
    most = float(np.abs(differences).mean())
    if df is None:
        return most * _least_lead(n, np.count_nonzero(differences), level) if most else math.inf
    error = math.sqrt(np.mean(differences**2) / n + trainings)
    needed = _effect(df + 1, level) * math.sqrt(df + 1) * error if n > 1 else math.inf
    return needed if 0 < needed <= most else math.inf


def detectable_note(
    points: pd.Series, benchmarks: Mapping[str, str], level: str = "an unadjusted 5 %"
) -> Iterator[str]:
    """Yield a sentence with the range of :func:`detectable` over the rows of each benchmark, given by title."""
    ranges = []
    for key, title in benchmarks.items():
        known = points[points.index.get_level_values("benchmark") == key].dropna().astype(float)
        finite = known[np.isfinite(known)]
        limits = [f"{finite.min():.1f}–{finite.max():.1f}"] if len(finite) else []
        if len(finite) < len(known):
            limits.append(f"none for {len(known) - len(finite)} of {len(known)} rows")
        if limits:
            ranges.append(f"{title} {', '.join(limits)}")
    if ranges:
        yield (
            f"Smallest true difference, in points, that these questions show with 80 % power at {level}, at the rate "
            f"at which the rows differ here, by row (the CSV has each): {'; '.join(ranges)}."
        )


def p_value(p: float) -> str:
    """Return a p value as tables print it."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


@cache
def _least_lead(n: int, discordant: int, level: float) -> float:
    """Return the least lead among discordant items, as a share of them, that the exact test shows; or infinity.

    Their number varies as in another sample of ``n`` items.
    """
    from scipy.optimize import brentq
    from scipy.stats import binom

    numbers = np.arange(n + 1)
    # The most items for the loser at which the test still rejects.
    most = binom.ppf(level / 2, numbers, 0.5)
    most -= binom.cdf(most, numbers, 0.5) > level / 2
    chances = binom.pmf(numbers, n, discordant / n)

    def excess(lead: float) -> float:
        return float(chances @ binom.cdf(most, numbers, (1 - lead) / 2)) - POWER

    return float(brentq(excess, 0, 1)) if excess(1) >= 0 else math.inf


@cache
def _effect(n: float, level: float) -> float:
    """Return the detectable effect in standard deviations; one-sided at half the level, where the solver converges."""
    from statsmodels.stats.power import TTestPower

    return float(TTestPower().solve_power(nobs=n, alpha=level / 2, power=POWER, alternative="larger"))


def _values(cells: Sequence[FinishedCell]) -> Array:
    """Return points, cost and cost of all calls, shape (3, seeds, items)."""
    values = [[cell.items[name] for cell in cells] for name in ("correct", "cost", "cost_total")]
    return np.array(values, dtype=float) * np.array([100.0, 1.0, 1.0])[:, np.newaxis, np.newaxis]

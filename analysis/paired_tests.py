"""Paired comparison of two methods: differences, tests, and the effects that the items can detect."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import binom

from analysis.finished_cells import FinishedCell
from analysis.frames import AVERAGE, KEY, Key, Results
from analysis.statistics import Array, Jackknife, macro_average, t_quantile

ALPHA = 0.05
POWER = 0.8
ENDS = ("", "_low", "_high")
_MEASURES = ("difference", "cost_ratio", "cost_ratio_all_calls")
COLUMNS = [
    *("n", *(f"{name}{end}" for name in _MEASURES for end in ENDS), "variance", "df", "p", "p_not_worse"),
    *("first_alone", "second_alone", "detectable"),
]


def compare(
    first: Sequence[FinishedCell], second: Sequence[FinishedCell], margin: float | None = None
) -> dict[str, Any]:
    """Compare two rows on the same items, over all seeds; return :data:`COLUMNS`.

    The difference is first minus second, in points of accuracy; ratios of costs are first over second.

    With one seed on each side, the test is McNemar's exact test and the interval that of
    :func:`analysis.statistics.paired`; otherwise both use Student's t (:meth:`Jackknife.spread`).
    """
    first_values, second_values = values_of(first), values_of(second)
    n = first_values.shape[2]
    jackknife = Jackknife({None: n}, {"first": len(first), "second": len(second)})
    points, *costs = jackknife.ratio(first_values, None, None, "first")
    other_points, *other_costs = jackknife.ratio(second_values, None, None, "second")
    accuracy = jackknife.spread(points - other_points, are_points=True)
    measures: dict[str, Sequence[Any]] = {"difference": accuracy.estimate(-100.0, 100.0)[:3]}
    for name, cost, other_cost in zip(_MEASURES[1:], costs, other_costs, strict=True):
        # A cost of 0 makes the ratio 0 or infinite, two costs of 0 make it NaN.
        with np.errstate(divide="ignore", invalid="ignore"):
            log = jackknife.spread(np.log(cost) - np.log(other_cost))
            measures[name] = np.exp([log.value, *log.ends()]).tolist()
    right, other_right = (values[0].mean(axis=0) / 100 for values in (first_values, second_values))
    lead = 100 * (right - other_right)
    # With several seeds, the expected numbers of questions that one of two trainings gets right alone.
    alone, others = float(right @ (1 - other_right)), float(other_right @ (1 - right))
    # No differing item does not mean certainty: take the variance from the interval.
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
        "detectable": detectable(lead, trainings, None if accuracy.counts else accuracy.df),
    }


def comparisons(results: Results, pairs: Mapping[Key, tuple[Key, Key]], margin: float | None = None) -> pd.DataFrame:
    """Apply :func:`compare` to pairs of rows by key; NaN unless both were run."""
    cells = results.cells_by_row
    compared = (
        compare(cells[first], cells[second], margin) if cells.keys() >= {first, second} else {}
        for first, second in pairs.values()
    )
    return pd.DataFrame(list(compared), pd.MultiIndex.from_tuples(pairs, names=KEY), COLUMNS)


def against(results: Results, reference: tuple[str, str], margin: float | None = None) -> pd.DataFrame:
    """Compare a row with every other row to show, on every benchmark and, if the run has it, on average.

    ``p_holm`` is adjusted over the benchmarks of a row.
    """
    others = results.rows.index.drop(reference)
    pairs = {(*row, key): ((*reference, key), (*row, key)) for row in others for key in results.benchmarks}
    tests = comparisons(results, pairs, margin)
    tests["p_holm"] = tests["p"].groupby(level=KEY[:2], group_keys=False).apply(holm)
    if not results.has_average:
        return tests
    is_measured = results.averages["measured"].notna().droplevel("benchmark")
    rows = [row for row in others if is_measured[row] and is_measured[reference]]
    return pd.concat([tests, _mean_differences(results, rows, tests, margin)])


def _mean_differences(
    results: Results, rows: Sequence[tuple[str, str]], tests: pd.DataFrame, margin: float | None
) -> pd.DataFrame:
    """Return average differences. Their variances add: the benchmarks share no question and no training."""
    names = [*(f"difference{end}" for end in ENDS), "p", "p_not_worse"]
    index = pd.MultiIndex.from_tuples([(*row, AVERAGE) for row in rows], names=KEY) if rows else tests.index[:0]
    frame = pd.DataFrame(index=index, columns=names, dtype=float)
    for row in rows:
        parts = tests.loc[[(*row, benchmark) for benchmark in results.published.benchmarks]]
        spread = macro_average(parts["difference"], parts["variance"], parts["df"])
        not_worse = math.nan if margin is None else spread.p_above(-margin)
        frame.loc[(*row, AVERAGE)] = [*spread.estimate(-100.0, 100.0)[:3], spread.p, not_worse]
    return frame


def holm(p_values: pd.Series) -> pd.Series:
    """Return Holm-adjusted p values of one family, without NaN."""
    present = p_values.dropna()
    raised = present.sort_values(kind="stable") * np.arange(len(present), 0, -1)
    return raised.cummax().clip(upper=1.0).reindex(present.index)


def detectable(differences: Array, trainings: float, df: float | None) -> float:
    """Return the smallest true mean difference detected with 80 % power at a two-sided 5 %, or infinity.

    It assumes that other items differ as often and by as much as these. It is infinite if no mean difference
    is detectable when so few items differ.

    Args:
        differences: Difference of each item, shape (n,), in the unit of the result.
        trainings: Variance between trainings, added to the squared standard error.
        df: Degrees of freedom of the t test; None for McNemar's exact test.
    """
    n = len(differences)
    # If items differ this often, the mean is at most the mean absolute difference.
    most = float(np.abs(differences).mean())
    if df is None:
        return most * _least_lead(n, np.count_nonzero(differences)) if most else math.inf
    error = math.sqrt(np.mean(differences**2) / n + trainings)
    needed = _effect(df + 1) * math.sqrt(df + 1) * error if n > 1 else math.inf
    return needed if 0 < needed <= most else math.inf


def detectable_note(points: pd.Series, benchmarks: Mapping[str, str]) -> Iterator[str]:
    """Yield the range of :func:`detectable` over the rows of each benchmark."""
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
        least = "Smaller differences, in points, this run misses more than one time in five (80 % power at 5 %)"
        yield f"{least}; range over the rows, of which the CSV has each: {'; '.join(ranges)}."


def p_value(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


@cache
def _least_lead(n: int, discordant: int) -> float:
    """Return the smallest lead that the exact test detects, as a share of discordant items; or infinity.

    The number of discordant items is random, as in a new sample of ``n`` items.
    """
    numbers = np.arange(n + 1)
    # The maximum number of items won by the loser at which the test still rejects.
    most = binom.ppf(ALPHA / 2, numbers, 0.5)
    most -= binom.cdf(most, numbers, 0.5) > ALPHA / 2
    chances = binom.pmf(numbers, n, discordant / n)

    def excess(lead: float) -> float:
        return float(chances @ binom.cdf(most, numbers, (1 - lead) / 2)) - POWER

    return float(brentq(excess, 0, 1)) if excess(1) >= 0 else math.inf


@cache
def _effect(n: float) -> float:
    """Return the detectable effect in standard deviations. One-sided at half the level, where the solver converges."""
    from statsmodels.stats.power import TTestPower

    return float(TTestPower().solve_power(nobs=n, alpha=ALPHA / 2, power=POWER, alternative="larger"))


def values_of(cells: Sequence[FinishedCell]) -> Array:
    """Return points, cost and cost of all calls, shape (3, seeds, items)."""
    values = [[cell.items[name] for cell in cells] for name in ("correct", "cost", "cost_total")]
    return np.array(values, dtype=float) * np.array([100.0, 1.0, 1.0])[:, np.newaxis, np.newaxis]

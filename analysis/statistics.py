"""Point estimates with 95 % intervals.

Accuracies are fractions between 0 and 1; tables turn them into percent.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 9_999
# The same resamples every time, so that the same verdicts have the same interval.
SEED = 0
# Numbers held at once by a batch of resamples: memory stays small however long a test set is.
_BATCH = 500_000

Array = NDArray[np.float64]
Drawn = NDArray[np.int64]


class Estimate(NamedTuple):
    """A value, the ends of its interval, and the variance of the value itself, its squared standard error."""

    mean: float
    low: float
    high: float
    variance: float


def wilson(correct: int, n: int) -> tuple[float, float]:
    """The Wilson score interval of ``correct`` out of ``n``."""
    from scipy.stats import binomtest

    interval = binomtest(correct, n).proportion_ci(CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def accuracy(seeds: Sequence[Sequence[bool]]) -> Estimate:
    """Accuracy over the items of a test set, from one or several seeds, each with its verdicts in the order of items.

    One seed is a count out of ``n`` and gets a Wilson interval, which tells how far other questions of this kind would
    move the value and nothing of how far another training would. Several seeds answer the same items, so both are
    resampled, crossed: each resample draws items and, apart from them, seeds. The interval then holds the spread
    between questions and that between trainings. Its weakness is the number of seeds: three of them show on average two
    thirds of the variance between trainings, and no resample reaches beyond a training that was run. Where trainings
    differ by less than questions let the value vary it still covers its 95 %, rather more on small test sets, since the
    chance in single answers counts with both; where they differ by much more it falls to some 80 %.

    Where all verdicts are the same, or there is but one item, resampling shows no spread, and the Wilson interval of as
    many items takes its place.

    Raises:
        ValueError: There is no verdict at all, or the seeds differ in length.
    """
    verdicts = np.array(seeds, dtype=float)
    if not verdicts.size:
        raise ValueError("an accuracy needs at least one seed and one item")
    values = verdicts.mean(axis=0)
    n, mean = len(values), math.fsum(values) / len(values)
    if len(verdicts) > 1 and n > 1 and 0 < mean < 1:
        drawn = resampled([n, len(verdicts)], lambda *drawn, axis: means(verdicts, *drawn, axis=axis)[np.newaxis])
        return estimate(mean, drawn[0])
    # A single value says nothing of the spread, so it gets the largest possible variance.
    return Estimate(mean, *wilson(round(mean * n), n), values.var(ddof=1) / n if n > 1 else 0.25)


def macro_average(estimates: Sequence[Estimate], lowest: float = 0.0) -> Estimate:
    """The unweighted mean of several test sets, with its normal interval.

    The test sets share no item and no training, so the variances of their means add. A test set on which every item
    has the same verdict contributes no variance: with few items the interval is then too narrow.

    Args:
        estimates: One a test set, one at least.
        lowest: The smallest possible value: 0 of an accuracy, -1 of a difference of two.
    """
    count = len(estimates)
    mean = math.fsum(one.mean for one in estimates) / count
    variance = math.fsum(one.variance for one in estimates) / count**2
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(variance)
    return Estimate(mean, max(lowest, mean - reach), min(1.0, mean + reach), variance)


def resampled(
    counts: Sequence[int], statistic: Callable[..., Array], batch: int | None = None, resamples: int = RESAMPLES
) -> Array:
    """Statistics of bootstrap resamples, shape (statistics, resamples), or of one statistic (resamples,).

    Args:
        counts: How many observations each sample has, at least two. Samples are drawn from apart, by number.
        statistic: Vectorised: from the numbers drawn of each sample and an ``axis`` to an array of statistics, along
            its first dimension one after the other.
        batch: Resamples at a time, on which the draws of several samples depend.
        resamples: How many.
    """
    from scipy import stats

    # A resample may leave nothing to divide by; an infinite value has its place in a percentile. Only the distribution
    # is used, not the interval that scipy cannot make of such.
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        made = stats.bootstrap(
            [np.arange(count) for count in counts],
            statistic,
            n_resamples=resamples,
            batch=batch or max(1, _BATCH // max(counts)),
            vectorized=True,
            paired=False,
            method="percentile",
            rng=np.random.default_rng(SEED),
        )
    return np.asarray(made.bootstrap_distribution)


def means(values: Array, items: Drawn, seeds: Drawn | None = None, *, axis: int = -1) -> Array:
    """Means over drawn items and seeds of values by seed and item; without drawn seeds, of the first."""
    by_seed = np.stack([row[items].mean(axis) for row in values], axis=axis)
    drawn = np.zeros((*items.shape[:-1], 1), dtype=int) if seeds is None else seeds
    found: Array = np.take_along_axis(by_seed, drawn, axis).mean(axis)
    return found


def estimate(mean: float, drawn: Array) -> Estimate:
    """A value with the percentile interval of its resamples, of which those without a value are left out.

    An interval holds its own point: sums in another order differ in the last digit, and a resampled mean of few
    questions can lie outside it.
    """
    tail = 100 * (1 - CONFIDENCE) / 2
    with np.errstate(invalid="ignore"):
        # Between two infinite values numpy finds no number.
        low, high = np.nan_to_num(np.nanpercentile(drawn, [tail, 100 - tail]), nan=math.inf, posinf=math.inf).tolist()
        return Estimate(mean, min(mean, low), max(mean, high), float(np.nanvar(drawn, ddof=1)))

"""How sure a measured value is: point estimates with 95 % intervals.

Accuracies are fractions between 0 and 1; tables turn them into percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
RESAMPLES = 9_999
# The same resamples every time, so that the same verdicts have the same interval.
SEED = 0
# Numbers held at once by a batch of resamples: memory stays small however long a test set is.
_BATCH = 500_000


class Estimate(NamedTuple):
    """A value with its interval.

    Attributes:
        mean: The point estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.
        variance: Of the point estimate itself, that is the squared standard error.
    """

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
    """Accuracy over the items of a test set, from one or several seeds.

    One seed is a count out of ``n`` and gets a Wilson interval, which tells how far other questions of this kind would
    move the value and nothing of how far another training would. Several seeds answer the same items, so both are
    resampled, crossed: each resample draws items and, apart from them, seeds. The interval then holds the spread
    between questions and that between trainings. Its weakness is the number of seeds: three of them show on average two
    thirds of the variance between trainings, and no resample reaches beyond a training that was run. Where trainings
    differ by less than questions let the value vary it still covers its 95 %, rather more on small test sets, since the
    chance in single answers counts with both; where they differ by much more it falls to some 80 %.

    Where all verdicts are the same, or there is but one item, resampling shows no spread, and the Wilson interval of as
    many items takes its place.

    Args:
        seeds: For each seed one verdict an item, in the same order of items.

    Raises:
        ValueError: When there is no verdict at all, or the seeds differ in length.
    """
    values = [math.fsum(item) / len(seeds) for item in zip(*seeds, strict=True)]
    if not values:
        raise ValueError("an accuracy needs at least one seed and one item")
    mean = math.fsum(values) / len(values)
    if len(seeds) > 1 and len(values) > 1 and 0 < mean < 1:
        return _crossed(seeds)
    return Estimate(mean, *wilson(round(mean * len(values)), len(values)), _variance_of_mean(values))


def macro_average(estimates: Sequence[Estimate], lowest: float = 0.0) -> Estimate:
    """The unweighted mean of several test sets, with its normal interval.

    The test sets share no item and no training, so the variances of their means add. A test set on which every item
    has the same verdict contributes no variance: with few items the interval is then too narrow.

    Args:
        estimates: One a test set.
        lowest: The smallest possible value: 0 of an accuracy, -1 of a difference of two.

    Raises:
        ValueError: When there is nothing to average.
    """
    if not estimates:
        raise ValueError("an average needs at least one estimate")
    count = len(estimates)
    mean = math.fsum(estimate.mean for estimate in estimates) / count
    return _normal(mean, math.fsum(estimate.variance for estimate in estimates) / count**2, lowest)


def bootstrap(
    samples: Sequence[ArrayLike], statistic: Callable[..., NDArray[np.float64]], *, paired: bool = False
) -> list[Estimate]:
    """Percentile intervals of one or several statistics of the same samples.

    Args:
        samples: What is drawn from, at least two observations each.
        statistic: Vectorised: from as many arrays as samples and an ``axis`` to an array of statistics, along its
            first dimension one after the other.
        paired: Whether the samples are drawn from together, observation by observation, or each apart.

    Returns:
        An estimate each, in the order of the statistics.
    """
    import numpy as np
    from scipy import stats

    arrays = [np.asarray(sample) for sample in samples]
    # An infinite value, such as a ratio to nothing, has its place in a percentile but no standard error.
    with np.errstate(invalid="ignore"):
        found = stats.bootstrap(
            arrays,
            statistic,
            n_resamples=RESAMPLES,
            batch=max(1, _BATCH // max(map(len, arrays))),
            vectorized=True,
            paired=paired,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(SEED),
        )
    ends = zip(*found.confidence_interval, found.standard_error, strict=True)
    points = statistic(*arrays, axis=-1)
    # Sums in another order differ in the last digit: an interval must still hold its own point.
    return [
        Estimate(float(point), float(min(point, low)), float(max(point, high)), float(error) ** 2)
        for point, (low, high, error) in zip(points, ends, strict=True)
    ]


def _crossed(seeds: Sequence[Sequence[bool]]) -> Estimate:
    """Items and seeds drawn apart; a resample is the mean of the verdicts where both meet."""
    import numpy as np

    verdicts = np.array(seeds, dtype=float)

    def statistic(items: NDArray[np.int64], drawn: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        of_seed = np.stack([row[items].mean(axis) for row in verdicts], axis=axis)
        return np.take_along_axis(of_seed, drawn, axis).mean(axis)[np.newaxis]

    (found,) = bootstrap([np.arange(verdicts.shape[1]), np.arange(len(verdicts))], statistic)
    return found


def _variance_of_mean(values: Sequence[float]) -> float:
    """From the sample variance; a single value says nothing of the spread, so it gets the largest possible one."""
    n = len(values)
    if n == 1:
        return 0.25
    mean = math.fsum(values) / n
    return math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n


def _normal(mean: float, variance: float, lowest: float) -> Estimate:
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(variance)
    return Estimate(mean, max(lowest, mean - reach), min(1.0, mean + reach), variance)

"""Point estimates with 95 % intervals; accuracies are fractions, which tables turn into percent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
# Standard errors from the middle of a normal interval to its ends.
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
RESAMPLES = 9_999
# The same resamples every time, so that the same verdicts have the same interval.
SEED = 0
# Numbers held at once by a batch of resamples: memory stays small however long a test set is.
_BATCH = 500_000
# Resamples of ratios at a time, on which the draws over several seeds depend.
_AT_ONCE = 1000

Array = NDArray[np.float64]
Drawn = NDArray[np.int64]


class Estimate(NamedTuple):
    """A value, the ends of its 95 % interval, and its squared standard error."""

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

    One seed gets a Wilson interval, which says nothing of how far another training would move the value; so do verdicts
    that are all the same, and a single item. Of several seeds each resample draws items and, apart from them, seeds.
    Three seeds show on average two thirds of the variance between trainings: the interval covers its 95 % where
    trainings differ by less than questions let the value vary, and some 80 % where they differ by much more.
    """
    verdicts = np.array(seeds, dtype=float)
    if not verdicts.size:
        raise ValueError("an accuracy needs at least one seed and one item")
    values = verdicts.mean(axis=0)
    n, mean = len(values), math.fsum(values) / len(values)
    if len(verdicts) > 1 and n > 1 and 0 < mean < 1:
        tops = verdicts[np.newaxis]
        return estimate(mean, resampled([n, len(verdicts)], lambda *drawn: ratios(tops, None, *drawn))[0])
    low, high = wilson(round(mean * n), n)
    if n == 1:
        # A single value says nothing of the spread, so it gets the largest possible variance.
        return Estimate(mean, low, high, 0.25)
    # Nor do values that are all the same, whose interval reaches to one side alone.
    return Estimate(mean, low, high, values.var(ddof=1) / n if 0 < mean < 1 else ((high - low) / Z) ** 2)


def macro_average(estimates: Sequence[Estimate], lowest: float = 0.0) -> Estimate:
    """The unweighted mean of test sets that share no item, with its normal interval from ``lowest`` to 1."""
    count = len(estimates)
    mean = math.fsum(one.mean for one in estimates) / count
    variance = math.fsum(one.variance for one in estimates) / count**2
    reach = Z * math.sqrt(variance)
    return Estimate(mean, max(lowest, mean - reach), min(1.0, mean + reach), variance)


def resampled(
    counts: Sequence[int], statistic: Callable[..., Array], batch: int | None = None, resamples: int | None = None
) -> Array:
    """Statistics of bootstrap resamples, shape (statistics, resamples), or of one statistic (resamples,).

    ``counts`` are the observations of each sample, which are drawn from apart; ``statistic`` is given the numbers drawn
    of each, shape (resamples, observations). The draws of several samples depend on the ``batch``, resamples at a time.
    """
    generator, total, size = np.random.default_rng(SEED), resamples or RESAMPLES, batch or max(1, _BATCH // max(counts))
    found = []
    # A resample may leave nothing to divide by.
    with np.errstate(invalid="ignore"):
        for done in range(0, total, size):
            several = min(size, total - done)
            found.append(statistic(*(generator.integers(0, count, (several, count)) for count in counts)))
    return np.concatenate(found, axis=-1)


def ratios(tops: Array, bottoms: Array | None, items: Drawn, seeds: Drawn | None = None) -> Array:
    """Σ top / Σ bottom over drawn items, then the mean over drawn seeds, shape (measures, resamples)."""
    # Tops and bottoms are by measure, seed and item; no bottoms: a mean over the items; no seeds: all of them.
    return mean_of_seeds(ratios_by_seed(tops, bottoms, items), seeds)


def ratios_by_seed(tops: Array, bottoms: Array | None, items: Drawn) -> Array:
    """Σ top / Σ bottom over drawn items, shape (measures, seeds, resamples); not a number where nothing has a part."""
    top = _sums(tops, items)
    bottom = np.full_like(top, items.shape[1]) if bottoms is None else _sums(bottoms, items)
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)


def mean_of_seeds(by_seed: Array, seeds: Drawn | None) -> Array:
    """The mean over drawn seeds, shape (measures, resamples); a seed without a value has no part in it."""
    if seeds is not None:
        by_seed = np.take_along_axis(by_seed, seeds.T[np.newaxis], axis=1)
    known = np.count_nonzero(~np.isnan(by_seed), axis=1)
    return np.divide(np.nansum(by_seed, axis=1), known, out=np.full(known.shape, np.nan), where=known > 0)


def _sums(values: Array, items: Drawn) -> Array:
    """By measure, seed and resample; one row at a time, which keeps memory flat."""
    return np.array([[row[items].sum(axis=1) for row in seeds] for seeds in values])


def estimate(mean: float, drawn: Array) -> Estimate:
    """A value with the percentile interval of its resamples, widened to hold the value itself."""
    tail = 100 * (1 - CONFIDENCE) / 2
    with np.errstate(invalid="ignore"):
        # Between two infinite values numpy finds no number.
        low, high = np.nan_to_num(np.nanpercentile(drawn, [tail, 100 - tail]), nan=math.inf, posinf=math.inf).tolist()
        return Estimate(mean, min(mean, low), max(mean, high), float(np.nanvar(drawn, ddof=1)))


class Ratio(NamedTuple):
    """A measure of one seed: Σ numerator / Σ denominator over the questions."""

    numerators: Array
    denominators: Array  # 0 for a question that has no part in the measure
    is_share: bool = True  # whether the ratio lies between 0 and 1

    @property
    def value(self) -> float:
        """The ratio, not a number where nothing has a part in it."""
        total = self.denominators.sum()
        return float(self.numerators.sum() / total) if total else float("nan")

    @property
    def cases(self) -> int:
        """How many questions have a part in it."""
        return int(np.count_nonzero(self.denominators))


def mean_of(values: ArrayLike) -> Ratio:
    """The mean of one value a question, as a ratio."""
    each = np.asarray(values, dtype=float)
    return Ratio(each, np.ones(len(each)), is_share=False)


def mean(seeds: Sequence[ArrayLike]) -> Estimate:
    """The mean of one value a question, of one or several seeds (:func:`estimates`)."""
    return estimates([{"mean": mean_of(values)} for values in seeds])["mean"]


def estimates(seeds: Sequence[Mapping[str, Ratio]]) -> dict[str, Estimate]:
    """Mean over the seeds and 95 % percentile interval of every measure that any seed has."""
    # A seed without a measure has no part in its mean; a share of exactly 0 or 1 gets a Wilson interval.
    names = list(dict.fromkeys(name for seed in seeds for name in seed))
    if not names:
        return {}
    nothing = np.zeros(next(len(one.numerators) for seed in seeds for one in seed.values()))
    of = {name: [seed.get(name, Ratio(nothing, nothing)) for seed in seeds] for name in names}
    # Both of shape (measures, seeds, questions).
    tops, bottoms = (np.array([[one[part] for one in each] for each in of.values()], dtype=float) for part in (0, 1))

    _, several, questions = tops.shape
    found = resampled([questions, several][: 1 + (several > 1)], lambda *drawn: ratios(tops, bottoms, *drawn), _AT_ONCE)
    return {name: _estimate(each, row) for (name, each), row in zip(of.items(), found, strict=True)}


def _estimate(seeds: Sequence[Ratio], drawn: Array) -> Estimate:
    found = estimate(float(np.nanmean([one.value for one in seeds])), drawn)
    if found.low < found.high or not any(one.is_share for one in seeds):
        return found
    cases = max(one.cases for one in seeds)
    low, high = wilson(round(found.mean * cases), cases)
    return found._replace(low=min(found.mean, low), high=max(found.mean, high))

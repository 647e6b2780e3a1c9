"""Ratios of two sums over the test questions, such as a write rate, and how sure they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.statistics import CONFIDENCE, RESAMPLES, SEED, Estimate, wilson

_BATCH = 1000

Array = NDArray[np.float64]
Resampled = Callable[..., Array]


class Ratio(NamedTuple):
    """One measure of one training seed: Σ numerator / Σ denominator over the questions.

    Attributes:
        numerators: One a question.
        denominators: One a question; 0 for a question that has no part in the measure.
        is_share: Whether the ratio lies between 0 and 1.
    """

    numerators: Array
    denominators: Array
    is_share: bool = True

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


def estimates(seeds: Sequence[Mapping[str, Ratio]]) -> dict[str, Estimate]:
    """Mean over the seeds and 95 % percentile interval of every measure.

    One seed: the questions are resampled. Several seeds: questions and seeds are, independently of each other, since
    all seeds answer the same questions. Resamples in which nothing has a part in a measure say nothing of it and are
    left out. A share of exactly 0 or 1 would have an interval without width; it gets the Wilson interval of as many
    questions as have a part in it.

    Args:
        seeds: For each seed its measures, over the same questions in the same order. A seed without a measure has no
            part in its mean.

    Returns:
        The measures that any seed has, in the order of their first appearance.
    """
    names = list(dict.fromkeys(name for seed in seeds for name in seed))
    if not names:
        return {}
    nothing = np.zeros(next(len(one.numerators) for seed in seeds for one in seed.values()))
    blank = Ratio(nothing, nothing)
    ratios = [[seed.get(name, blank) for seed in seeds] for name in names]
    drawn = _distribution(
        np.array([[one.numerators for one in of] for of in ratios], dtype=float),
        np.array([[one.denominators for one in of] for of in ratios], dtype=float),
    )
    return {name: _estimate(of, row) for name, of, row in zip(names, ratios, drawn, strict=True)}


def _estimate(seeds: Sequence[Ratio], drawn: Array) -> Estimate:
    mean = float(np.nanmean([one.value for one in seeds]))
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = (float(end) for end in np.nanpercentile(drawn, [tail, 100 - tail]))
    if low == high and any(one.is_share for one in seeds):
        cases = max(one.cases for one in seeds)
        low, high = wilson(round(mean * cases), cases)
    # A resampled mean of few questions can lie beside its own point, which an interval must hold.
    return Estimate(mean, min(mean, low), max(mean, high), float(np.nanvar(drawn, ddof=1)))


def _distribution(numerators: Array, denominators: Array) -> Array:
    """Resampled means over the seeds, shape (measures, resamples); both arguments (measures, seeds, questions)."""
    from scipy.stats import DegenerateDataWarning, bootstrap

    _, seeds, questions = numerators.shape
    statistic = _resampled(numerators, denominators)
    samples = tuple(np.arange(count) for count in (questions, seeds)[: 1 + (seeds > 1)])
    if questions < 2:
        return np.repeat(statistic(*samples), 2, axis=-1)
    with warnings.catch_warnings():
        # Only the distribution is used; the interval that scipy cannot make of resamples without a case is not.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        made = bootstrap(
            samples,
            statistic,
            n_resamples=RESAMPLES,
            batch=_BATCH,
            vectorized=True,
            paired=False,
            method="percentile",
            rng=np.random.default_rng(SEED),
        )
    return np.asarray(made.bootstrap_distribution)


def _resampled(numerators: Array, denominators: Array) -> Resampled:
    """The measures as a function of which questions and seeds were drawn, shape (measures, resamples)."""
    measures, seeds, questions = numerators.shape
    tops, bottoms = (part.reshape(measures * seeds, questions).T for part in (numerators, denominators))

    def statistic(items: NDArray[np.int64], *chosen: NDArray[np.int64], axis: int = -1) -> Array:
        weights = _weights(items.reshape(-1, questions))
        shape = (len(weights), measures, seeds)
        bottom = (weights @ bottoms).reshape(shape)
        by_seed = np.divide((weights @ tops).reshape(shape), bottom, out=np.full(shape, np.nan), where=bottom > 0)
        if chosen:
            by_seed = np.take_along_axis(by_seed, chosen[0].reshape(-1, 1, seeds), axis=2)
        present = ~np.isnan(by_seed)
        count = present.sum(axis=2)
        total = np.where(present, by_seed, 0).sum(axis=2)
        return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0).T

    return statistic


def _weights(items: NDArray[np.int64]) -> Array:
    """How often each question was drawn: sums over questions then are one matrix product."""
    resamples, questions = items.shape
    places = (items + questions * np.arange(resamples)[:, None]).ravel()
    return np.bincount(places, minlength=resamples * questions).reshape(resamples, questions).astype(float)

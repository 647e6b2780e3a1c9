"""Ratios of two sums over the test questions, such as a write rate, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis.statistics import Array, Drawn, Estimate, estimate, resampled, wilson

_BATCH = 1000


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


def mean(seeds: Sequence[ArrayLike]) -> Estimate:
    """The mean of one value a question, of one or several seeds (:func:`estimates`)."""
    return estimates([{"mean": mean_of(values)} for values in seeds])["mean"]


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
    ratios = {name: [seed.get(name, Ratio(nothing, nothing)) for seed in seeds] for name in names}
    # Both of shape (measures, seeds, questions).
    tops, bottoms = (np.array([[one[part] for one in of] for of in ratios.values()], dtype=float) for part in (0, 1))
    statistic = _statistic(tops, bottoms)
    _, several, questions = tops.shape
    counts = [questions, several][: 1 + (several > 1)]
    # Nothing can be resampled of a single question.
    alone = [np.arange(count) for count in counts]
    drawn = resampled(counts, statistic, _BATCH) if questions > 1 else np.repeat(statistic(*alone), 2, axis=-1)
    return {name: _estimate(of, row) for (name, of), row in zip(ratios.items(), drawn, strict=True)}


def _estimate(seeds: Sequence[Ratio], drawn: Array) -> Estimate:
    found = estimate(float(np.nanmean([one.value for one in seeds])), drawn)
    if found.low < found.high or not any(one.is_share for one in seeds):
        return found
    cases = max(one.cases for one in seeds)
    low, high = wilson(round(found.mean * cases), cases)
    return found._replace(low=min(found.mean, low), high=max(found.mean, high))


def _statistic(tops: Array, bottoms: Array) -> Callable[..., Array]:
    """The measures as a function of which questions and seeds were drawn, shape (measures, resamples)."""
    measures, seeds, questions = tops.shape
    above, below = (part.reshape(measures * seeds, questions).T for part in (tops, bottoms))

    def statistic(items: Drawn, *chosen: Drawn, axis: int = -1) -> Array:
        weights = _weights(items.reshape(-1, questions))
        shape = (len(weights), measures, seeds)
        bottom = (weights @ below).reshape(shape)
        by_seed = np.divide((weights @ above).reshape(shape), bottom, out=np.full(shape, np.nan), where=bottom > 0)
        if chosen:
            by_seed = np.take_along_axis(by_seed, chosen[0].reshape(-1, 1, seeds), axis=2)
        count = np.count_nonzero(~np.isnan(by_seed), axis=2)
        total = np.nansum(by_seed, axis=2)
        return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0).T

    return statistic


def _weights(items: Drawn) -> Array:
    """How often each question was drawn: sums over questions then are one matrix product."""
    resamples, questions = items.shape
    places = (items + questions * np.arange(resamples)[:, None]).ravel()
    return np.bincount(places, minlength=resamples * questions).reshape(resamples, questions).astype(float)

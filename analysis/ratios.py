"""Ratios of two sums over the test questions, such as a write rate, and how sure they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis.statistics import Array, Estimate, estimate, ratios, resampled, wilson

# Resamples at a time, on which the draws over several seeds depend.
_BATCH = 1000


class Ratio(NamedTuple):
    """One measure of one training seed: Σ numerator / Σ denominator over the questions."""

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
    """Mean over the seeds and 95 % percentile interval of every measure that any seed has, in order of appearance.

    One seed: the questions are resampled. Several seeds: questions and seeds are, independently of each other, since
    all seeds answer the same questions. Resamples in which nothing has a part in a measure are left out. A share of
    exactly 0 or 1 would have an interval without width; it gets the Wilson interval of as many questions as have a part
    in it. A single question has no interval. A seed without a measure has no part in its mean.
    """
    names = list(dict.fromkeys(name for seed in seeds for name in seed))
    if not names:
        return {}
    nothing = np.zeros(next(len(one.numerators) for seed in seeds for one in seed.values()))
    of = {name: [seed.get(name, Ratio(nothing, nothing)) for seed in seeds] for name in names}
    # Both of shape (measures, seeds, questions).
    tops, bottoms = (np.array([[one[part] for one in each] for each in of.values()], dtype=float) for part in (0, 1))

    _, several, questions = tops.shape
    found = resampled([questions, several][: 1 + (several > 1)], lambda *drawn: ratios(tops, bottoms, *drawn), _BATCH)
    return {name: _estimate(each, row) for (name, each), row in zip(of.items(), found, strict=True)}


def _estimate(seeds: Sequence[Ratio], drawn: Array) -> Estimate:
    found = estimate(float(np.nanmean([one.value for one in seeds])), drawn)
    if found.low < found.high or not any(one.is_share for one in seeds):
        return found
    cases = max(one.cases for one in seeds)
    low, high = wilson(round(found.mean * cases), cases)
    return found._replace(low=min(found.mean, low), high=max(found.mean, high))

"""How sure a measured quantity is: a percentile bootstrap over the items of each benchmark and over training seeds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.claims.measured import Replicates
from analysis.claims.readings import Readings
from analysis.statistics import CONFIDENCE

_RESAMPLES = 2000
_BATCH = 200
_SEED = 0

Indices = NDArray[np.int64]


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def interval(used: Sequence[Readings], value: Callable[[Replicates], NDArray[np.float64]]) -> Interval | None:
    """The interval of a quantity over some measurements.

    Items are drawn once for each benchmark and shared by all methods, which answered the same ones; the seeds of every
    measurement that has several are drawn by themselves. With two or three seeds the interval is too narrow: a
    bootstrap of so few underestimates their spread.

    Args:
        used: What the quantity is computed from.
        value: The quantity for R replicates, shape (R,).

    Returns:
        ``None`` where no replicate differs from another, or a test set has a single item: then a bootstrap says
        nothing, and the interval would pretend to certainty.
    """
    from scipy.stats import DegenerateDataWarning, bootstrap

    items = {one.key[2]: one.n for one in used}
    several = [one.trainings for one in used if len(one.seeds) > 1]
    counts = [*items.values(), *(len(one.seeds) for one in used if len(one.seeds) > 1)]
    if not items or min(items.values()) == 1:
        return None

    def statistic(*drawn: Indices, axis: int = -1) -> NDArray[np.float64]:
        """Both kinds of draws, each of shape (R, size); the axis is always the last."""
        whole = [one.astype(np.int64) for one in drawn]
        chosen = Replicates(dict(zip(items, whole, strict=False)), dict(zip(several, whole[len(items) :], strict=True)))
        return value(chosen)

    with warnings.catch_warnings():
        # A quantity without spread is told apart below.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        found = bootstrap(
            [np.arange(count) for count in counts],
            statistic,
            n_resamples=_RESAMPLES,
            batch=_BATCH,
            vectorized=True,
            paired=False,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(_SEED),
        )
    return _ends(np.asarray(found.bootstrap_distribution))


def _ends(drawn: NDArray[np.float64]) -> Interval | None:
    """Replicates in which nothing has a part in a ratio say nothing of it and are left out."""
    present = drawn[~np.isnan(drawn)]
    if not present.size or np.ptp(present) == 0:
        return None
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(present, [tail, 100 - tail])
    return Interval(float(low), float(high))

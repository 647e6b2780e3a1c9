"""Two methods on the same items: what differs between them, how surely, and what these items could have shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from analysis.results import Cell
from analysis.statistics import Estimate, bootstrap, wilson
from harness.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

ALPHA = 0.05
POWER = 0.8
# An interval narrower than this has no width but for rounding.
_DUST = 1e-9


class Discordant(NamedTuple):
    """Items of one seed that only one of two methods answered correctly.

    Attributes:
        first: Correct by the first method alone.
        second: Correct by the second method alone.
    """

    first: int
    second: int

    @property
    def odds_ratio(self) -> float:
        """Effect size: ``first / second``; infinite where the second is never alone, NaN without a discordant item."""
        if self.second:
            return self.first / self.second
        return math.inf if self.first else math.nan

    @property
    def cohens_g(self) -> float:
        """Effect size: the share of the first among the discordant items, less a half; 0 without any."""
        total = self.first + self.second
        return self.first / total - 0.5 if total else 0.0

    @property
    def p(self) -> float:
        """Exact McNemar test, two-sided; 1 without a discordant item."""
        from statsmodels.stats.contingency_tables import mcnemar

        return float(mcnemar([[0, self.first], [self.second, 0]], exact=True).pvalue)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The first method against the second on one benchmark.

    Attributes:
        n: Number of items both answered.
        accuracy: First minus second, a fraction. Like the next three over all seeds, with a 95 % interval over items
            and, where a method has several, over its seeds.
        cost: First minus second, for one question, in the paper's unit; of the calls that published costs count
            (``cost`` of :class:`analysis.results.Cell`), as in the next.
        cost_ratio: First over second; infinite where the second cost nothing.
        cost_ratio_all_calls: The same of all calls.
        discordant: Counted on the first seed of each; the McNemar test and effect sizes are its own.
        detectable: The smallest true difference in accuracy between these trainings, a fraction, that as many items of
            this discordance show with 80 % power at a two-sided 5 %; infinite where they cannot show any.
    """

    n: int
    accuracy: Estimate
    cost: Estimate
    cost_ratio: Estimate
    cost_ratio_all_calls: Estimate
    discordant: Discordant
    detectable: float

    @property
    def first_seed(self) -> float:
        """Difference in accuracy on the first seed of each, a fraction: what the McNemar test is about."""
        return (self.discordant.first - self.discordant.second) / self.n


def compare(first: Sequence[Cell], second: Sequence[Cell]) -> Comparison:
    """Compare two methods item by item; each is given as its cells, one a seed, in order of seed.

    Both are drawn on the same items: an item comes with all its answers, however many seeds gave one (percentile
    bootstrap). The seeds of a method that has several are drawn, too, apart from the items, so that the spread between
    its trainings is in the intervals as in those of :func:`analysis.statistics.accuracy`, with the same weakness at
    three seeds. A method without training has one seed and may meet one with several.

    Raises:
        UserError: When they did not answer the same items.
    """
    _check_items(first, second)
    accuracy, cost, ratio, whole = _estimates(first, second)
    right = _by_item(first) - _by_item(second)
    return Comparison(
        n=len(right),
        accuracy=accuracy if accuracy.high - accuracy.low > _DUST else _without_spread(accuracy.mean, len(right)),
        cost=cost,
        cost_ratio=ratio,
        cost_ratio_all_calls=whole,
        discordant=_discordant(first[0].items["correct"], second[0].items["correct"]),
        detectable=detectable(right.tolist()),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment of p values that belong to one question, in their order."""
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, ALPHA, method="holm")[1]] if p_values else []


def detectable(differences: Sequence[float]) -> float:
    """The smallest true mean difference that as many items would have shown, given how often they differ.

    The test is taken for a paired t test whose standard deviation is the root mean square of the differences, that is
    of one seed the root of the share of discordant items. No mean can exceed the mean absolute difference, so where
    the solution does, even discordance that is all to one side would not have been enough.

    Args:
        differences: By item, between -1 and 1.

    Returns:
        A fraction, or infinity.
    """
    n = len(differences)
    discordance = math.fsum(difference**2 for difference in differences) / n
    largest = math.fsum(map(abs, differences)) / n
    needed = _effect(n) * math.sqrt(discordance) if n > 1 else math.inf
    return needed if 0 < needed <= largest else math.inf


@cache
def _effect(n: int) -> float:
    """In standard deviations, of ``n`` paired differences, at least two.

    Half of a two-sided test: a difference is shown where it lies. The other half adds next to nothing to the power, and
    the tail of its distribution is not a number for some ``n``, which leads the solver astray.
    """
    from statsmodels.stats.power import TTestPower

    return float(TTestPower().solve_power(nobs=n, alpha=ALPHA / 2, power=POWER, alternative="larger"))


def _check_items(first: Sequence[Cell], second: Sequence[Cell]) -> None:
    here = first[0]
    for cell in (*first, *second):
        if not cell.items["item_id"].equals(here.items["item_id"]):
            raise UserError(
                f"{here.folder} ({len(here.items)} items) and {cell.folder} ({len(cell.items)} items) "
                "did not answer the same items; expected the same test set; run one of them again"
            )


def _by_item(cells: Sequence[Cell]) -> NDArray[np.float64]:
    """The share of seeds that answered each item correctly."""
    import numpy as np

    return np.mean([cell.items["correct"] for cell in cells], axis=0, dtype=float)


def _estimates(first: Sequence[Cell], second: Sequence[Cell]) -> list[Estimate]:
    """Differences in accuracy and cost, and two ratios of costs; a single item leaves all of them open."""
    import numpy as np

    n, seeds = len(first[0].items), [len(one) for one in (first, second) if len(one) > 1]
    statistic = _statistic(_values(first), _values(second))
    samples = [np.arange(count) for count in (n, *seeds)]
    if n > 1:
        return bootstrap(samples, statistic)
    points, ends = statistic(*samples, axis=-1), ((0.0, 0.0), (-math.inf, math.inf), (0.0, math.inf), (0.0, math.inf))
    return [Estimate(float(point), *end, math.inf) for point, end in zip(points, ends, strict=True)]


def _values(cells: Sequence[Cell]) -> NDArray[np.float64]:
    """Verdicts, costs, and costs of all calls, by seed and item."""
    import numpy as np

    return np.array([[cell.items[name] for cell in cells] for name in ("correct", "cost", "cost_total")], dtype=float)


def _statistic(first: NDArray[np.float64], second: NDArray[np.float64]) -> Callable[..., NDArray[np.float64]]:
    """The four estimates as a function of the items drawn, then of the seeds of each method that has several."""
    import numpy as np

    def means(
        values: NDArray[np.float64], items: NDArray[np.int64], rest: Iterator[NDArray[np.int64]], axis: int
    ) -> list[NDArray[np.float64]]:
        drawn = next(rest) if values.shape[1] > 1 else np.zeros((*items.shape[:-1], 1), dtype=int)
        by_seed = [np.stack([row[items].mean(axis) for row in kind], axis=axis) for kind in values]
        return [np.take_along_axis(one, drawn, axis).mean(axis) for one in by_seed]

    def statistic(items: NDArray[np.int64], *seeds: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        rest = iter(seeds)
        own, other = (means(values, items, rest, axis) for values in (first, second))
        ratios = [
            np.divide(cost, its, out=np.full_like(cost, math.inf), where=its > 0)
            for cost, its in zip(own[1:], other[1:], strict=True)
        ]
        return np.stack([own[0] - other[0], own[1] - other[1], *ratios])

    return statistic


def _without_spread(difference: float, n: int) -> Estimate:
    """Items that all differ alike show no spread, which is no certainty: as far as as many without a miss reach."""
    reach = wilson(0, n)[1]
    return Estimate(difference, max(-1.0, difference - reach), min(1.0, difference + reach), 0.0)


def _discordant(first: pd.Series, second: pd.Series) -> Discordant:
    return Discordant(int((first & ~second).sum()), int((~first & second).sum()))

"""Point estimates with 95 % intervals; accuracies are fractions, which tables turn into percent."""

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv, ndtr, stdtr, stdtrit
from scipy.stats import binomtest

CONFIDENCE = 0.95
#: One-sided risk of an interval.
TAIL = (1 - CONFIDENCE) / 2
_PERCENT = 100.0
# Relative change below which leaving out an item counts as no change (floating-point noise).
_DUST = 1e-12
# Smallest distance of an interval's end from its value; tolerance for integers.
_NEAR, _WHOLE = 1e-9, 1e-6

Array = NDArray[np.float64]


class Estimate(NamedTuple):
    """A value with its 95 % interval, its squared standard error and degrees of freedom."""

    mean: float
    low: float
    high: float
    variance: float
    df: float = math.inf


class Spread(NamedTuple):
    """A value with its sampling variance over questions and trainings, and intervals from it."""

    value: float
    variance: float
    df: float
    # Numbers of questions worth 100 and -100 points, and n; set if all others are worth 0.
    counts: tuple[int, int, int] | None = None
    stretch: float = 1.0  # factor on the interval; above 1 for the difference from a published value
    share_of: int = 0  # number of questions, if the value is a percentage of questions or of events in them

    def ends(self, tail: float = TAIL) -> tuple[float, float]:
        """Return the ends of the interval, whose error probability is ``tail`` on either side.

        A share stays between 0 and 100 %. Its interval is Wilson's if questions are counted or no question moves it.
        """
        if self.share_of and (self.counts or not 0 < self.variance < math.inf):
            low, high = wilson(round(self.value / _PERCENT * self.share_of), self.share_of, tail)
            return _PERCENT * low, _PERCENT * high
        if self.counts:
            low, high = (_PERCENT * end for end in paired(*self.counts, tail))
            return self.value - self.stretch * (self.value - low), self.value + self.stretch * (high - self.value)
        reach = self.stretch * t_quantile(self.df, tail) * math.sqrt(self.variance)
        low, high = self.value - reach, self.value + reach
        return (max(0.0, low), min(_PERCENT, high)) if self.share_of else (low, high)

    @property
    def p(self) -> float:
        """Return the two-sided p of zero. It is below 5 % exactly if the 95 % interval excludes zero."""
        from statsmodels.stats.contingency_tables import mcnemar

        if self.counts:
            first, second, _ = self.counts
            return float(mcnemar([[0, first], [second, 0]], exact=True).pvalue)
        if self.variance == 0:
            return float(self.value == 0)
        return float(2 * stdtr(self.df, -abs(self.value) / np.sqrt(self.variance)))

    def p_above(self, border: float) -> float:
        """Return the one-sided p that the value is at most a border.

        It is below 2.5 % exactly if the 95 % interval lies above the border.
        """
        if self.counts:
            return paired_p_above(*self.counts, border / _PERCENT)
        if not 0 < self.variance < math.inf:
            return float(self.variance == math.inf or self.value <= border)
        return float(stdtr(self.df, -(self.value - border) / math.sqrt(self.variance)))

    def estimate(self, lowest: float = -math.inf, highest: float = math.inf) -> Estimate:
        """Return the value with its 95 % interval, clipped to its range."""
        low, high = self.ends()
        return Estimate(self.value, max(lowest, low), min(highest, high), self.variance, self.df)


def t_quantile(df: float, tail: float = TAIL) -> float:
    """Return the quantile of Student's t with upper tail ``tail``; normal if ``df`` is infinite."""
    return float(-stdtrit(df, tail))


def wilson(correct: int, n: int, tail: float = TAIL) -> tuple[float, float]:
    """Return the Wilson score interval of ``correct`` out of ``n``.

    >>> [round(100 * share, 1) for share in wilson(23, 32)]
    [54.6, 84.4]
    """
    interval = binomtest(correct, n).proportion_ci(1 - 2 * tail, method="wilson")
    return float(interval.low), float(interval.high)


@cache
def paired(first: int, second: int, n: int, tail: float = TAIL) -> tuple[float, float]:
    """Return the interval of a paired difference in accuracy, (``first`` - ``second``) / ``n``.

    ``first`` and ``second`` count the questions that only the first or only the second method got right.

    Tango's score interval (Statistics in Medicine 17, 1998), widened to the exact one given the number of discordant
    questions (Clopper and Pearson) if that reaches further. It excludes zero exactly if McNemar's exact test rejects,
    and far from zero it allows for the random number of discordant questions.
    """
    z, difference, discordant = t_quantile(math.inf, tail), (first - second) / n, first + second

    def excess(delta: float) -> float:
        return abs(first - second - n * delta) - z * _tango_error(first, second, n, delta)

    low = -1.0 if second == n else brentq(excess, -1, difference - _NEAR)
    high = 1.0 if first == n else brentq(excess, difference + _NEAR, 1)
    least = betaincinv(first, second + 1, tail) if first else 0.0
    most = betaincinv(first + 1, second, 1 - tail) if second else 1.0
    exact = ((2 * float(share) - 1) * discordant / n for share in (least, most))
    return min(low, next(exact)), max(high, next(exact))


def paired_p_above(first: int, second: int, n: int, border: float) -> float:
    """Return the one-sided p that the true paired difference, (``first`` - ``second``) / ``n``, is at most a border.

    It inverts :func:`paired`: the larger p of the score test and the exact test.
    """
    error, distance = _tango_error(first, second, n, border), first - second - n * border
    score = float(ndtr(-distance / error)) if error else float(distance <= 0)
    # Share of discordant questions for the first method at which the difference equals the border.
    share = (border * n / (first + second) + 1) / 2 if first + second else float(border >= 0)
    exact = 0.0 if share <= 0 else 1.0 if share >= 1 or not first else float(betainc(first, second + 1, share))
    return max(score, exact)


def _tango_error(first: int, second: int, n: int, delta: float) -> float:
    """Return the standard error of ``first`` - ``second`` under a supposed true difference.

    The share of questions that only the second method gets right is its maximum-likelihood estimate given that
    difference (Tango, Statistics in Medicine 17, 1998).
    """
    turn = first + second - (2 * n - first + second) * delta
    against = (turn + math.sqrt(max(0.0, turn**2 + 8 * n * second * delta * (1 - delta)))) / (4 * n)
    return math.sqrt(max(0.0, n * (2 * against + delta * (1 - delta))))


class Jackknife:
    """Leave-one-out values of measures, for variances over questions and trainings.

    A value is an array: as measured, then without each question and each training in turn. Arithmetic on these arrays
    is elementwise, so :meth:`spread` applies to any function of measured values.

    Args:
        questions: The number of questions of each test set.
        trainings: The number of trainings of each measurement. A single training adds no variance.
    """

    def __init__(self, questions: Mapping[Hashable, int], trainings: Mapping[Hashable, int]) -> None:
        several = {key: count for key, count in trainings.items() if count > 1}
        ends = 1 + np.cumsum([0, *questions.values(), *several.values()])
        slices = [slice(*pair) for pair in pairwise(ends)]
        self.questions = dict(zip(questions, slices, strict=False))
        self.trainings = dict(zip(several, slices[len(questions) :], strict=True))
        self._counts = np.array([*questions.values(), *several.values()], dtype=float)
        self._are_questions = np.arange(len(self._counts)) < len(questions)
        self._starts, self._length = ends[:-1], int(ends[-1])

    def ratio(self, tops: Array, bottoms: Array | None, questions: Hashable, trainings: Hashable = None) -> Array:
        """Return Σ tops / Σ bottoms over the questions (:func:`leave_one_out`), as a mean over the trainings."""
        return self.mean(*leave_one_out(tops, bottoms), questions, trainings)

    def mean(self, whole: Array, without: Array, questions: Hashable, trainings: Hashable = None) -> Array:
        """Return the mean over trainings (..., trainings) that are also given without each question (..., questions).

        Trainings without a value are ignored.
        """
        values = np.repeat(_mean(whole)[..., np.newaxis], self._length, axis=-1)
        if questions in self.questions:
            values[..., self.questions[questions]] = _mean(np.moveaxis(without, -2, -1))
        if trainings in self.trainings:
            left = ~np.eye(whole.shape[-1], dtype=bool)
            values[..., self.trainings[trainings]] = _mean(np.where(left, whole[..., np.newaxis, :], np.nan))
        return values

    def spread(
        self,
        values: Array,
        *,
        are_points: bool = False,
        is_share: bool = False,
        published: Mapping[Hashable, int] | None = None,
    ) -> Spread:
        """Return a value with its jackknife variance and degrees of freedom.

        The variances of questions and trainings add up, so variation with both counts twice and the interval is
        conservative. Degrees of freedom are Satterthwaite's: number of trainings - 1, and for questions the effective
        number (Σ e²)² / Σ e⁴ - 1.

        Args:
            values: From :meth:`ratio`, or computed from such values.
            are_points: Whether they are points of accuracy. If every question is worth 100, 0 or -100 points, the
                exact test is used.
            is_share: Whether they are percentages of one test set, or of events in it.
            published: Known sample sizes of the published value: questions and trainings. The
                interval is then widened to that of the difference from the published value.
        """
        value, counts = float(values[0]), self._counts
        with np.errstate(invalid="ignore"):
            moves = values[1:] - value
            is_dust = np.abs(moves) <= _DUST * max(1.0, abs(value))
        moves[~np.isfinite(moves) | is_dust] = 0.0
        squared = moves * moves
        squares, fourths = (np.add.reduceat(powers, self._starts - 1) for powers in (squared, squared * squared))
        carrying = np.divide(squares**2, fourths, out=np.ones_like(squares), where=fourths > 0)
        degrees = np.maximum(np.where(self._are_questions, carrying, counts) - 1, 1.0)
        # One question or training gives no variance.
        variances = np.where(counts > 1, squares * (counts - 1) / counts, math.inf)
        total = float(variances.sum())
        is_known = 0 < total < math.inf
        parts = variances / total if is_known else self._are_questions / self._are_questions.sum()
        sizes = [(published or {}).get(key, math.inf) for key in (*self.questions, *self.trainings)]
        return Spread(
            value,
            total,
            float(1 / (parts**2 / degrees).sum()),
            self._discordant_counts(value, moves, squares) if are_points else None,
            math.sqrt(1 + (parts * counts / sizes).sum()) if published else 1.0,
            int(counts[self._are_questions].min()) if is_share else 0,
        )

    def _discordant_counts(self, value: float, moves: Array, squares: Array) -> tuple[int, int, int] | None:
        """Return (wins, losses, n) of a paired comparison, for the exact test.

        None unless only one test set moves the value and each of its questions counts 100, 0 or -100 points.
        """
        moving = np.flatnonzero(squares)
        if len(moving) > 1 or not self._are_questions[moving].all():
            return None
        place = moving[0] if len(moving) else np.argmin(self._counts[self._are_questions])
        n, start = int(self._counts[place]), self._starts[place] - 1
        worth = (value - (n - 1) * moves[start : start + n]) / _PERCENT
        first, others, second = (int(np.count_nonzero(np.abs(worth - whole) < _WHOLE)) for whole in (1, 0, -1))
        return (first, second, n) if first + second + others == n else None


def leave_one_out(tops: Array, bottoms: Array | None = None) -> tuple[Array, Array]:
    """Return Σ top / Σ bottom over the questions, shape (...), and again without each question, shape (..., questions).

    Without bottoms it is the mean over the questions.
    """
    bottoms = np.ones_like(tops) if bottoms is None else bottoms
    top, bottom = tops.sum(axis=-1, keepdims=True), bottoms.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole, without = top / bottom, (top - tops) / (bottom - bottoms)
    # NaN if nothing is left, whatever rounding gives.
    without[np.broadcast_to(bottom - bottoms <= 0, without.shape)] = np.nan
    return whole[..., 0], without


def _mean(values: Array) -> Array:
    """Return the mean over the last axis, ignoring NaN."""
    known = np.count_nonzero(~np.isnan(values), axis=-1)
    return np.divide(np.nansum(values, axis=-1), known, out=np.full(known.shape, np.nan), where=known > 0)


def accuracy(seeds: Sequence[Sequence[bool]]) -> Estimate:
    """Return the accuracy over the items of a test set from the verdicts of one or several seeds.

    One seed gets a Wilson interval, which does not cover the spread between trainings. So do verdicts that are all
    equal, and a single item. Several seeds get the interval of :meth:`Jackknife.spread`; docs/report.md has its
    coverage.
    """
    verdicts = np.array(seeds, dtype=float)
    if (verdicts == verdicts[0]).all():
        verdicts = verdicts[:1]  # Seeds that answer alike are one sample.
    estimate = estimates([{"right": Ratio(right, np.ones_like(right))} for right in verdicts])["right"]
    if verdicts.shape[1] == 1:
        # One value has an unknown variance: take the largest possible.
        return estimate._replace(variance=0.25, df=1.0)
    if estimate.variance > 0:
        return estimate
    # Values that are all equal have variance 0: take it from Wilson's interval.
    return estimate._replace(variance=((estimate.high - estimate.low) / t_quantile(math.inf)) ** 2, df=math.inf)


def macro_average(means: ArrayLike, variances: ArrayLike, degrees: ArrayLike) -> Spread:
    """Return the unweighted mean of independent test sets, with Satterthwaite's degrees of freedom."""
    means, squared, degrees = (np.asarray(values, dtype=float) for values in (means, variances, degrees))
    count, total = len(means), float(squared.sum() / len(means) ** 2)
    parts = squared / squared.sum() if 0 < total < math.inf else np.full(count, 1 / count)
    per_degree = math.fsum(parts**2 / degrees)
    return Spread(math.fsum(means) / count, total, 1 / per_degree if per_degree else math.inf)


class Ratio(NamedTuple):
    """A measure of one seed: Σ numerators / Σ denominators over the questions."""

    numerators: Array
    denominators: Array  # 0 for a question that does not count
    is_share: bool = True  # whether the ratio lies between 0 and 1

    @property
    def value(self) -> float:
        """Return the ratio; NaN if all denominators are 0."""
        total = self.denominators.sum()
        return float(self.numerators.sum() / total) if total else float("nan")

    @property
    def cases(self) -> int:
        return int(np.count_nonzero(self.denominators))


def mean_of(values: ArrayLike) -> Ratio:
    """Return the mean of one value per question, as a ratio."""
    array = np.asarray(values, dtype=float)
    return Ratio(array, np.ones(len(array)), is_share=False)


def mean(seeds: Sequence[ArrayLike]) -> Estimate:
    """Return the mean of one value per question over one or several seeds (:func:`estimates`)."""
    return estimates([{"mean": mean_of(values)} for values in seeds])["mean"]


def estimates(seeds: Sequence[Mapping[str, Ratio]]) -> dict[str, Estimate]:
    """Return mean over the seeds and 95 % interval (:meth:`Jackknife.spread`) of every measure that any seed has."""
    # A seed without a measure is left out of its mean. A share gets a Wilson interval if it counts questions
    # or is exactly 0 or 1.
    names = list(dict.fromkeys(name for seed in seeds for name in seed))
    nothing = np.zeros(next(len(ratio.numerators) for seed in seeds for ratio in seed.values()))
    jackknife = Jackknife({None: len(nothing)}, {None: len(seeds)})
    result = {}
    for name in names:
        ratios = [seed.get(name, Ratio(nothing, nothing)) for seed in seeds]
        tops, bottoms = (np.array([ratio[part] for ratio in ratios], dtype=float) for part in (0, 1))
        spread = jackknife.spread(jackknife.ratio(tops, bottoms, None))
        is_share = all(ratio.is_share for ratio in ratios)
        # One seed, and each question counts as yes or no.
        is_counted = is_share and len(seeds) == 1 and bool(np.isin([tops, bottoms], (0, 1)).all())
        if 0 < spread.variance < math.inf and not is_counted:
            result[name] = spread.estimate(0.0 if tops.min() >= 0 else -math.inf, 1.0 if is_share else math.inf)
            continue
        # One question or training gives no variance.
        low = high = spread.value if spread.variance == 0 else math.nan
        if is_share:
            cases = max(ratio.cases for ratio in ratios)
            low, high = wilson(round(spread.value * cases), cases)
            low, high = min(spread.value, low), max(spread.value, high)
        result[name] = Estimate(spread.value, low, high, spread.variance if is_counted else 0.0, spread.df)
    return result

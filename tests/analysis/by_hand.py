"""Independent implementations of statistics, from the formulas."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats


def mcnemar(first: int, second: int) -> float:
    return float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0


Part = tuple[float, float]


def estimate_of(mean: float, parts: Sequence[Part]) -> tuple[float, float, float]:
    """Value, half-width of its interval, and p, from variance components with degrees of freedom (Satterthwaite)."""
    variance = sum(part for part, _ in parts)
    df = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    scale = math.sqrt(variance)
    return mean, stats.t.ppf(0.975, df) * scale, 2 * stats.t.sf(abs(mean) / scale, df)


def questions_of(values: np.ndarray) -> Part:
    """Return the variance of a mean over questions, and its degrees of freedom."""
    error = values - values.mean()
    return values.var(ddof=1) / len(values), max(1.0, (error**2).sum() ** 2 / (error**4).sum() - 1)


def crossed(values: np.ndarray, *others: np.ndarray) -> tuple[float, float, float]:
    """Estimate from values by training and question, shape (S, n), minus others on the same questions."""
    items = values.mean(axis=0) - sum(other.mean(axis=0) for other in others)
    sides = [side for side in (values, *others) if len(side) > 1]
    trainings = [(side.mean(axis=1).var(ddof=1) / len(side), len(side) - 1) for side in sides]
    return estimate_of(items.mean(), [questions_of(items), *trainings])


def averaged(columns: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """Estimate of the mean over several test sets, whose variances add."""
    parts = [(variance / len(columns) ** 2, degrees) for variance, degrees in map(questions_of, columns)]
    return estimate_of(np.mean([column.mean() for column in columns]), parts)

"""Statistics written out once more, from the formulas."""

import math

import numpy as np
from scipy import stats


def mcnemar(first: int, second: int) -> float:
    """Return the exact two-sided p."""
    return float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0


def crossed(values: np.ndarray, *others: np.ndarray) -> tuple[float, float, float]:
    """Value, reach of its interval and p, of one value a training and question, shape (S, n); of others subtracted.

    Questions are shared, trainings are not; Satterthwaite's degrees of freedom.
    """
    items = values.mean(axis=0) - sum(other.mean(axis=0) for other in others)
    n, error = len(items), items - items.mean()
    parts = [(items.var(ddof=1) / n, (error**2).sum() ** 2 / (error**4).sum() - 1)]
    for side in (values, *others):
        if (several := len(side)) > 1:
            parts.append((side.mean(axis=1).var(ddof=1) / several, several - 1))
    variance = sum(part for part, _ in parts)
    df = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    mean, scale = items.mean(), math.sqrt(variance)
    return mean, stats.t.ppf(0.975, df) * scale, 2 * stats.t.sf(abs(mean) / scale, df)

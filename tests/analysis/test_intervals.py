"""Estimates and intervals against independent computations."""

import doctest
import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from analysis import statistics
from analysis.statistics import accuracy, macro_average, paired, wilson
from tests.analysis.by_hand import averaged, mcnemar

Z = NormalDist().inv_cdf(0.975)


def counts_up_to(most: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.integers(1, most).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def wilson_by_hand(k: int, n: int) -> tuple[float, float]:
    p, spread = k / n, Z * math.sqrt(k / n * (1 - k / n) / n + Z**2 / (4 * n**2))
    return (p + Z**2 / (2 * n) - spread) / (1 + Z**2 / n), (p + Z**2 / (2 * n) + spread) / (1 + Z**2 / n)


@given(counts_up_to(2000))
def test_wilson_is_the_score_interval(count: tuple[int, int]):
    assert wilson(*count) == pytest.approx(wilson_by_hand(*count), abs=1e-9)


def test_the_examples_of_docstrings() -> None:
    assert doctest.testmod(statistics) == (0, 1)


@given(counts_up_to(59), st.data(), st.sampled_from([0.025, 0.005]))
@settings(max_examples=25)
def test_a_paired_interval_is_tangos_or_the_exact_one_whichever_is_wider(count, data, tail: float):
    """The score statistic with the likeliest share against, found by search; and the share of discordant questions."""
    first, n = count
    second = data.draw(st.integers(0, n - first))

    def score(delta: float) -> float:
        def surprise(against: float) -> float:
            shares = np.clip([against + delta, against, 1 - 2 * against - delta], 1e-300, 1)
            return -float(np.array([first, second, n - first - second]) @ np.log(shares))

        ends = max(0.0, -delta), (1 - delta) / 2
        against = optimize.minimize_scalar(surprise, bounds=ends, method="bounded", options={"xatol": 1e-12}).x
        return (first - second - n * delta) / math.sqrt(n * (2 * against + delta - delta**2))

    ends = paired(first, second, n, tail)
    z, discordant = NormalDist().inv_cdf(1 - tail), first + second
    exact = stats.binomtest(first, discordant).proportion_ci(1 - 2 * tail) if discordant else (0.5, 0.5)
    for end, share, sign in zip(ends, exact, (1, -1), strict=True):
        conditional = (2 * share - 1) * discordant / n
        assert sign * (conditional - end) >= -1e-9
        if abs(conditional - end) > 1e-9 and abs(end) < 1:
            assert score(end) == pytest.approx(sign * z, abs=1e-3)


def test_a_paired_interval_leaves_out_zero_exactly_where_the_test_does():
    for first, second in itertools.product(range(40), repeat=2):
        low, high = paired(first, second, 200)
        assert (low <= 0 <= high) == (mcnemar(first, second) >= 0.05), (first, second)


@pytest.mark.parametrize("right", [False, True])
def test_perfect_agreement_is_not_certainty(right: bool):
    estimate = accuracy([[right] * 20, [right] * 20])
    assert estimate.high - estimate.low > 0.1
    low, high = estimate[1:3]
    assert (low, high) == wilson(20 * right, 20)
    # Nor are two trainings that are right on one question each, whose means do not move, or four perfect test sets.
    assert accuracy([[True, False], [False, True]])[1:3] == wilson(1, 2)
    average = averages_of([[[right] * 20]] * 4)
    assert (average.mean, average.high - average.low) == (right, pytest.approx((high - low) / 2))


mixed = st.lists(st.booleans(), min_size=2, max_size=50).filter(lambda column: len(set(column)) == 2)


def averages_of(columns: list[list[list[bool]]]) -> statistics.Estimate:
    parts = [accuracy(column) for column in columns]
    of_parts = ([getattr(part, name) for part in parts] for name in ("mean", "variance", "df"))
    return macro_average(*of_parts).estimate(0, 1)


@given(st.lists(mixed, min_size=1, max_size=5))
def test_macro_average_weighs_test_sets_equally(columns):
    mean, reach, _ = averaged([np.array(column, float) for column in columns])
    expected = (mean, max(0.0, mean - reach), min(1.0, mean + reach))
    assert averages_of([[column] for column in columns])[:3] == pytest.approx(expected)

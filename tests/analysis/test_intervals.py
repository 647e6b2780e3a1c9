"""Estimates and intervals against independent computations."""

from __future__ import annotations

import itertools
import math
import statistics as standard
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.statistics import accuracy, macro_average, wilson

Z = NormalDist().inv_cdf(0.975)
counts = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def wilson_by_hand(k: int, n: int) -> tuple[float, float]:
    p, spread = k / n, Z * math.sqrt(k / n * (1 - k / n) / n + Z**2 / (4 * n**2))
    return (p + Z**2 / (2 * n) - spread) / (1 + Z**2 / n), (p + Z**2 / (2 * n) + spread) / (1 + Z**2 / n)


@given(counts)
@settings(deadline=None)
def test_wilson_is_the_score_interval(count: tuple[int, int]):
    assert wilson(*count) == pytest.approx(wilson_by_hand(*count), abs=1e-9)


@given(st.lists(st.booleans(), min_size=1, max_size=200), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_one_seed_counts_and_ignores_the_order(correct, random):
    estimate = accuracy([correct])
    assert estimate.mean == pytest.approx(sum(correct) / len(correct))
    assert (estimate.low, estimate.high) == wilson(sum(correct), len(correct))
    random.shuffle(correct)
    assert accuracy([correct]) == pytest.approx(estimate)


def test_several_seeds_are_resampled_with_the_items():
    """Against the mean of each of the equally likely crossed resamples."""
    seeds = [[True, False, False], [True, True, False], [False, True, True]]
    verdicts = np.array(seeds, dtype=float)
    every = [itertools.product(range(size), repeat=size) for size in verdicts.shape]
    exact = np.array([verdicts[np.ix_(drawn, items)].mean() for drawn, items in itertools.product(*every)])
    estimate = accuracy(seeds)
    assert estimate.variance == pytest.approx(exact.var(), rel=0.05)
    assert np.mean(exact < estimate.low) < 0.03 > np.mean(exact > estimate.high)
    assert np.mean(exact <= estimate.low) > 0.02 < np.mean(exact >= estimate.high)


@pytest.mark.parametrize("right", [False, True])
def test_perfect_agreement_is_not_certainty(right: bool):
    estimate = accuracy([[right] * 20, [right] * 20])
    assert estimate.high - estimate.low > 0.1
    assert (estimate.low, estimate.high) == wilson(20 * right, 20)


def test_an_average_of_perfect_test_sets_is_not_certain_either():
    low, high = wilson(20, 20)
    average = macro_average([accuracy([[True] * 20])] * 4)
    assert (average.mean, average.high) == (1, 1)
    assert average.high - average.low == pytest.approx((high - low) / 2)
    assert macro_average([accuracy([[False] * 20])]).high == pytest.approx(wilson(0, 20)[1])


mixed = st.lists(st.booleans(), min_size=2, max_size=50).filter(lambda column: len(set(column)) == 2)


@given(st.lists(mixed, min_size=1, max_size=5))
@settings(deadline=None)
def test_macro_average_weighs_test_sets_equally(columns):
    estimate = macro_average([accuracy([column]) for column in columns])
    error = math.sqrt(sum(standard.variance(column) / len(column) for column in columns)) / len(columns)
    mean = standard.fmean(standard.fmean(column) for column in columns)
    assert estimate.mean == pytest.approx(mean)
    assert estimate.low == pytest.approx(max(0.0, mean - Z * error))
    assert estimate.high == pytest.approx(min(1.0, mean + Z * error))

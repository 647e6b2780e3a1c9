"""Estimates and intervals against independent computations."""

from __future__ import annotations

import itertools
import math
import statistics as standard
import time
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.statistics import Estimate, accuracy, macro_average, wilson

Z = NormalDist().inv_cdf(0.975)
counts = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
grids = st.tuples(st.integers(2, 4), st.integers(2, 30)).flatmap(
    lambda shape: st.lists(
        st.lists(st.booleans(), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
    )
)


def wilson_by_hand(k: int, n: int) -> tuple[float, float]:
    p, spread = k / n, Z * math.sqrt(k / n * (1 - k / n) / n + Z**2 / (4 * n**2))
    return (p + Z**2 / (2 * n) - spread) / (1 + Z**2 / n), (p + Z**2 / (2 * n) + spread) / (1 + Z**2 / n)


@given(counts)
@settings(deadline=None)
def test_wilson_is_the_score_interval(count: tuple[int, int]):
    assert wilson(*count) == pytest.approx(wilson_by_hand(*count), abs=1e-9)


def test_wilson_of_a_known_count():
    assert wilson(115, 128) == pytest.approx((0.8339, 0.9397), abs=5e-4)


@given(st.lists(st.booleans(), min_size=1, max_size=200), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_one_seed_counts_and_ignores_the_order(correct, random):
    estimate = accuracy([correct])
    assert estimate.mean == pytest.approx(sum(correct) / len(correct))
    assert (estimate.low, estimate.high) == wilson(sum(correct), len(correct))
    random.shuffle(correct)
    assert accuracy([correct]) == estimate


def every_resample(seeds: list[list[bool]]) -> np.ndarray:
    """The mean of each of the equally likely crossed resamples."""
    verdicts = np.array(seeds, dtype=float)
    count, n = verdicts.shape
    return np.array(
        [
            verdicts[np.ix_(drawn, items)].mean()
            for drawn in itertools.product(range(count), repeat=count)
            for items in itertools.product(range(n), repeat=n)
        ]
    )


@given(grids)
@settings(deadline=None, max_examples=40)
def test_several_seeds_have_their_mean_inside_the_interval(seeds):
    estimate = accuracy(seeds)
    assert estimate.mean == pytest.approx(standard.fmean(standard.fmean(seed) for seed in seeds))
    assert 0 <= estimate.low <= estimate.mean <= estimate.high <= 1
    assert estimate.low < estimate.high
    assert accuracy(seeds) == estimate


@pytest.mark.parametrize(
    "seeds",
    [
        [[True, True, False, True], [False, True, False, True]],
        [[True, False, False], [True, True, False], [False, True, True]],
        [[True] * 5, [False] * 5],
        [[True, False, True, True, False], [False, True, False, True, True]],
    ],
)
def test_several_seeds_are_resampled_with_the_items(seeds):
    estimate, exact = accuracy(seeds), every_resample(seeds)
    assert estimate.variance == pytest.approx(exact.var(), rel=0.05)
    assert np.mean(exact < estimate.low) < 0.03
    assert np.mean(exact <= estimate.low) > 0.02
    assert np.mean(exact > estimate.high) < 0.03
    assert np.mean(exact >= estimate.high) > 0.02


def test_the_spread_between_trainings_is_in_the_interval():
    apart = accuracy([[place % 10 < right for place in range(200)] for right in (5, 7, 9)])
    alike = accuracy([[(place + shift) % 10 < 7 for place in range(200)] for shift in (0, 1, 2)])
    assert apart.mean == pytest.approx(alike.mean)
    assert apart.high - apart.low > 2 * (alike.high - alike.low)
    assert apart.low < 0.55
    assert apart.high > 0.85


def test_a_large_test_set_with_three_seeds_takes_no_time():
    random = np.random.default_rng(1)
    seeds = (random.random((3, 1319)) < 0.7).tolist()
    start = time.process_time()
    estimate = accuracy(seeds)
    assert time.process_time() - start < 2
    assert estimate.high - estimate.low < 0.1


@pytest.mark.parametrize("right", [False, True])
def test_perfect_agreement_is_not_certainty(right: bool):
    estimate = accuracy([[right] * 20, [right] * 20])
    assert estimate.high - estimate.low > 0.1
    assert (estimate.low, estimate.high) == wilson(20 * right, 20)


def test_a_seed_that_repeats_another_adds_no_certainty():
    seed = [True] * 30 + [False] * 10
    once, thrice = accuracy([seed]), accuracy([seed] * 3)
    assert thrice.mean == once.mean
    assert thrice.variance == pytest.approx(once.variance, rel=0.1)


def test_nothing_to_estimate():
    with pytest.raises(ValueError, match="at least one"):
        accuracy([[]])
    with pytest.raises(ValueError, match="at least one"):
        macro_average([])


def test_seeds_on_different_items_do_not_mix():
    with pytest.raises(ValueError, match="shorter"):
        accuracy([[True, False], [True]])


@given(st.lists(st.lists(st.booleans(), min_size=2, max_size=50), min_size=1, max_size=5))
@settings(deadline=None)
def test_macro_average_weighs_test_sets_equally(columns):
    estimate = macro_average([accuracy([column]) for column in columns])
    error = math.sqrt(sum(standard.variance(column) / len(column) for column in columns)) / len(columns)
    mean = standard.fmean(standard.fmean(column) for column in columns)
    assert estimate.mean == pytest.approx(mean)
    assert estimate.low == pytest.approx(max(0.0, mean - Z * error))
    assert estimate.high == pytest.approx(min(1.0, mean + Z * error))


def test_one_item_says_nothing_about_the_average():
    lone = macro_average([accuracy([[True]])])
    assert isinstance(lone, Estimate)
    assert lone.low < 0.1

"""Choosing by chance and by majority."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harness.agents import rng
from harness.agents.sampling import most_frequent, sample


@settings(deadline=None)
@given(
    weights=st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda weights: sum(weights) > 1e-3),
    uniform=st.floats(0, 1, exclude_min=True, exclude_max=True),
)
def test_sample_passes_the_uniform_number_where_the_sum_does(weights: list[float], uniform: float) -> None:
    probabilities = np.array(weights) / sum(weights)
    total, expected = 0.0, None
    for index, probability in enumerate(probabilities):
        total += probability
        if expected is None and uniform < total:
            expected = index
    index = sample(probabilities, uniform)
    assert probabilities[index] > 0
    assert index == (expected if expected is not None else np.flatnonzero(probabilities)[-1])


def test_sample_cuts_exactly_at_the_sums() -> None:
    probabilities = np.array([0.25, 0.0, 0.5, 0.25])
    cuts = {0.01: 0, math.nextafter(0.25, 0): 0, 0.25: 2, math.nextafter(0.75, 0): 2, 0.75: 3, 0.99: 3}
    assert {uniform: sample(probabilities, uniform) for uniform in cuts} == cuts
    short = np.array([0.3, 0.7 - 1e-12, 0.0])
    assert sample(short, 1 - 1e-13) == 1


def test_keyed_draws_follow_the_distribution() -> None:
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    chosen = Counter(sample(probabilities, rng.uniform("0", str(number), "role")) for number in range(4000))
    assert stats.chisquare([chosen[index] for index in range(4)], 4000 * probabilities).pvalue > 1e-3


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=10))
def test_the_most_frequent_is_chosen_and_of_several_the_first_chosen(chosen: list[str]) -> None:
    counts = Counter(chosen)
    first = next(one for one in chosen if counts[one] == max(counts.values()))
    assert most_frequent(chosen) == first


def test_a_tie_goes_to_the_first_chosen_and_not_to_the_last_or_the_alphabet() -> None:
    assert most_frequent(["b", "a", "a", "b"]) == "b"
    assert most_frequent(["c", "a", "b"]) == "c"
    assert most_frequent(["c", "a", "b", "b"]) == "b"

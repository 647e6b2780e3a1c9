"""Choosing by chance and by majority."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.agents import rng
from harness.agents.sampling import most_frequent, sample


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

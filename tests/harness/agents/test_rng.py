import math
from collections import Counter
from statistics import fmean, pstdev

import numpy as np
from scipy import stats

from harness.agents import rng
from harness.agents.trajectory import sample


def test_uniform_fills_the_unit_interval_evenly():
    values = sorted(rng.uniform("evenness", str(n)) for n in range(4000))
    # Kolmogorov-Smirnov distance; 1.95 / sqrt(n) is exceeded with probability 0.001.
    distance = max(abs(value - (rank + 0.5) / 4000) for rank, value in enumerate(values))
    assert distance < 1.95 / 4000**0.5


def test_normal_is_standard():
    values = [rng.normal("moments", str(n)) for n in range(4000)]
    assert abs(fmean(values)) < 0.06
    assert abs(pstdev(values) - 1) < 0.05


def test_draws_follow_weights_and_probabilities():
    shares = np.array([0.45, 0.25, 0.2, 0.1])
    weighted = Counter(rng.weighted(list(shares), "weights", str(n)) for n in range(4000))
    sampled = Counter(sample(shares, rng.uniform("sampled", str(n))) for n in range(4000))
    for counts in (weighted, sampled):
        assert stats.chisquare([counts[place] for place in range(4)], 4000 * shares).pvalue > 1e-3


def test_stream_covers_its_range_and_repeats():
    stream, again = rng.Stream("s"), rng.Stream("s")
    numbers = [stream.below(7) for _ in range(500)]
    assert set(numbers) == set(range(7))
    assert numbers == [again.below(7) for _ in range(500)]


def test_sample_cuts_exactly_at_the_sums() -> None:
    probabilities = np.array([0.25, 0.0, 0.5, 0.25])
    cuts = {0.01: 0, math.nextafter(0.25, 0): 0, 0.25: 2, math.nextafter(0.75, 0): 2, 0.75: 3, 0.99: 3}
    assert {uniform: sample(probabilities, uniform) for uniform in cuts} == cuts
    assert sample(np.array([0.3, 0.7 - 1e-12, 0.0]), 1 - 1e-13) == 1

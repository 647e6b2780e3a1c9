from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from statistics import fmean, pstdev

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from harness.agents import rng
from harness.files import ROOT

# Other work on the machine must not decide whether a property holds.
relaxed = hypothesis_settings(deadline=None)


def test_uniform_fills_the_unit_interval_evenly():
    values = sorted(rng.uniform("evenness", str(n)) for n in range(4000))
    # Kolmogorov-Smirnov distance; 1.95 / sqrt(n) is exceeded with probability 0.001.
    distance = max(abs(value - (rank + 0.5) / 4000) for rank, value in enumerate(values))
    assert distance < 1.95 / 4000**0.5


def test_normal_is_standard():
    values = [rng.normal("moments", str(n)) for n in range(4000)]
    assert abs(fmean(values)) < 0.06
    assert abs(pstdev(values) - 1) < 0.05


def test_parts_of_a_key_are_kept_apart():
    assert rng.uniform("ab", "c") != rng.uniform("a", "bc")


@relaxed
@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=6), st.text())
def test_weighted_stays_in_range(weights: list[float], key: str):
    assert 0 <= rng.weighted(weights, key) < len(weights)


def test_weighted_follows_the_weights():
    counts = Counter(rng.weighted([0.45, 0.25, 0.2, 0.1], "weights", str(n)) for n in range(4000))
    for place, share in enumerate([0.45, 0.25, 0.2, 0.1]):
        assert abs(counts[place] / 4000 - share) < 4 * (share * (1 - share) / 4000) ** 0.5


def test_stream_covers_its_range_and_repeats():
    numbers = [rng.Stream("s").below(7)]
    stream, again = rng.Stream("s"), rng.Stream("s")
    numbers = [stream.below(7) for _ in range(500)]
    assert set(numbers) == set(range(7))
    assert numbers == [again.below(7) for _ in range(500)]


def test_another_process_draws_the_same():
    code = "from harness.agents import rng; print(repr(rng.normal('k', 'ü')), rng.Stream('x').below(1000))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{rng.normal('k', 'ü')!r} {rng.Stream('x').below(1000)}\n"}

"""Error rates and coverage in docs/report.md: ``pytest -m nightly -s tests/nightly/test_coverage.py``."""

import itertools

import numpy as np
import pytest

from analysis.mix import compare_with_mix, mixes
from tests.analysis.test_coverage import DISCORDANT, LIMIT, SIZES, covered, exact_rate, rates

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]


def test_equal_methods() -> None:
    for n, discordant in itertools.product(SIZES, DISCORDANT):
        print(f"\nn = {n}, {discordant:.0%} discordant: exactly {100 * exact_rate(n, discordant):.1f} %", end="")
        for seeds, rivals in itertools.product((1, 3), (1, 20)):
            found = rates(2000 if rivals == 1 else 500, n, discordant, rivals=rivals, seeds=seeds)
            told = " and ".join(f"{100 * rate:.1f}" for rate in found)
            print(f"; {seeds} seeds, {rivals} rivals: contradicted and reproduced {told} %", end="")
            assert max(found) <= LIMIT


@pytest.mark.parametrize("n", SIZES)
def test_a_leader_by_one_point_over_twenty(n: int) -> None:
    fails, holds = rates(1000, n, 0.05, rivals=20, lead=0.01)
    print(f"\nn = {n}: contradicted {100 * fails:.1f} %, reproduced {100 * holds:.1f} %")
    assert fails <= LIMIT


def test_intervals_of_three_seeds() -> None:
    for n, right, spread in itertools.product(SIZES, (0.7, 0.9), (0.0, 0.1, 0.3, 1.0)):
        share = covered(2000, n, right, spread)
        print(f"\nn = {n}, {right:.0%} right, logits of trainings ± {spread}: covers {100 * share:.1f} %", end="")
        assert share >= 0.9


#: Accuracies of single models, each three times as dear as the one before, and what a row does with them.
MIXES = {
    "random": (0.48, 0.7),
    "informed, three trainings": (0.48, 0.7),
    "cascade": (0.33, 0.51),
    "random, poor models": (0.02, 0.04),
    "random, five models": (0.5, 0.6, 0.62, 0.7, 0.72),
    "random, five equal models": (0.7,) * 5,
    "team of the best of five": (0.5, 0.6, 0.62, 0.7, 0.72),
}


def row_and_models(random: np.random.Generator, n: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Draw points and costs of a row, shape (2, seeds, n), and of single models, shape (models, 2, 1, n)."""
    accuracies, seeds, ease = np.array(MIXES[name])[:, np.newaxis], 3 if "three" in name else 1, random.normal(0, 2, n)
    logits = 1.6 * np.log(accuracies / (1 - accuracies)) + ease
    right = random.random(logits.shape) < 1 / (1 + np.exp(-logits))
    cost = 3.0 ** np.arange(len(right))[:, np.newaxis] * np.exp(
        random.normal(0, 0.5, n) + random.normal(0, 0.3, right.shape)
    )
    gain = (1.0 * right[-1] - right[0]) * ("informed" in name) + random.normal(0, 0.5, (seeds, 1)) * (seeds > 1)
    last = random.random((seeds, n)) < 1 / (1 + np.exp(-0.7 * gain))
    picks = np.where(last, len(right) - 1, random.integers(0, len(right) - 1, (seeds, n)))
    row = right[picks, np.arange(n)], cost[picks, np.arange(n)]
    if name == "cascade":
        fails = ~right[-1:] & (random.random(n) < 0.9)
        row = np.where(fails, right[:1], right[-1:]), cost[-1:] + fails * cost[:1]
    elif "team" in name:
        row = random.random((1, n)) < 1 / (1 + np.exp(-logits[-1:] - 0.4)), 3 * cost[-1:]
    return np.stack([100.0 * row[0], row[1]]), np.stack([100.0 * right, cost], axis=1)[:, :, np.newaxis]


def covered_by_mix(samples: int, n: int, name: str) -> float:
    """Return the share of intervals that cover the difference from the population's mix."""
    random = np.random.default_rng(n)
    populations = ([part.mean(axis=-1) for part in row_and_models(random, 20_000, name)] for _ in range(50))
    row, models = (np.mean(part, axis=0) for part in zip(*populations, strict=True))
    points, cost = row.mean(axis=-1)
    truth = points - mixes(np.array([cost]), models[:, 1], models[:, 0]).max()
    found = (compare_with_mix(*row_and_models(random, n, name)) for _ in range(samples))
    return float(np.mean([low <= truth <= high for _, _, low, high, _ in found]))


def test_intervals_against_the_mix() -> None:
    for name, n in itertools.product(MIXES, (30, 129, 500)):
        share = covered_by_mix(1000, n, name)
        print(f"\n{name}, n = {n}: covers {100 * share:.1f} %", end="")
        assert share >= 0.93

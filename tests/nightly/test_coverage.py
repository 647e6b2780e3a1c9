"""Error rates and coverage in docs/report.md: ``pytest -m nightly -s tests/nightly/test_coverage.py``."""

import itertools

import numpy as np
import pytest

from analysis.beyond.splits import over_splits
from analysis.bounds import compare_with_mix, mixes
from analysis.paper.claims.report import FAILS, HOLDS, conjunction, decide
from analysis.statistics import TAIL, Jackknife, accuracy
from tests.analysis.cells import claim

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]
SIZES, DISCORDANT = (128, 416, 1056), (0.01, 0.03, 0.1)
# The most that may be wrong to either side.
LIMIT = 0.025


def outcome(random: np.random.Generator, n: int, discordant: float, rivals: int, seeds: int) -> str:
    """Return the verdict on a method that is said to be ahead of every rival and is as good as they, from one sample.

    Each rival differs from it on a share of the questions; of several seeds each training does by itself.
    """
    base = random.random(n) < 0.5
    share = discordant / (1 if seeds == 1 else 2)

    def trained(share: float) -> np.ndarray:
        return base ^ (random.random((seeds, n)) < share)

    methods = [trained(0.0 if seeds == 1 else share), *(trained(share) for _ in range(rivals))]
    jackknife = Jackknife({"questions": n}, dict.fromkeys(range(rivals + 1), seeds))
    own, *others = (jackknife.ratio(100.0 * right, None, "questions", place) for place, right in enumerate(methods))
    [ahead] = claim({"row": "gmr", "than": "masrouter", "at_least": 0}).parts
    spreads = [jackknife.spread(own - other, are_points=True) for other in others]
    return conjunction({decide(ahead, *spread.ends(), *spread.ends(TAIL / rivals)) for spread in spreads})


def covered(samples: int, n: int, right: float, spread: float) -> float:
    """Return the share of the intervals over three seeds that cover the accuracy over all questions and trainings.

    Questions have logits of standard deviation 2, trainings of ``spread``.
    """
    random, middle = np.random.default_rng(n), np.log(right / (1 - right))

    def chances(*shape: int) -> np.ndarray:
        questions, trainings = random.normal(0, 2, (1, shape[-1])), random.normal(0, spread, (*shape[:-1], 1))
        return 1 / (1 + np.exp(-(middle + questions + trainings)))

    truth = chances(1000, 1000).mean()
    found = (accuracy((random.random((3, n)) < chances(3, n)).tolist()) for _ in range(samples))
    return float(np.mean([one.low <= truth <= one.high for one in found]))


def test_equal_methods() -> None:
    for n, discordant in itertools.product(SIZES, DISCORDANT):
        print(f"\nn = {n}, {discordant:.0%} discordant", end="")
        for seeds, rivals in itertools.product((1, 3), (1, 20)):
            random, samples = np.random.default_rng(n), 2000 if rivals == 1 else 500
            found = [outcome(random, n, discordant, rivals, seeds) for _ in range(samples)]
            rates = [found.count(verdict) / samples for verdict in (FAILS, HOLDS)]
            told = " and ".join(f"{100 * rate:.1f}" for rate in rates)
            print(f"; {seeds} seeds, {rivals} rivals: contradicted and reproduced {told} %", end="")
            assert max(rates) <= LIMIT


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


#: Rows whose gain is averaged over splits. The best of training of five models is compared with the first of them.
GAINS = (
    "regression over the second model",
    "regression over the best of training",
    "best of training of five equal models",
    "best of training of five models",
    "coin of each split over the second model",
)


def gains(random: np.random.Generator, name: str, train: np.ndarray) -> np.ndarray:
    """Draw questions, and return the gain in points after each split, shape (splits, questions)."""
    n = train.shape[1]
    features, ease = random.normal(size=(n, 4)), random.normal(0, 1.5, (n, 1))
    if "five" in name:
        logits = ease + random.normal(0, 1, (n, 5)) + (0.5 if "equal" in name else np.array([0.6, 0.5, 0.4, 0.2, -0.5]))
    else:
        logits = ease + 0.7 * features[:, :1] * [1, -1] + [0.3, 0.5]
    right = 100.0 * (random.random(logits.shape) < 1 / (1 + np.exp(-logits)))
    best = right[:, (train @ right + 1e-6 * np.arange(right.shape[1])).argmax(axis=1)].T
    if "five" in name:
        return best - right[:, 0]
    if "coin" in name:
        takes_first = random.random(train.shape) < 1 / (1 + np.exp(-random.normal(0.5, 1, (len(train), 1))))
    else:
        inputs, lead = np.hstack([np.ones((n, 1)), features]), (right[:, :1] - right[:, 1:]) / 100
        normal = np.einsum("kn,ni,nj->kij", train, inputs, inputs, optimize=True) + np.eye(5)
        takes_first = np.linalg.solve(normal, (train @ (inputs * lead))[..., np.newaxis])[..., 0] @ inputs.T > 0
    return np.where(takes_first, right[:, 0], right[:, 1]) - (best if "training" in name else right[:, 1])


@pytest.mark.parametrize("name", GAINS)
def test_intervals_over_splits(name: str) -> None:
    for n, share in itertools.product((161, 600), (0.2, 0.6)):
        random, m = np.random.default_rng(n), round(n * share)
        alone = np.arange(m + 400)[np.newaxis] < m
        truth = np.mean([gains(random, name, 1.0 * alone)[~alone].mean() for _ in range(3000)])
        for splits in (20, 50):
            found = []
            for _ in range(1000):
                train = random.random((splits, n)).argsort(axis=1) < m
                spread = over_splits(np.where(train, np.nan, gains(random, name, 1.0 * train)))
                found += [spread.ends()] if spread.variance else []  # else tables print no interval
            low, high = np.transpose(found)
            share_covered = np.mean((low <= truth) & (truth <= high))
            print(f"\n{name}, {splits} splits, n = {n}, {share:.0%} for training", end="")
            print(f": covers {100 * share_covered:.1f} % of {len(found)}, mean width {np.mean(high - low):.1f}", end="")
            assert share_covered >= 0.92

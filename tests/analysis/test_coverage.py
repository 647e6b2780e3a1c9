"""Error rates of verdicts and coverage of intervals, over many simulated samples."""

import bisect

import numpy as np
import pytest
from scipy import stats

from analysis.paper.claims.judge import FAILS, HOLDS, conjunction, decide
from analysis.statistics import TAIL, Jackknife, accuracy, paired, paired_p_above
from tests.analysis.cells import claim

SIZES, DISCORDANT = (128, 416, 1056), (0.01, 0.03, 0.1)
# The most that may be wrong to either side.
LIMIT = 0.025


def outcome(
    random: np.random.Generator, n: int, discordant: float, rivals: int = 1, lead: float = 0.0, seeds: int = 1
) -> str:
    """Return the verdict on a method, said to be ahead of every rival, from one sample; in truth it is by ``lead``.

    Each rival differs from it on a share of the questions; of several seeds each training does by itself.
    """
    base = random.random(n) < 0.5
    share = discordant / (1 if seeds == 1 else 2)

    def trained(lead: float, share: float) -> np.ndarray:
        return base ^ (random.random((seeds, n)) < share + np.where(base, lead, -lead))

    methods = [trained(0.0, 0.0 if seeds == 1 else share), *(trained(lead, share) for _ in range(rivals))]
    jackknife = Jackknife({"questions": n}, dict.fromkeys(range(rivals + 1), seeds))
    own, *others = (jackknife.ratio(100.0 * right, None, "questions", place) for place, right in enumerate(methods))
    [ahead] = claim({"row": "gmr", "than": "masrouter", "at_least": 0}).parts
    spreads = [jackknife.spread(own - other, are_points=True) for other in others]
    return conjunction({decide(ahead, *spread.ends(), *spread.ends(TAIL / rivals)) for spread in spreads})


def rates(samples: int, n: int, discordant: float, **given: float) -> tuple[float, float]:
    random = np.random.default_rng(n)
    found = [outcome(random, n, discordant, **given) for _ in range(samples)]
    return found.count(FAILS) / samples, found.count(HOLDS) / samples


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


def exact_rate(n: int, discordant: float) -> float:
    """The probability that one of two equal methods is said to be ahead, over every number of discordant questions."""
    rate = 0.0
    for total in range(1, n + 1):
        if (share := stats.binom.pmf(total, n, discordant)) > 1e-12:
            wins = range(total // 2, total + 1)
            enough = bisect.bisect(wins, 0, key=lambda first: paired(first, total - first, n)[0])
            rate += share * stats.binom.sf(total // 2 + enough - 1, total, 0.5)
    return rate


@pytest.mark.parametrize("n", [pytest.param(n, marks=[] if n == 416 else pytest.mark.nightly) for n in SIZES])
def test_of_equal_methods_neither_is_said_to_be_ahead(n: int) -> None:
    exact = {discordant: exact_rate(n, discordant) for discordant in DISCORDANT}
    assert max(exact.values()) <= LIMIT
    assert rates(300, n, 0.03) == pytest.approx((exact[0.03], exact[0.03]), abs=0.02)
    assert max(rates(100, n, 0.03, seeds=3)) <= LIMIT


def test_a_true_leader_is_not_contradicted_and_a_clear_one_is_seen() -> None:
    assert rates(50, 416, 0.05, rivals=20, lead=0.01)[0] <= LIMIT
    fails, holds = rates(20, 1056, 0.1, rivals=20, lead=0.08)
    assert (fails, holds) == (0, 1)
    # And who is behind one named rival is.
    assert rates(20, 1056, 0.1, lead=-0.06)[0] == 1


@pytest.mark.parametrize(("n", "spread"), [(128, 0.0), (416, 0.3)])
def test_three_seeds_cover_what_they_say(n: int, spread: float) -> None:
    assert 0.9 <= covered(300, n, 0.7, spread) <= 0.99


def test_a_row_that_is_worse_by_the_margin_seldom_passes_as_no_worse() -> None:
    """The exact rate at the border, over all numbers of questions that only one of the two gets right."""
    n, margin = 32, 0.1
    passing = np.array(
        [
            [first + second <= n and paired_p_above(first, second, n, -margin) < LIMIT for second in range(n + 1)]
            for first in range(n + 1)
        ]
    )
    first, second = np.meshgrid(range(n + 1), range(n + 1), indexing="ij")
    for lost in (margin + 0.01, margin + 0.05, margin + 0.3):
        left = np.where(first + second <= n, n - first - second, 0)
        chances = [lost - margin, lost, 1 - 2 * lost + margin]
        rate = stats.multinomial.pmf(np.stack([first, second, left], axis=-1), n, chances)[passing].sum()
        assert rate <= LIMIT

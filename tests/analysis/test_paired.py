"""Paired comparisons against independent computations, and what must hold for any two methods."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis import statistics
from analysis.paired import Comparison, Discordant, compare, detectable, holm
from analysis.results import Cell, Data, Run
from harness.errors import UserError

Verdicts = Sequence[Sequence[bool]]
pairs = st.integers(2, 25).flatmap(
    lambda n: st.tuples(*[st.lists(st.booleans(), min_size=n, max_size=n) for _ in range(2)])
)
paid = pairs.flatmap(
    lambda both: st.tuples(
        st.just(both),
        *[st.lists(st.floats(0.01, 10), min_size=len(both[0]), max_size=len(both[0])) for _ in range(2)],
    )
)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=6)


def cell(correct: Sequence[bool], costs: Sequence[float], seed: int, names: Sequence[str]) -> Cell:
    data = Data(source="embedded", splits="official", checksum="c", split_checksum="s", n_test=len(correct))
    run = Run(
        **dict.fromkeys(("preset", "method", "method_title", "benchmark", "benchmark_title", "backbone"), "m"),
        **dict.fromkeys(("config_hash", "code", "run_id", "sandbox", "rule_version"), "h"),
        seed=seed,
        simulated=True,
        calibrated=False,
        notes=(),
        data=data,
        backbones={},
    )
    items = pd.DataFrame({"item_id": names, "correct": correct, "cost": costs, "cost_total": costs})
    return Cell(Path(f"cell-{seed}"), run, items)


def measurement(
    seeds: Verdicts, costs: Sequence[Sequence[float]] | None = None, names: Sequence[str] | None = None
) -> list[Cell]:
    """One method; without costs, each question costs one."""
    spent = costs or [[1.0] * len(seeds[0])] * len(seeds)
    ids = names or [f"{place:04d}" for place in range(len(seeds[0]))]
    return [cell(correct, cost, seed, ids) for seed, (correct, cost) in enumerate(zip(seeds, spent, strict=True))]


def pair(both: int, first: int, second: int, neither: int) -> Comparison:
    """Two methods with one seed and these counts of questions."""
    here = [True] * (both + first) + [False] * (second + neither)
    there = [True] * both + [False] * first + [True] * second + [False] * neither
    return compare(measurement([here]), measurement([there]))


def mcnemar_by_hand(first: int, second: int) -> float:
    total = first + second
    tail = sum(math.comb(total, k) for k in range(min(first, second) + 1)) / 2**total
    return min(1.0, 2 * tail)


@given(st.integers(0, 40), st.integers(0, 40))
@settings(deadline=None)
def test_mcnemar_is_the_exact_binomial_test(first, second):
    assert Discordant(first, second).p == pytest.approx(mcnemar_by_hand(first, second), rel=1e-9)


def test_a_known_comparison():
    found = pair(both=60, first=15, second=5, neither=20)
    assert (found.n, found.discordant) == (100, (15, 5))
    assert found.accuracy.mean == pytest.approx(0.10)
    assert found.discordant.p == pytest.approx(2 * 21700 / 2**20)
    assert (found.discordant.odds_ratio, found.discordant.cohens_g) == (3, 0.25)
    error = math.sqrt((0.2 - 0.1**2) / 100)
    assert math.sqrt(found.accuracy.variance) == pytest.approx(error, rel=0.05)
    assert found.accuracy.low == pytest.approx(0.1 - 1.96 * error, abs=0.011)
    assert found.accuracy.high == pytest.approx(0.1 + 1.96 * error, abs=0.011)


def test_effect_sizes_without_discordance_on_one_side():
    assert (Discordant(4, 0).odds_ratio, Discordant(4, 0).cohens_g) == (math.inf, 0.5)
    assert (Discordant(0, 4).odds_ratio, Discordant(0, 4).cohens_g) == (0, -0.5)
    assert math.isnan(Discordant(0, 0).odds_ratio)
    assert Discordant(0, 0).cohens_g == 0


@pytest.mark.parametrize("right", [[True, False] * 10, [True] * 20])
def test_a_method_does_not_differ_from_itself_but_that_is_no_certainty(right):
    same = measurement([right])
    found = compare(same, same)
    assert (found.accuracy.mean, found.cost.mean, found.cost_ratio.mean) == (0, 0, 1)
    assert (found.discordant.p, found.detectable) == (1, math.inf)
    reach = 1.959964**2 / (20 + 1.959964**2)
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx((-reach, reach), abs=1e-4)


def test_right_everywhere_against_wrong_everywhere():
    found = pair(0, 20, 0, 0)
    assert found.accuracy.mean == found.accuracy.high == 1
    assert 0.8 < found.accuracy.low < 0.9


def test_a_single_question_leaves_everything_open():
    found = compare(measurement([[True]]), measurement([[False]], [[4.0]]))
    assert (found.accuracy.mean, found.cost.mean, found.cost_ratio.mean) == (1, -3, 0.25)
    assert found.accuracy.high - found.accuracy.low > 0.7
    assert (found.cost.low, found.cost.high) == (-math.inf, math.inf)
    assert (found.cost_ratio.low, found.cost_ratio.high) == (0, math.inf)
    assert found.detectable == math.inf


def test_the_bootstrap_of_three_questions_is_that_of_all_its_resamples():
    right, first, second = np.array([1.0, 0.0, -1.0]), np.array([1.0, 2.0, 6.0]), np.array([2.0, 1.0, 1.0])
    found = compare(
        measurement([[True, True, False]], [first.tolist()]), measurement([[False, True, True]], [second.tolist()])
    )
    every = [list(drawn) for drawn in itertools.product(range(3), repeat=3)]
    expected = {
        "accuracy": [right[drawn].mean() for drawn in every],
        "cost": [(first - second)[drawn].mean() for drawn in every],
        "cost_ratio": [first[drawn].sum() / second[drawn].sum() for drawn in every],
    }
    for name, values in expected.items():
        estimate = getattr(found, name)
        assert estimate.variance == pytest.approx(np.var(values), rel=0.05)
        assert (estimate.low, estimate.high) == pytest.approx((min(values), max(values)))


def test_a_seed_that_repeats_another_adds_no_certainty():
    here, there = [True, False] * 20, [True, True, False, False] * 10
    once, thrice = (compare(measurement([here] * count), measurement([there] * count)) for count in (1, 3))
    assert (thrice.discordant, thrice.detectable) == (once.discordant, pytest.approx(once.detectable))
    assert thrice.accuracy.mean == pytest.approx(once.accuracy.mean)
    assert thrice.accuracy.variance == pytest.approx(once.accuracy.variance, rel=0.05)


def test_several_seeds_are_drawn_with_the_questions():
    """All resamples of three questions, of two seeds of the first method and of two of the second, by enumeration."""
    here, there = np.array([[1, 1, 0], [1, 0, 0]]), np.array([[0, 1, 0], [1, 1, 0]])
    first, second = np.array([[1.0, 2.0, 6.0], [2.0, 2.0, 2.0]]), np.array([[2.0, 1.0, 1.0], [5.0, 1.0, 3.0]])
    found = compare(
        measurement(here.astype(bool).tolist(), first.tolist()),
        measurement(there.astype(bool).tolist(), second.tolist()),
    )
    draws = [
        (np.ix_(own, items), np.ix_(other, items))
        for items in itertools.product(range(3), repeat=3)
        for own in itertools.product(range(2), repeat=2)
        for other in itertools.product(range(2), repeat=2)
    ]
    expected = {
        "accuracy": [here[own].mean() - there[other].mean() for own, other in draws],
        "cost": [first[own].mean() - second[other].mean() for own, other in draws],
        "cost_ratio": [first[own].sum() / second[other].sum() for own, other in draws],
    }
    for name, values in expected.items():
        estimate = getattr(found, name)
        assert estimate.variance == pytest.approx(np.var(values), rel=0.06)
        assert np.mean(np.array(values) < estimate.low - 1e-9) < 0.03
        assert np.mean(np.array(values) > estimate.high + 1e-9) < 0.03


def test_a_method_without_training_meets_one_with_several_seeds():
    rng = np.random.default_rng(3)
    seeds, costs = (rng.random((3, 60)) < 0.8).tolist(), rng.random((3, 60)).tolist()
    alone, spent = (rng.random(60) < 0.6).tolist(), rng.random(60).tolist()
    found, back = (
        compare(*pair) for pair in itertools.permutations([measurement(seeds, costs), measurement([alone], [spent])])
    )
    assert found.accuracy.mean == pytest.approx(np.mean(seeds) - np.mean(alone))
    assert found.cost.mean == pytest.approx(np.mean(costs) - np.mean(spent))
    assert back.accuracy.mean == pytest.approx(-found.accuracy.mean)
    assert back.accuracy.variance == pytest.approx(found.accuracy.variance, rel=0.05)
    counts = list(zip(seeds[0], alone, strict=True))
    assert found.discordant == (counts.count((True, False)), counts.count((False, True)))
    assert found.first_seed == pytest.approx(np.mean(seeds[0]) - np.mean(alone))


def test_trainings_that_differ_make_a_difference_less_sure():
    alone = measurement([[place % 10 < 5 for place in range(200)]])
    apart = compare(measurement([[place % 10 < right for place in range(200)] for right in (5, 7, 9)]), alone).accuracy
    alike = compare(measurement([[place % 10 < 7 for place in range(200)]] * 3), alone).accuracy
    assert apart.mean == pytest.approx(alike.mean)
    assert apart.low < 0.05 < alike.low


def test_the_interval_covers_the_true_difference():
    """Nominally in 95 % of the samples; the bounds allow for the 200 of them and for the bootstrap at n = 120."""
    rng = np.random.default_rng(11)
    hits = 0
    with mock.patch.object(statistics, "RESAMPLES", 499):
        for _ in range(200):
            ease = rng.random((2, 120))
            shared = rng.random(120) < 0.5
            first, second = shared | (ease[0] < 0.5), shared | (ease[1] < 0.3)
            interval = compare(measurement([first.tolist()]), measurement([second.tolist()])).accuracy
            hits += interval.low <= 0.5 * 0.2 <= interval.high
    assert 0.90 <= hits / 200 <= 0.985


@given(paid)
@settings(deadline=None, max_examples=40)
def test_the_other_way_round_everything_is_mirrored(drawn):
    (here, there), first, second = drawn
    one, other = measurement([here], [first]), measurement([there], [second])
    found, back = compare(one, other), compare(other, one)
    for name in ("accuracy", "cost"):
        forth, mirrored = getattr(found, name), getattr(back, name)
        assert (forth.mean, forth.low, forth.high) == pytest.approx((-mirrored.mean, -mirrored.high, -mirrored.low))
    assert found.cost_ratio.mean == pytest.approx(1 / back.cost_ratio.mean)
    assert found.discordant == back.discordant[::-1]
    assert found.discordant.p == back.discordant.p
    assert found.discordant.cohens_g == pytest.approx(-back.discordant.cohens_g)
    assert found.detectable == back.detectable


@given(paid, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_the_order_of_questions_does_not_matter(drawn, random):
    (here, there), first, second = drawn
    order = list(range(len(here)))
    random.shuffle(order)
    found = compare(measurement([here], [first]), measurement([there], [second]))
    one, other = (
        measurement([[correct[place] for place in order]], [[costs[place] for place in order]])
        for correct, costs in ((here, first), (there, second))
    )
    shuffled = compare(one, other)
    assert (shuffled.discordant, shuffled.detectable) == (found.discordant, pytest.approx(found.detectable))
    assert shuffled.cost_ratio.mean == pytest.approx(found.cost_ratio.mean)
    for name in ("accuracy", "cost"):
        before, after = getattr(found, name), getattr(shuffled, name)
        assert after.mean == pytest.approx(before.mean)
        assert after.variance == pytest.approx(before.variance, rel=0.2, abs=1e-12)


@given(paid, st.floats(0, 100), st.floats(0.01, 100))
@settings(deadline=None, max_examples=40)
def test_intervals_hold_their_point_and_follow_the_costs(drawn, more, factor):
    (here, there), first, second = drawn
    found = compare(measurement([here], [first]), measurement([there], [second]))
    for estimate in (found.accuracy, found.cost, found.cost_ratio):
        assert estimate.low <= estimate.mean <= estimate.high
    assert found.accuracy.low >= -1
    assert found.accuracy.high <= 1
    dearer = compare(
        measurement([here], [[cost + more for cost in first]]), measurement([there], [[cost + more for cost in second]])
    )
    assert dearer.cost[:3] == pytest.approx(found.cost[:3], abs=1e-9)
    scaled = compare(
        measurement([here], [[cost * factor for cost in first]]),
        measurement([there], [[cost * factor for cost in second]]),
    )
    assert scaled.cost_ratio == pytest.approx(found.cost_ratio)
    assert scaled.cost.mean == pytest.approx(factor * found.cost.mean, abs=1e-9)


@pytest.mark.filterwarnings("error")
def test_what_cost_nothing_is_infinitely_cheaper():
    some = compare(measurement([[True, False, True]]), measurement([[True, True, False]], [[0.0, 0.0, 2.0]]))
    assert (some.cost_ratio.mean, some.cost_ratio.high) == (1.5, math.inf)
    nothing = compare(measurement([[True, False, True]]), measurement([[True, True, False]], [[0.0] * 3]))
    assert nothing.cost_ratio[:3] == (math.inf, math.inf, math.inf)


def test_other_questions_are_refused():
    here = measurement([[True, False]])
    with pytest.raises(UserError, match=r"cell-0 \(2 items\) and cell-0 \(3 items\) did not answer the same items"):
        compare(here, measurement([[True, False, True]]))
    with pytest.raises(UserError, match="same items"):
        compare(here, measurement([[True, False]], names=["0000", "0002"]))


@pytest.mark.parametrize(("n", "discordance"), [(128, 0.2), (416, 0.1), (1056, 0.15)])
def test_the_detectable_difference_is_shown_with_80_percent_power(n, discordance):
    """By the exact McNemar test, which is a little less powerful than the approximation."""
    count = round(n * discordance)
    difference = detectable([1.0] * (count // 2) + [-1.0] * (count - count // 2) + [0.0] * (n - count))
    rate = count / n
    share = (rate + difference) / 2 / rate
    power = sum(
        stats.binom.pmf(k, n, rate)
        * sum(stats.binom.pmf(one, k, share) for one in range(k + 1) if mcnemar_by_hand(one, k - one) < 0.05)
        for k in range(max(0, count - 30), count + 31)
    )
    assert 0.7 < power < 0.85


def test_the_detectable_difference_solves_the_power_of_a_paired_t_test():
    n, root = 50, math.sqrt(0.4)
    effect = detectable([1.0] * 10 + [-1.0] * 10 + [0.0] * 30) / root
    critical = stats.t.ppf(0.975, n - 1)
    shifted = stats.nct(n - 1, effect * math.sqrt(n))
    assert shifted.sf(critical) + shifted.cdf(-critical) == pytest.approx(0.8, abs=1e-5)


@pytest.mark.parametrize("n", [12, 73, 120, 1319, 20_000])
def test_the_detectable_difference_exists_for_any_number_of_questions(n):
    needed = detectable([1.0, -1.0] * (n // 2) + [1.0] * (n % 2))
    assert needed * math.sqrt(n) == pytest.approx(2.8016, rel=1.5 / n + 1e-4)


@pytest.mark.parametrize("count", range(1, 6))
def test_too_few_discordant_questions_show_nothing(count):
    """Up to five of them, the exact test cannot reach 5 %, however many questions agree."""
    assert mcnemar_by_hand(count, 0) > 0.05
    assert detectable([1.0] * count + [0.0] * (1000 - count)) == math.inf


@given(p_values)
@settings(deadline=None, max_examples=25)
def test_holm_by_hand(values):
    adjusted = holm(values)
    order = sorted(range(len(values)), key=lambda place: values[place])
    reached = 0.0
    for rank, place in enumerate(order):
        reached = max(reached, min(1.0, (len(values) - rank) * values[place]))
        assert adjusted[place] == pytest.approx(reached)
    assert all(after >= before - 1e-15 for before, after in zip(values, adjusted, strict=True))


def test_nothing_to_adjust():
    assert holm([]) == []
    assert holm([0.03]) == [0.03]

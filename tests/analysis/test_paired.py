"""Paired comparisons against independent computations, and what must hold for any two methods."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.paired import ENDS, compare, detectable, holm, mcnemar
from analysis.results import Cell
from harness.errors import UserError

Verdicts = Sequence[Sequence[bool]]
paid = st.integers(2, 25).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.booleans(), min_size=n, max_size=n) for _ in range(2)],
        *[st.lists(st.floats(0.01, 10), min_size=n, max_size=n) for _ in range(2)],
    )
)


def cells(
    seeds: Verdicts, costs: Sequence[Sequence[float]] | None = None, names: Sequence[str] | None = None
) -> list[Cell]:
    """One method; without costs, each question costs one."""
    spent = costs or [[1.0] * len(seeds[0])] * len(seeds)
    ids = names or [f"{place:04d}" for place in range(len(seeds[0]))]
    frames = [
        pd.DataFrame({"item_id": ids, "correct": correct, "cost": cost, "cost_total": cost})
        for correct, cost in zip(seeds, spent, strict=True)
    ]
    return [cast(Cell, SimpleNamespace(folder=Path("cell"), items=frame)) for frame in frames]


def pair(both: int, first: int, second: int, neither: int) -> dict[str, Any]:
    """Two methods with one seed and these counts of questions."""
    here = [True] * (both + first) + [False] * (second + neither)
    there = [True] * both + [False] * first + [True] * second + [False] * neither
    return compare(cells([here]), cells([there]))


def mcnemar_by_hand(first: int, second: int) -> float:
    total = first + second
    tail = sum(math.comb(total, k) for k in range(min(first, second) + 1)) / 2**total
    return min(1.0, 2 * tail)


@given(st.integers(0, 40), st.integers(0, 40))
@settings(deadline=None)
def test_mcnemar_is_the_exact_binomial_test(first: int, second: int) -> None:
    assert mcnemar(first, second) == pytest.approx(mcnemar_by_hand(first, second), rel=1e-9)


def test_a_known_comparison() -> None:
    found = pair(both=60, first=15, second=5, neither=20)
    assert (found["n"], found["first_alone"], found["second_alone"]) == (100, 15, 5)
    assert (found["difference"], found["difference_first_seed"]) == pytest.approx((10, 10))
    assert found["p_exact"] == pytest.approx(2 * 21700 / 2**20)
    assert (found["odds_ratio"], found["cohens_g"]) == (3, 0.25)
    error = 100 * math.sqrt((0.2 - 0.1**2) / 100)
    assert 100 * math.sqrt(found["variance"]) == pytest.approx(error, rel=0.05)
    assert found["difference_low"] == pytest.approx(10 - 1.96 * error, abs=1.1)
    assert found["difference_high"] == pytest.approx(10 + 1.96 * error, abs=1.1)


def test_what_does_not_differ_or_always_does_is_no_certainty() -> None:
    same = pair(10, 0, 0, 10)
    assert [same[name] for name in ("difference", "cost_difference", "cost_ratio", "p_exact")] == [0, 0, 1, 1]
    assert (same["detectable"], same["cohens_g"]) == (math.inf, 0)
    assert math.isnan(same["odds_ratio"])
    reach = 100 * 1.959964**2 / (20 + 1.959964**2)
    assert (same["difference_low"], same["difference_high"]) == pytest.approx((-reach, reach), abs=1e-2)
    always = pair(0, 20, 0, 0)
    assert (always["difference"], always["difference_high"], always["odds_ratio"]) == (100, 100, math.inf)
    assert 80 < always["difference_low"] < 90


def test_a_single_question_leaves_everything_open() -> None:
    found = compare(cells([[True]]), cells([[False]], [[4.0]]))
    assert [found[name] for name in ("difference", "cost_difference", "cost_ratio")] == [100, -3, 0.25]
    assert found["difference_high"] - found["difference_low"] > 70
    assert [found[f"cost_difference{end}"] for end in ENDS[1:]] == [-math.inf, math.inf]
    assert [found[f"cost_ratio{end}"] for end in ENDS[1:]] == [0, math.inf]
    assert found["detectable"] == math.inf


@pytest.mark.parametrize("seeds", [1, 2])
def test_the_bootstrap_is_that_of_all_resamples(seeds: int) -> None:
    """Of three questions, and of the seeds of each method where there are two, by enumeration."""
    here, there = np.array([[1, 1, 0], [1, 0, 0]])[:seeds], np.array([[0, 1, 0], [1, 1, 0]])[:seeds]
    first = np.array([[1.0, 2.0, 6.0], [2.0, 2.0, 2.0]])[:seeds]
    second = np.array([[2.0, 1.0, 1.0], [5.0, 1.0, 3.0]])[:seeds]
    found = compare(cells(here.tolist(), first.tolist()), cells(there.tolist(), second.tolist()))
    draws = [
        (np.ix_(own, items), np.ix_(other, items))
        for items in itertools.product(range(3), repeat=3)
        for own in itertools.product(range(seeds), repeat=seeds)
        for other in itertools.product(range(seeds), repeat=seeds)
    ]
    expected = {
        "difference": [100 * (here[own].mean() - there[other].mean()) for own, other in draws],
        "cost_difference": [first[own].mean() - second[other].mean() for own, other in draws],
        "cost_ratio": [first[own].sum() / second[other].sum() for own, other in draws],
    }
    assert found["variance"] == pytest.approx(np.var(expected["difference"]) / 1e4, rel=0.06)
    for name, values in expected.items():
        low, high = np.array(values) < found[f"{name}_low"] - 1e-9, np.array(values) > found[f"{name}_high"] + 1e-9
        assert low.mean() < 0.03
        assert high.mean() < 0.03
        assert found[f"{name}_low"] <= np.quantile(values, 0.06) + 1e-9
        assert found[f"{name}_high"] >= np.quantile(values, 0.94) - 1e-9


@given(paid)
@settings(deadline=None, max_examples=25)
def test_the_other_way_round_everything_is_mirrored(drawn: Any) -> None:
    here, there, first, second = drawn
    one, other = cells([here], [first]), cells([there], [second])
    found, back = compare(one, other), compare(other, one)
    for name in ("difference", "cost_difference"):
        low, high = found[f"{name}_low"], found[f"{name}_high"]
        assert low <= found[name] <= high
        mirrored = (-back[name], -back[f"{name}_high"], -back[f"{name}_low"])
        assert (found[name], low, high) == pytest.approx(mirrored)
    assert -100 <= found["difference_low"] <= found["difference_high"] <= 100
    assert found["cost_ratio"] == pytest.approx(1 / back["cost_ratio"])
    assert (found["first_alone"], found["p_exact"]) == (back["second_alone"], back["p_exact"])
    assert found["cohens_g"] == pytest.approx(-back["cohens_g"])
    assert found["detectable"] == back["detectable"]


@pytest.mark.filterwarnings("error")
def test_what_cost_nothing_is_infinitely_cheaper() -> None:
    some = compare(cells([[True, False, True]]), cells([[True, True, False]], [[0.0, 0.0, 2.0]]))
    assert (some["cost_ratio"], some["cost_ratio_high"]) == (1.5, math.inf)
    nothing = compare(cells([[True, False, True]]), cells([[True, True, False]], [[0.0] * 3]))
    assert [nothing[f"cost_ratio{end}"] for end in ENDS] == [math.inf] * 3


def test_other_questions_are_refused() -> None:
    here = cells([[True, False]])
    with pytest.raises(UserError, match=r"cell \(2 items\) and cell \(3 items\) did not answer the same items"):
        compare(here, cells([[True, False, True]]))
    with pytest.raises(UserError, match="same items"):
        compare(here, cells([[True, False]], names=["0000", "0002"]))


@pytest.mark.parametrize("n", [12, 73, 120, 1319, 20_000])
def test_the_detectable_difference_solves_the_power_of_a_paired_t_test(n: int) -> None:
    effect = detectable(np.array([1.0, -1.0] * (n // 2) + [1.0] * (n % 2)))
    critical, shifted = stats.t.ppf(0.975, n - 1), stats.nct(n - 1, effect * math.sqrt(n))
    assert shifted.sf(critical) == pytest.approx(0.8, abs=1e-4)


@pytest.mark.parametrize("count", [1, 5])
def test_too_few_discordant_questions_show_nothing(count: int) -> None:
    """Up to five of them, the exact test cannot reach 5 %, however many questions agree."""
    assert mcnemar_by_hand(count, 0) > 0.05
    assert detectable(np.array([1.0] * count + [0.0] * 1000)) == math.inf


@given(st.lists(st.floats(0, 1), max_size=6))
@settings(deadline=None, max_examples=25)
def test_holm_by_hand(values: list[float]) -> None:
    adjusted = holm(pd.Series([*values, np.nan]))
    assert len(adjusted) == len(values)
    reached = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda place: values[place])):
        reached = max(reached, min(1.0, (len(values) - rank) * values[place]))
        assert adjusted[place] == pytest.approx(reached)

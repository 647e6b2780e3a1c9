"""Paired comparisons against independent computations, what must hold for any two methods, and their table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
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
from analysis.source import Source
from analysis.table import BEST, NOT_RUN, Entry
from tests.analysis.reading import Read as Table
from tests.analysis.reading import paired, record_of, row_of

WriteCell = Callable[..., Path]


def cells(seeds: Sequence[Sequence[bool]], costs: Sequence[Sequence[float]] | None = None) -> list[Cell]:
    """One method; without costs, each question costs one."""
    spent = costs or [[1.0] * len(seeds[0])] * len(seeds)
    both = zip(seeds, spent, strict=True)
    frames = [pd.DataFrame({"correct": correct, "cost": cost, "cost_total": cost}) for correct, cost in both]
    return [cast(Cell, SimpleNamespace(items=frame)) for frame in frames]


def counts(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    """The verdicts of two methods with these counts of questions."""
    here = [True] * (both + first) + [False] * (second + neither)
    return here, [True] * both + [False] * first + [True] * second + [False] * neither


def pair(*sizes: int) -> dict[str, Any]:
    here, there = counts(*sizes)
    return compare(cells([here]), cells([there]))


def mcnemar_by_hand(first: int, second: int) -> float:
    total = first + second
    tail = sum(math.comb(total, k) for k in range(min(first, second) + 1)) / 2**total
    return min(1.0, 2 * tail)


@given(st.integers(0, 40), st.integers(0, 40))
@settings(deadline=None)
def test_mcnemar_is_the_exact_binomial_test(first: int, second: int) -> None:
    assert mcnemar(first, second) == pytest.approx(mcnemar_by_hand(first, second), rel=1e-9)


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


@pytest.mark.filterwarnings("error")
def test_a_single_question_leaves_everything_open_and_what_cost_nothing_is_infinitely_cheaper() -> None:
    found = compare(cells([[True]]), cells([[False]], [[4.0]]))
    assert [found[name] for name in ("difference", "cost_difference", "cost_ratio")] == [100, -3, 0.25]
    assert found["difference_high"] - found["difference_low"] > 70
    assert [found[f"cost_difference{end}"] for end in ENDS[1:]] == [-math.inf, math.inf]
    assert [found[f"cost_ratio{end}"] for end in ENDS[1:]] == [0, math.inf]
    assert found["detectable"] == math.inf
    free, dear = cells([[True, False, True]], [[0.0] * 3]), cells([[True, True, False]], [[0.0, 0.0, 2.0]])
    assert [compare(dear, dear)[f"cost_ratio{end}"] for end in ("", "_high")] == [1, math.inf]
    assert [compare(dear, free)[f"cost_ratio{end}"] for end in ENDS] == [math.inf] * 3


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
        assert max(low.mean(), high.mean()) < 0.03
        assert found[f"{name}_low"] <= np.quantile(values, 0.06) + 1e-9
        assert found[f"{name}_high"] >= np.quantile(values, 0.94) - 1e-9


@pytest.mark.parametrize("n", [12, 73, 1319, 20_000])
def test_the_detectable_difference_solves_the_power_of_a_paired_t_test(n: int) -> None:
    effect = detectable(np.array([1.0, -1.0] * (n // 2) + [1.0] * (n % 2)))
    critical, shifted = stats.t.ppf(0.975, n - 1), stats.nct(n - 1, effect * math.sqrt(n))
    assert shifted.sf(critical) == pytest.approx(0.8, abs=1e-4)
    # Up to five discordant questions, the exact test cannot reach 5 %, however many agree.
    assert mcnemar_by_hand(5, 0) > 0.05
    assert detectable(np.array([1.0] * 5 + [0.0] * 1000)) == math.inf


@given(st.lists(st.floats(0, 1), max_size=6))
@settings(deadline=None, max_examples=25)
def test_holm_by_hand(values: list[float]) -> None:
    adjusted = holm(pd.Series([*values, np.nan]))
    assert len(adjusted) == len(values)
    reached = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda place: values[place])):
        reached = max(reached, min(1.0, (len(values) - rank) * values[place]))
        assert adjusted[place] == pytest.approx(reached)


def build(*folders: Path) -> Table:
    return paired.build(Source.of(folders))


def group_of(table: Table, group: str, *labels: str) -> dict[str, Entry]:
    """The entries of one row below one heading."""
    titles = [(one.title, column) for one in table.groups for column in one.columns]
    entries = row_of(table, *labels).entries
    return {column: entry for (of, column), entry in zip(titles, entries, strict=True) if of == group}


def test_a_pair(write_cell: WriteCell) -> None:
    ours, theirs = counts(60, 15, 5, 20)
    table = build(
        write_cell("gmr", "pool", correct=ours, cost=[0.3] * 50 + [0.5] * 50),
        write_cell("masrouter", "pool", correct=theirs, cost=0.5),
    )
    found = group_of(table, "GSM-Hard", "MASRouter")
    assert (found["Publ. diff."].text, found["Publ. cost ×"].text) == ("+4.55", "0.58")
    assert (found["Diff."].text, found["Diff."].sign) == ("+10.00", "")
    low, high = (float(end.replace("−", "-")) for end in found["Diff."].below.split(", "))
    error = 100 * math.sqrt((0.2 - 0.1**2) / 100)
    assert (low, high) == pytest.approx((10 - 1.96 * error, 10 + 1.96 * error), abs=1.1)
    assert (found["p"].text, found["p"].below, found["p"].mark) == ("0.041", "0.041", BEST)
    assert (found["Cost ×"].text, found["Cost ×"].sign) == ("0.80", "")
    record = record_of(table, method="masrouter")
    expected = {
        "reference_right_alone": 15,
        "row_right_alone": 5,
        "reference_accuracy": 75,
        "accuracy": 65,
        "n": 100,
        "odds_ratio": 3,
        "cohens_g": 0.25,
        "p_exact": 2 * 21700 / 2**20,
        "cost_difference": -0.1,
        "difference_first_seed": 10,
        "published_difference": 4.55,
    }
    assert {name: float(record[name]) for name in expected} == pytest.approx(expected)
    assert float(record["detectable_difference"]) == pytest.approx(100 * 2.83 * math.sqrt(0.2 / 100), rel=0.01)


def test_p_is_of_the_first_seed_adjusted_over_the_benchmarks_and_a_difference_of_all(write_cell: WriteCell) -> None:
    sizes = {"math": (60, 15, 5, 20), "mbpp": (50, 20, 4, 26), "humaneval": (50, 9, 8, 33)}
    folders = []
    for benchmark, size in sizes.items():
        ours, theirs = counts(*size)
        folders += [
            write_cell("gmr", "pool", benchmark, correct=ours),
            write_cell("gmr", "pool", benchmark, seed=1, correct=theirs),
            write_cell("masrouter", "pool", benchmark, correct=theirs),
        ]
    table = build(*folders, write_cell("gmr", "pool", "gsm_hard"))
    raw = [mcnemar_by_hand(first, second) for _, first, second, _ in sizes.values()]
    records = [record_of(table, method="masrouter", benchmark=key) for key in sizes]
    assert [float(one["p_exact"]) for one in records] == pytest.approx(raw)
    assert [float(one["p_holm"]) for one in records] == pytest.approx(list(holm(pd.Series(raw))))
    marks = [group_of(table, one, "MASRouter")["p"].mark for one in ("MATH", "MBPP", "HumanEval")]
    assert marks == ["", BEST, ""]
    assert (float(records[0]["difference"]), float(records[0]["difference_first_seed"])) == (5, 10)
    assert group_of(table, "GSM-Hard", "MASRouter")["Diff."].text == NOT_RUN


def test_the_average_is_the_mean_of_the_differences_and_their_variances_add(write_cell: WriteCell) -> None:
    """Against the normal interval of five paired means, written out."""
    sizes = {
        "math": (60, 15, 5, 20),
        "gsm_hard": (50, 20, 4, 26),
        "mbpp": (50, 9, 8, 33),
        "humaneval": (40, 5, 25, 30),
        "mmlu_pro": (30, 30, 10, 30),
    }
    folders, means, variances = [], [], []
    for benchmark, size in sizes.items():
        ours, theirs = counts(*size)
        folders += [
            write_cell("gmr", "pool", benchmark, correct=ours),
            write_cell("cot", "my-7B", benchmark, correct=theirs),
        ]
        differences = np.array(ours, dtype=float) - np.array(theirs, dtype=float)
        means.append(differences.mean())
        variances.append(differences.var() / len(differences))
    mean, reach = 100 * np.mean(means), 196 * math.sqrt(sum(variances)) / 5
    table = build(*folders, write_cell("masrouter", "pool", correct=counts(*sizes["gsm_hard"])[0]))
    found = group_of(table, "Avg.", "CoT", "my-7B")
    assert (found["Diff."].text, found["Publ. diff."].text) == (f"+{mean:.2f}", "")
    record = record_of(table, method="cot", backbone="my-7B", benchmark="average")
    low, high = float(record["difference_low"]), float(record["difference_high"])
    assert (low, high) == pytest.approx((mean - reach, mean + reach), abs=0.2)
    assert len(record["run_id"].split()) == len(record["reference_run_id"].split()) == 5
    some = group_of(table, "Avg.", "MASRouter")
    assert (some["Diff."].text, some["Publ. diff."].text) == (NOT_RUN, "+3.46")

"""Paired comparisons against independent computations, invariants for any two methods, and the table."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis import statistics as intervals
from analysis.exhibit import BEST, NOT_RUN, Entry
from analysis.finished_cells import FinishedCell
from analysis.paired_tests import ENDS, compare, detectable, holm, p_value
from harness.errors import UserError
from harness.runner.preset import resolve
from tests.analysis.by_hand import averaged, crossed, mcnemar
from tests.analysis.cells import WriteCell, pool_of
from tests.analysis.reading import PRESET, paired
from tests.analysis.reading import Read as Table


def cells(seeds: Sequence[Sequence[bool]], costs: Sequence[Sequence[float]] | None = None) -> list[FinishedCell]:
    """One method; without costs, each question costs one."""
    spent = costs or [[1.0] * len(seeds[0])] * len(seeds)
    both = zip(seeds, spent, strict=True)
    frames = [pd.DataFrame({"correct": correct, "cost": cost, "cost_total": cost}) for correct, cost in both]
    return [cast(FinishedCell, SimpleNamespace(items=frame)) for frame in frames]


def counts(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    """Return the verdicts of two methods with these counts of questions."""
    here = [True] * (both + first) + [False] * (second + neither)
    return here, [True] * both + [False] * first + [True] * second + [False] * neither


def pair(*sizes: int) -> dict[str, Any]:
    here, there = counts(*sizes)
    return compare(cells([here]), cells([there]))


def test_what_does_not_differ_or_always_does_is_no_certainty() -> None:
    same = pair(10, 0, 0, 10)
    assert [same[name] for name in ("difference", "cost_ratio", "p")] == [0, 1, 1]
    assert same["detectable"] == math.inf
    reach = 100 * 1.959964**2 / (20 + 1.959964**2)
    assert (same["difference_low"], same["difference_high"]) == pytest.approx((-reach, reach), abs=1e-2)
    always = pair(0, 20, 0, 0)
    assert (always["difference"], always["difference_high"]) == (100, 100)
    assert 60 < always["difference_low"] < 90


def test_of_several_seeds_the_numbers_right_alone_are_those_of_one_training_of_each() -> None:
    first, second = [[True, True, False], [True, False, False]], [[False, True, True], [True, True, False]]
    found = compare(cells(first), cells(second))
    # Right in 2/2, 1/2 and 0/2 of the seeds, against 1/2, 2/2 and 1/2.
    assert (found["first_alone"], found["second_alone"]) == (1 / 2, 1 / 2 + 1 / 2)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_single_question_leaves_everything_open_and_what_cost_nothing_is_infinitely_cheaper() -> None:
    found = compare(cells([[True]]), cells([[False]], [[4.0]]))
    assert (found["difference"], found["cost_ratio"]) == (100, 0.25)
    assert found["difference_high"] - found["difference_low"] > 70
    assert [found[f"cost_ratio{end}"] for end in ENDS[1:]] == [0, math.inf]
    assert found["detectable"] == math.inf
    several = compare(cells([[True], [False]]), cells([[False]] * 2))
    assert [several[name] for name in ("difference", "difference_low", "difference_high")] == [50, -100, 100]
    free, dear = cells([[True, False, True]], [[0.0] * 3]), cells([[True, True, False]], [[0.0, 0.0, 2.0]])
    assert [compare(dear, dear)[f"cost_ratio{end}"] for end in ENDS] == [1, 1, 1]
    assert [compare(dear, free)[f"cost_ratio{end}"] for end in ENDS] == [math.inf] * 3
    assert np.isnan([compare(free, free)[f"cost_ratio{end}"] for end in ENDS]).all()


@pytest.mark.parametrize(("own", "other"), [(3, 1), (3, 2)])
def test_difference_and_p_are_of_all_seeds(own: int, other: int) -> None:
    random = np.random.default_rng(own + other)
    here, there = random.random((own, 80)) < 0.7, random.random((other, 80)) < 0.5
    first, second = (random.exponential(1, (count, 80)) for count in (own, other))
    found = compare(cells(here.tolist(), first.tolist()), cells(there.tolist(), second.tolist()))
    mean, reach, p = crossed(100.0 * here, 100.0 * there)
    ends = [found[f"difference{end}"] for end in ENDS]
    assert [*ends, found["p"]] == pytest.approx([mean, mean - reach, mean + reach, p])
    assert (found["p"] < 0.05) == (ends[1] > 0 or ends[2] < 0)
    # The logarithm of a ratio, to first order.
    mean, reach, _ = crossed(first / first.mean(), second / second.mean())
    ratios = [math.log(found[f"cost_ratio{end}"] / (first.mean() / second.mean())) for end in ENDS]
    assert ratios == pytest.approx([0, -reach, reach], abs=0.03 * reach)
    assert found["detectable"] > 2.8 * reach / 3


@pytest.mark.parametrize("n", [12, 1319])
def test_the_detectable_difference_solves_the_power_of_a_paired_t_test(n: int) -> None:
    effect = detectable(np.array([1.0, -1.0] * (n // 2) + [1.0] * (n % 2)), 0.0, n - 1)
    critical, shifted = stats.t.ppf(0.975, n - 1), stats.nct(n - 1, effect * math.sqrt(n))
    assert shifted.sf(critical) == pytest.approx(0.8, abs=1e-4)


def power_by_enumeration(n: int, discordant: int, lead: float) -> float:
    """Return the power of McNemar's exact test, summed over all tables of counts."""
    chances = [(discordant / n + sign * lead) / 2 for sign in (1, -1)]
    tables = [(first, second) for first in range(n + 1) for second in range(n + 1 - first) if second < first]
    shown = [table for table in tables if mcnemar(*table) < 0.05]
    joint = stats.multinomial(n, [*chances, 1 - sum(chances)])
    return float(sum(joint.pmf([first, second, n - first - second]) for first, second in shown))


@pytest.mark.parametrize(("first", "second", "expected"), [(9, 1, 27.3), (15, 3, 37.3), (1, 3, math.inf)])
def test_of_one_seed_the_detectable_difference_is_that_of_the_exact_test(
    first: int, second: int, expected: float
) -> None:
    least = pair(8, first, second, 24 - first - second)["detectable"]
    assert least == pytest.approx(expected, abs=0.05)
    if math.isfinite(least):
        assert power_by_enumeration(32, first + second, least / 100) == pytest.approx(0.8, abs=1e-4)
    # Up to five discordant questions, the exact test cannot reach 5 %, however many agree.
    assert mcnemar(5, 0) > 0.05
    assert detectable(np.array([1.0] * 5 + [0.0] * 1000), 0.0, None) == math.inf


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
@settings(max_examples=8)
def test_holm_is_that_of_statsmodels_and_leaves_out_what_has_no_p(values: list[float]) -> None:
    expected = multipletests(values, method="holm")[1]
    assert holm(pd.Series([*values, np.nan])).tolist() == pytest.approx(expected.tolist())


def group_of(table: Table, group: str, *labels: str) -> dict[str, Entry]:
    [columns] = [heading.columns for heading in table.groups if heading.title == group]
    return {column: table.entry(group, column, *labels) for column in columns}


def cells_of(write_cell: WriteCell, sizes: Mapping[str, tuple[int, int, int, int]], *row: str) -> list[Path]:
    """Write the cells of GMR and of another row, whose verdicts have these counts by benchmark."""
    return [
        write_cell(*place, benchmark, correct=correct)
        for benchmark, size in sizes.items()
        for place, correct in zip((("gmr", "pool"), row), counts(*size), strict=True)
    ]


def test_a_pair(write_cell: WriteCell) -> None:
    ours, theirs = counts(60, 15, 5, 20)
    table = paired(
        write_cell("gmr", "pool", correct=ours, cost=[0.3] * 50 + [0.5] * 50),
        write_cell("masrouter", "pool", correct=theirs, cost=0.5),
    )
    row, record = group_of(table, "GSM-Hard", "MASRouter"), table.record(method="masrouter")
    texts = {"Publ. diff.": "+4.55", "Publ. cost ×": "0.58", "Diff.": "+10.00", "p": "0.041", "Cost ×": "0.80"}
    assert {name: row[name].text for name in texts} == texts
    assert [row["Diff."].sign, row["Cost ×"].sign, row["p"].below, row["p"].mark] == ["", "", "", BEST]
    low, high = (float(end.replace("−", "-")) for end in row["Diff."].below.split(", "))
    assert (low, high) == pytest.approx([100 * end for end in intervals.paired(15, 5, 100)], abs=0.06)
    names = ("reference_right_alone", "row_right_alone", "reference_accuracy", "accuracy", "n")
    assert [float(record[name]) for name in names] == [15, 5, 75, 65, 100]
    expected = {"p": 2 * 21700 / 2**20, "published_difference": 4.55}
    assert {name: float(record[name]) for name in expected} == pytest.approx(expected)
    assert power_by_enumeration(100, 20, float(record["detectable_difference"]) / 100) == pytest.approx(0.8)


def test_one_row_one_question_and_costs_of_zero(write_cell: WriteCell) -> None:
    alone = paired(write_cell("single", "mine", backbones=pool_of({"mine": 1})))
    assert [row.labels[0] for row in alone.rows] == ["no other row"]
    places = [(method, benchmark) for method in ("gmr", "masrouter") for benchmark in ("math", "mbpp")]
    table = paired(*(write_cell(method, "pool", key, correct=[method == "gmr"], cost=0) for method, key in places))
    row = group_of(table, "MATH", "MASRouter")
    assert (row["Diff."].text, row["Cost ×"], row["All calls ×"]) == ("+100.00", Entry(), Entry())
    assert all("MATH none for 1 of 1 rows; " in note for note in table.notes if "80 % power" in note)


def test_p_is_adjusted_over_the_benchmarks_of_a_row(write_cell: WriteCell) -> None:
    sizes = {"math": (60, 15, 5, 20), "mbpp": (50, 20, 4, 26), "humaneval": (50, 9, 8, 33)}
    folders = cells_of(write_cell, sizes, "masrouter", "pool")
    table = paired(*folders, write_cell("gmr", "pool", "gsm_hard"))
    raw = [mcnemar(first, second) for _, first, second, _ in sizes.values()]
    records = [table.record(method="masrouter", benchmark=key) for key in sizes]
    assert [float(record["p"]) for record in records] == pytest.approx(raw)
    assert [float(record["p_holm"]) for record in records] == pytest.approx(list(holm(pd.Series(raw))))
    shown = [table.entry(group, "p", "MASRouter") for group in ("MATH", "MBPP", "HumanEval")]
    assert [entry.text for entry in shown] == [p_value(p) for p in holm(pd.Series(raw))], "the corrected p stands alone"
    assert [entry.mark for entry in shown] == ["", BEST, ""]
    assert not any(entry.below for entry in shown)
    assert table.entry("GSM-Hard", "Diff.", "MASRouter").text == NOT_RUN


def test_the_average_is_the_mean_of_the_differences_and_their_variances_add(write_cell: WriteCell) -> None:
    gsm_hard = (50, 20, 4, 26)
    sizes = {"math": (60, 15, 5, 20), "gsm_hard": gsm_hard, "mbpp": (50, 9, 8, 33)}
    sizes |= {"humaneval": (40, 5, 25, 30), "mmlu_pro": (30, 30, 10, 30)}
    differences = [np.subtract(*np.array(counts(*size), dtype=float)) for size in sizes.values()]
    mean, reach, p = averaged([100 * column for column in differences])
    folders = cells_of(write_cell, sizes, "cot", "my-7B")
    table = paired(*folders, write_cell("masrouter", "pool", correct=counts(*gsm_hard)[0]))
    row = group_of(table, "Avg.", "CoT", "my-7B")
    assert (row["Diff."].text, row["Publ. diff."].text) == (f"+{mean:.2f}", "")
    record = table.record(method="cot", backbone="my-7B", benchmark="average")
    low, high = float(record["difference_low"]), float(record["difference_high"])
    assert (low, high) == pytest.approx((mean - reach, mean + reach))
    assert float(record["p"]) == pytest.approx(p)
    assert (row["p"].text, record["p_holm"]) == (f"{float(record['p']):.3f}", "")
    assert len(record["run_id"].split()) == len(record["reference_run_id"].split()) == 5
    assert [table.entry("Avg.", name, "MASRouter").text for name in ("Diff.", "Publ. diff.")] == [NOT_RUN, "+3.46"]


@given(st.integers(1, 60), st.data(), st.integers(-30, 30).map(lambda points: points / 100))
@settings(max_examples=40)
def test_the_p_of_a_margin_is_the_tail_at_which_the_interval_begins_there(n: int, data: Any, border: float) -> None:
    first = data.draw(st.integers(0, n))
    second = data.draw(st.integers(0, n - first))
    p = intervals.paired_p_above(first, second, n, border)
    for tail in (0.025, 0.05, 0.2):
        if abs(p - tail) > 1e-6:
            assert (p < tail) == (intervals.paired(first, second, n, tail)[0] > border)


def test_whether_a_row_is_no_worse_than_by_the_margin_of_the_preset(write_cell: WriteCell) -> None:
    """One seed by the test whose interval is Tango's (test_intervals.py), several against t."""
    ours, theirs = counts(60, 6, 9, 25)
    expected = intervals.paired_p_above(6, 9, 100, -0.1)
    found = compare(cells([ours]), cells([theirs]), margin=10)
    assert found["p_not_worse"] == expected
    here, there = np.random.default_rng(0).random((2, 3, 80)) < 0.6
    several = compare(cells(here.tolist()), cells(there.tolist()), margin=10)
    mean, reach, _ = crossed(100.0 * here, 100.0 * there)
    assert (several["p_not_worse"] < 0.025) == (mean - reach > -10)
    folders = write_cell("gmr", "pool", correct=ours), write_cell("masrouter", "pool", correct=theirs)
    preset = SimpleNamespace(margin=10.0, methods=(), reference=None)
    stated, silent = (paired(*folders, preset=each) for each in (preset, PRESET))
    assert group_of(stated, "GSM-Hard", "MASRouter")["≤ 10 worse: p"].text == f"{expected:.3f}"
    assert not any("worse" in column for column in group_of(silent, "GSM-Hard", "MASRouter"))


def test_the_reference_is_that_of_the_preset_else_ones_own_else_gmr_else_the_dearest_single_call(
    write_cell: WriteCell,
) -> None:
    prices = {"small": [1, 1], "large": [2, 9]}
    priced = {key: {"model": key, "parameters_b": 1, "prices": price} for key, price in prices.items()}
    singles = [write_cell("single", key, backbones={key: priced[key]}) for key in ("large", "small")]
    gmr, mine, last = (write_cell(name, "pool", backbones=priced) for name in ("gmr", "mine", "my_last"))

    def named(*cells: Path, **keys: Any) -> str:
        preset = SimpleNamespace(margin=None, methods=(), **{"reference": None, **keys})
        return str(paired(*cells, preset=preset).caption).partition(" against")[0]

    assert named(gmr, mine, *singles, last, reference="single") == "Single LLM (large)"
    assert named(gmr, mine, *singles, last) == "The my_last (LLM Pool)"
    assert named(*singles, gmr) == "GMR (LLM Pool)"
    assert named(*singles, write_cell("masrouter", "pool", backbones=priced)) == "Single LLM (large)"
    free = ("first", "second")
    equal = [write_cell("single", key, backbones=pool_of({key: 1}), correct=[key == "second"] * 4) for key in free]
    assert named(*equal) == named(*reversed(equal)) == "Single LLM (second)", "without prices the most accurate"
    assert resolve("smoke", {"reference": "cot"}).reference == "cot"
    with pytest.raises(UserError, match="unknown method 'gmrr'; did you mean 'gmr'"):
        resolve("smoke", {"reference": "gmrr"})


def test_single_calls_asked_again_say_how_far_a_method_differs_from_itself(write_cell: WriteCell) -> None:
    ours, theirs = counts(60, 3, 1, 36)
    first, again = (write_cell("single", correct=verdicts, seed=seed) for seed, verdicts in enumerate((ours, theirs)))
    table = paired(write_cell("gmr", "pool", correct=ours), first, again=(again,))
    assert (
        "from repeated single calls: qwen-2.5-14B on GSM-Hard: 4 of 100 verdicts (3 right only the first time, "
        "1 only the second), +2.00 points"
    ) in table.notes[-1]
    record = table.record(method="single", backbone="qwen-2.5-14B")
    assert (record["seeds"], record["accuracy"]) == ("0", "63.0"), "no mean over two askings"

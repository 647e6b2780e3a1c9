"""The published numbers: consistent in themselves, and read strictly."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.published import PATH, Count, Fit, load
from analysis.table import BEST, SECOND, marks
from harness.errors import UserError

PLAUSIBLE = {
    "math": (416,),
    "gsm_hard": (1056,),
    "mbpp": (500, 496),
    "humaneval": (129, 128),
    "mmlu_pro": (880, 400),
}
CELLS = [
    pytest.param(benchmark, cell, id=f"{row.method}-{row.backbone}-{benchmark}")
    for row in load().rows
    for benchmark, cell in row.accuracies.items()
]


def hundredths(percent: float) -> int:
    return round(percent * 100)


def counts_where(benchmark: str, fits: Callable[[int, int], bool]) -> set[Count]:
    return {Count(k, n) for n in PLAUSIBLE[benchmark] for k in range(n + 1) if fits(k, n)}


def test_rows_stand_in_the_paper_s_order():
    rows = [(row.method, row.backbone) for row in load().rows]
    fourteen, thirty_two = "qwen-2.5-14B", "qwen-2.5-32B"
    pairs = ["cot", "complex_cot", "macnet_chain", "macnet_tree", "macnet_complete", "aflow", "puppeteer"]
    singles = ["llama-3.2-3B", "llama-3.1-8B", "mistral-nemo-12B", fourteen, thirty_two]
    expected = [("single", backbone) for backbone in singles]
    expected += [(method, backbone) for method in pairs for backbone in (fourteen, thirty_two)]
    assert rows == [*expected, ("masrouter", "pool"), ("gmr", "pool")]


@pytest.mark.parametrize("row", load().rows, ids=lambda row: f"{row.method}-{row.backbone}")
def test_average_follows_from_the_five_accuracies(row):
    total = sum(hundredths(cell.percent) for cell in row.accuracies.values())
    assert len(row.accuracies) == 5
    assert abs(total / 5 - hundredths(row.average)) <= 0.5


@pytest.mark.parametrize(("column", "cell"), CELLS)
def test_counts_are_all_that_explain_a_value(column, cell):
    printed = hundredths(cell.percent)
    rounded = counts_where(column, lambda k, n: abs(10_000 * k - printed * n) * 2 < n)
    truncated = counts_where(column, lambda k, n: 10_000 * k // n == printed)
    if cell.fit is Fit.ROUNDED:
        assert set(cell.counts) == rounded
    elif cell.fit is Fit.TRUNCATED:
        assert not rounded
        assert set(cell.counts) == truncated
    else:
        assert not rounded | truncated
        distance = {
            count: abs(10_000 * count.k / count.n - printed) for count in counts_where(column, lambda k, n: True)
        }
        assert distance[cell.near] == min(distance.values())


def test_ten_values_fit_no_count_and_two_are_cut_off():
    fits = [cell.fit for row in load().rows for cell in row.accuracies.values()]
    assert (fits.count(Fit.NONE), fits.count(Fit.TRUNCATED), len(fits)) == (10, 2, 105)


def test_cost_tables_repeat_the_accuracies_of_the_main_table():
    published = load()
    main = {(row.method, row.backbone): row for row in published.rows}
    assert set(published.costs) == {"gsm_hard", "humaneval"}
    for benchmark, rows in published.costs.items():
        assert [(row.method, row.backbone) for row in rows] == list(main)
        for row in rows:
            assert row.accuracy == main[row.method, row.backbone].accuracies[benchmark].percent


def test_cost_claims_of_the_paper_follow_from_the_costs():
    costs = {
        benchmark: {(row.method, row.backbone): row.cost for row in rows} for benchmark, rows in load().costs.items()
    }
    ours, masrouter, puppeteer = ("gmr", "pool"), ("masrouter", "pool"), ("puppeteer", "qwen-2.5-32B")
    humaneval, gsm_hard = costs["humaneval"], costs["gsm_hard"]
    assert math.isclose(1 - humaneval[ours] / humaneval[masrouter], 0.4386, abs_tol=5e-5)
    assert math.isclose(1 - humaneval[ours] / humaneval[puppeteer], 0.319, abs_tol=5e-4)
    assert gsm_hard[ours] > gsm_hard[puppeteer]


def test_marks_reproduce_the_paper_s_bold_and_underlined_values():
    """Transcribed from the typeset table, independently of the data file."""
    best = {benchmark: [("gmr", "pool")] for benchmark in (*PLAUSIBLE, "average")}
    best["mbpp"] = [("macnet_chain", "qwen-2.5-14B")]
    second = {benchmark: [("puppeteer", "qwen-2.5-32B")] for benchmark in (*PLAUSIBLE, "average")}
    second["math"] = [("macnet_complete", "qwen-2.5-32B"), ("puppeteer", "qwen-2.5-32B")]
    second["mbpp"] = [("macnet_complete", "qwen-2.5-32B")]
    second["humaneval"] = [("macnet_chain", "qwen-2.5-14B")]
    rows = load().rows
    for column in best:
        values = [row.average if column == "average" else row.accuracies[column].percent for row in rows]
        found = [((row.method, row.backbone), mark) for row, mark in zip(rows, marks(values), strict=True)]
        assert [key for key, mark in found if mark == BEST] == best[column]
        assert [key for key, mark in found if mark == SECOND] == second[column]


def _unknown_key(document: dict[str, Any]) -> None:
    document["main"][0]["avarage"] = 1.0


def _missing_column(document: dict[str, Any]) -> None:
    del document["main"][3]["accuracies"]["mbpp"]


def _text_for_a_number(document: dict[str, Any]) -> None:
    document["main"][0]["average"] = "43.62"


def _more_than_everything(document: dict[str, Any]) -> None:
    document["main"][0]["accuracies"]["math"]["accuracy"] = 143.27


def _counts_for_a_value_without(document: dict[str, Any]) -> None:
    document["main"][1]["accuracies"]["humaneval"]["counts"] = ["90/129"]


def _undeclared_method(document: dict[str, Any]) -> None:
    document["main"][0]["method"] = "singel"


def _undeclared_backbone(document: dict[str, Any]) -> None:
    document["costs"]["gsm_hard"][0]["backbone"] = "llama-3-2-3B"


def _undeclared_benchmark(document: dict[str, Any]) -> None:
    document["costs"]["gsm8k"] = []


def _row_twice(document: dict[str, Any]) -> None:
    document["main"].append(document["main"][0])


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (_unknown_key, "avarage"),
        (_missing_column, "single with qwen-2.5-14B"),
        (_text_for_a_number, "43.62"),
        (_more_than_everything, "143.27"),
        (_counts_for_a_value_without, "humaneval"),
        (_undeclared_method, "singel"),
        (_undeclared_backbone, "llama-3-2-3B"),
        (_undeclared_benchmark, "gsm8k"),
        (_row_twice, "stands twice"),
    ],
)
def test_a_slip_in_the_file_is_named(tmp_path: Path, spoil: Callable[[dict[str, Any]], None], named: str):
    document = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    spoil(document)
    path = tmp_path / "published.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    with pytest.raises(UserError, match=named) as caught:
        load(path)
    assert "\n" not in str(caught.value)

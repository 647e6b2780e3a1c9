"""Which calls a measured cost counts next to a published one; half of every cost made here is the final call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.frames import UNIT
from analysis.published import load
from analysis.results import read
from analysis.source import Source
from tests.analysis.reading import Read as Table
from tests.analysis.reading import benchmark_cost, costs, paired
from tests.analysis.spending import cell_of, record_of, row_of, title

STEPS, ALL = 0.125, 0.25
ROWS = (("gmr", "pool"), ("masrouter", "pool"), ("puppeteer", "qwen-2.5-32B"))


@pytest.fixture
def cells(write_cell: Any) -> list[Path]:
    return [write_cell(method, backbone) for method, backbone in ROWS]


@pytest.mark.parametrize(
    ("method", "cost"),
    [
        ("gmr", STEPS),
        ("gmr_no_halting", STEPS),
        ("full_history", STEPS),
        ("puppeteer", STEPS),
        ("masrouter", ALL),
        ("macnet_tree", ALL),
        ("aflow", ALL),
        ("single", ALL),
        ("no_method_of_the_suite", ALL),
    ],
)
def test_the_calls_that_a_published_cost_counts(write_cell: Any, method: str, cost: float) -> None:
    assert set(read(write_cell(method)).items["cost"]) == {cost}


@pytest.mark.parametrize("build", [costs.build, benchmark_cost.build])
def test_tables_compare_the_paper_s_cost_and_show_that_of_all_calls(cells: list[Path], build: Any) -> None:
    table: Table = build(Source.of(cells, benchmark="gsm_hard"))
    for (method, backbone), own in zip(ROWS, (STEPS, ALL, STEPS), strict=True):
        row = row_of(table, title(method), load().backbones[backbone])
        record = record_of(table, method=method, backbone=backbone)
        group = next(one.title for one in table.groups if "All calls" in one.columns)
        assert cell_of(table, row, group, "Meas.").text == f"{UNIT * own:.2f}"
        assert cell_of(table, row, group, "All calls").text == f"{UNIT * ALL:.2f}"
        assert float(record["cost_ratio"]) == pytest.approx(own / float(record["published_cost_per_query"]))
        assert (float(record["cost_per_query"]), float(record["cost_per_query_all_calls"])) == (own, ALL)
    assert any("D-REPORT-2" in note for note in table.notes)


def test_paired_ratios_by_either_definition(cells: list[Path]) -> None:
    table = paired.build(Source.of(cells))
    record = record_of(table, method="masrouter", benchmark="gsm_hard")
    assert (float(record["cost_ratio"]), float(record["cost_ratio_all_calls"])) == (STEPS / ALL, 1.0)
    row = row_of(table, title("masrouter"))
    group = table.groups[0].title
    assert [cell_of(table, row, group, one).text for one in ("Cost ×", "All calls ×")] == ["0.50", "1.00"]

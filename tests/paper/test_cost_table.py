"""The table of costs on cells made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper import render, tables
from paper.artefacts import costs as cost_table
from paper.grid import build_grid
from paper.measures import Key
from paper.published import load
from paper.results import read
from paper.source import Source
from paper.tables import Entry

WriteCell = Callable[..., Path]


def entries(folders: list[Path], method: str) -> list[Entry]:
    table = cost_table.build(Source.of(folders))
    [row] = [row for row in table.rows if row.labels[0] == load().methods[method].title]
    return list(row.entries)


def test_calls_tokens_and_cost_are_those_of_one_question(write_cell: WriteCell) -> None:
    """The cells of the fixture have 2 calls, prompts of 100 to 103 tokens, 10 tokens of reply and a cost of 0.25."""
    calls, tokens, cost, published, ratio = entries([write_cell("macnet_chain")], "macnet_chain")
    assert (calls.text, tokens.text, cost.text) == ("2.0", "102 + 10", "2500.00")
    assert float(published.text) == pytest.approx(1e4 * 0.629 / 1056, abs=0.005)
    assert float(ratio.text) == pytest.approx(0.25 / (0.629 / 1056), rel=1e-3)
    assert ratio.sign == cost_table.FAR


def test_the_mean_is_over_the_seeds_too(write_cell: WriteCell) -> None:
    cells = [read(write_cell("gmr", "pool", seed=seed, correct=[True] * n)) for seed, n in ((0, 4), (1, 4))]
    assert build_grid(cells, load()).measurements[Key("gmr", "pool", "gsm_hard")].calls == 8


def test_a_fitted_cost_is_marked_and_never_called_far(write_cell: WriteCell) -> None:
    ratio = entries([write_cell("single", calibrated=True)], "single")[-1]
    assert ratio.sign == tables.DAGGER
    notes = " ".join(cost_table.build(Source.of([write_cell("cot", calibrated=True)])).notes)
    assert "no finding" in notes
    assert "no finding" not in " ".join(cost_table.build(Source.of([write_cell("macnet_tree")])).notes)


def test_where_nothing_is_printed_or_run_the_place_stays_empty(write_cell: WriteCell) -> None:
    folders = [write_cell("macnet_chain"), write_cell("aflow", benchmark="mbpp"), write_cell("full_history", "pool")]
    table = cost_table.build(Source.of(folders))
    by_method = {row.labels[0]: [entry.text for entry in row.entries] for row in table.rows}
    assert by_method["AFlow"][:3] == [tables.NOT_RUN] * 3
    assert by_method["AFlow"][4] == ""
    assert by_method["The full_history"][3:5] == ["", ""]
    assert [len(group.columns) for group in table.groups] == [5, 3]
    assert {len(row.entries) for row in table.rows} == {8}
    assert len(table.rows) == 3, "rows that were not run are left out"


def test_every_published_cost_has_its_questions() -> None:
    """The total over the questions behind the row's accuracy: 1056 of GSM-Hard, 128 or 129 of HumanEval."""
    published = load()
    sizes = {"gsm_hard": {1056}, "humaneval": {128, 129}}
    lines = {(line.method, line.backbone): line for line in build_grid([], published).lines}
    for key, rows in published.costs.items():
        for row in rows:
            line = lines.get((row.method, row.backbone))
            if line is None:
                continue
            cost = cost_table.published_cost(published, line, key)
            assert cost is not None
            assert round(row.cost / cost) in sizes[key]


@given(st.floats(1e-6, 1e6))
def test_far_is_half_an_order_of_magnitude_in_either_direction(ratio: float) -> None:
    assert cost_table.is_far(ratio) == (ratio >= 10**0.5 or ratio <= 10**-0.5)


def test_every_format_says_that_it_is_simulated(write_cell: WriteCell, tmp_path: Path) -> None:
    table = cost_table.build(Source.of([write_cell("macnet_chain")]))
    for path in render.write(table, tmp_path / "reports", "costs"):
        assert tables.SIMULATED in path.read_text(), path.name
    assert {record["ratio"] for record in table.records} == {f"{0.25 / (0.629 / 1056):.10g}"}

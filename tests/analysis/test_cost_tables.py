"""The tables of costs: of all methods, and of all on one benchmark with its accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.published import load
from analysis.source import Source
from analysis.table import DAGGER, FAR, Entry
from harness.errors import UserError
from tests.analysis.reading import benchmark_cost
from tests.analysis.reading import costs as cost_table
from tests.analysis.spending import cell_of, record_of, row_of, spend


def entries(folders: list[Path], method: str) -> list[Entry]:
    table = cost_table.build(Source.of(folders))
    [row] = [row for row in table.rows if row.labels[0] == load().methods[method].title]
    return list(row.entries)


def test_calls_tokens_and_cost_are_those_of_one_question(write_cell: Any) -> None:
    """The cells of the fixture have 2 calls, prompts of 100 to 103 tokens, 10 tokens of reply and a cost of 0.25."""
    calls, tokens, published, cost, _ = entries([write_cell("macnet_chain")], "macnet_chain")
    assert (calls.text, tokens.text, cost.text) == ("2.0", "102 + 10", "2500.00")
    assert float(published.text) == pytest.approx(1e4 * 0.629 / 1056, abs=0.005)
    assert float(cost.beside.removeprefix("×")) == pytest.approx(0.25 / (0.629 / 1056), rel=1e-3)
    assert cost.below == "2500.00–2500.00"
    assert cost.sign == FAR


def test_copies_are_counted_within_a_question_and_averaged_over_seeds(write_cell: Any) -> None:
    """The third and the fourth of five calls repeat earlier ones of their question; the fifth is another question's."""
    folders = [write_cell("gmr", "pool", seed=seed) for seed in (0, 1)]
    calls = {"item_id": ["a", "a", "a", "a", "b"], "key": ["x", "y", "x", "x", "x"]}
    pq.write_table(pa.table(calls), folders[0] / "calls.parquet")
    table = cost_table.build(Source.of([*folders, write_cell("macnet_chain")]))
    assert [entries(folders, "gmr")[0].below, record_of(table, method="gmr")["copies"]] == ["20% copies", "20.00"]
    assert record_of(table, method="macnet_chain")["copies"] == "0.00"
    assert any(note.startswith("Copies: ") for note in table.notes)
    assert entries([write_cell("macnet_tree")], "macnet_tree")[0].below == ""


ACCURACY, COST, TOTAL = "Accuracy (%)", "Cost of a question (1e-4)", "Total cost"


def build_of(folders, benchmark="gsm_hard"):
    return benchmark_cost.build(Source.of(folders, benchmark=benchmark))


def test_a_row_has_the_published_cost_of_a_question_beside_the_measured_one(write_cell):
    table = build_of([spend(write_cell("macnet_chain"), [2e-4, 4e-4, 6e-4, 8e-4])])
    row = row_of(table, "MacNet-Chain", "qwen-2.5-14B")
    measured = cell_of(table, row, COST, "Meas.")
    assert cell_of(table, row, COST, "Publ.").text == f"{1e4 * 0.629 / 1056:.2f}"
    assert (measured.text, measured.beside) == ("5.00", f"×{5e-4 / (0.629 / 1056):.2f}")
    assert cell_of(table, row, ACCURACY, "Meas.").beside == "+15.25"


def test_totals_are_those_of_the_papers_test_set(write_cell):
    table = build_of([spend(write_cell("macnet_chain", benchmark="humaneval"), [1e-4] * 4)], "humaneval")
    row = row_of(table, "MacNet-Chain", "qwen-2.5-14B")
    assert cell_of(table, row, TOTAL, "Publ.").text == "0.019"
    assert cell_of(table, row, TOTAL, "Meas.").text == "0.013", "1e-4 x 129, as 86.82 % is 112 of 129"
    assert record_of(table, method="macnet_chain", backbone="qwen-2.5-14B")["total_scaled"] == "0.0129"
    assert [group.detail for group in table.groups] == ["n = 4", "n = 4", "scaled to n = 128 or 129"]


def test_a_fitted_cost_carries_the_dagger_and_neither_ratio_nor_difference(write_cell):
    table = build_of([write_cell("single", calibrated=True), write_cell("macnet_chain")])
    fitted = row_of(table, "Single LLM", "qwen-2.5-14B")
    for group in (ACCURACY, COST):
        entry = cell_of(table, fitted, group, "Meas.")
        assert (entry.sign, entry.beside) == (DAGGER, "")
    record = record_of(table, method="single", backbone="qwen-2.5-14B")
    assert (record["cost_ratio"], record["difference"], record["calibrated"]) == ("", "", "true")
    assert any(note.startswith(DAGGER) for note in table.notes)
    assert not any(note.startswith(DAGGER) for note in build_of([write_cell("aflow")]).notes)


def test_a_ratio_far_from_one_has_its_sign(write_cell):
    published = 0.629 / 1056
    for index, (factor, sign) in enumerate(((1, ""), (3, ""), (4, FAR), (0.25, FAR))):
        folder = spend(write_cell("macnet_chain", seed=index), [factor * published] * 4)
        table = build_of([folder])
        entry = cell_of(table, row_of(table, "MacNet-Chain", "qwen-2.5-14B"), COST, "Meas.")
        assert entry.sign == sign
        assert any(note.startswith(FAR) for note in table.notes) == (sign == FAR)


def test_only_the_cells_of_the_benchmark_count(write_cell):
    folders = [write_cell("cot"), write_cell("aflow", benchmark="mbpp")]
    assert dict(build_of(folders).provenance)["cells"] == "1"
    with pytest.raises(UserError, match="no cell of benchmark humaneval"):
        build_of(folders, "humaneval")

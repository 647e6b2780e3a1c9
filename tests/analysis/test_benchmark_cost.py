"""Accuracy and cost of all methods on one benchmark."""

from __future__ import annotations

import pytest

from analysis.provenance import SIMULATED
from analysis.published import load
from analysis.source import Source
from analysis.table import DAGGER, FAR, NOT_RUN
from harness.errors import UserError
from tests.analysis.reading import benchmark_cost, write
from tests.analysis.spending import cell_of, record_of, row_of, spend

ACCURACY, COST, TOTAL = "Accuracy (%)", "Cost of a question (1e-4)", "Total cost"
IDENTITY = ("seeds", "run_id", "config_hash", "code", "data_checksum", "backbones")


def build(folders, benchmark="gsm_hard"):
    return benchmark_cost.build(Source.of(folders, benchmark=benchmark))


def test_a_row_has_the_published_cost_of_a_question_beside_the_measured_one(write_cell):
    table = build([spend(write_cell("macnet_chain"), [2e-4, 4e-4, 6e-4, 8e-4])])
    row = row_of(table, "MacNet-Chain", "qwen-2.5-14B")
    measured = cell_of(table, row, COST, "Meas.")
    assert cell_of(table, row, COST, "Publ.").text == f"{1e4 * 0.629 / 1056:.2f}"
    assert (measured.text, measured.beside) == ("5.00", f"×{5e-4 / (0.629 / 1056):.2f}")
    assert cell_of(table, row, ACCURACY, "Meas.").beside == "+15.25"


def test_totals_are_those_of_the_papers_test_set(write_cell):
    table = build([spend(write_cell("macnet_chain", benchmark="humaneval"), [1e-4] * 4)], "humaneval")
    row = row_of(table, "MacNet-Chain", "qwen-2.5-14B")
    assert cell_of(table, row, TOTAL, "Publ.").text == "0.019"
    assert cell_of(table, row, TOTAL, "Meas.").text == "0.013", "1e-4 x 129, as 86.82 % is 112 of 129"
    assert record_of(table, method="macnet_chain", backbone="qwen-2.5-14B")["total_scaled"] == "0.0129"
    assert [group.detail for group in table.groups] == ["n = 4", "n = 4", "scaled to n = 128 or 129"]


def test_every_published_row_stands_there_and_what_was_not_run_is_called_so(write_cell):
    table = build([write_cell("cot")])
    assert len(table.rows) == len(load().rows)
    assert [cell_of(table, row, COST, "Meas.").text for row in table.rows].count(NOT_RUN) == 20
    assert [cell_of(table, row, TOTAL, "Meas.").text for row in table.rows].count(NOT_RUN) == 20
    assert any("not run" in note for note in table.notes)


def test_a_fitted_cost_carries_the_dagger_and_neither_ratio_nor_difference(write_cell):
    table = build([write_cell("single", calibrated=True), write_cell("macnet_chain")])
    fitted = row_of(table, "Single LLM", "qwen-2.5-14B")
    for group in (ACCURACY, COST):
        entry = cell_of(table, fitted, group, "Meas.")
        assert (entry.sign, entry.beside) == (DAGGER, "")
    record = record_of(table, method="single", backbone="qwen-2.5-14B")
    assert (record["cost_ratio"], record["difference"], record["calibrated"]) == ("", "", "true")
    assert any(note.startswith(DAGGER) for note in table.notes)
    assert not any(note.startswith(DAGGER) for note in build([write_cell("aflow")]).notes)


def test_a_ratio_far_from_one_has_its_sign(write_cell):
    published = 0.629 / 1056
    for index, (factor, sign) in enumerate(((1, ""), (3, ""), (4, FAR), (0.25, FAR))):
        folder = spend(write_cell("macnet_chain", seed=index), [factor * published] * 4)
        table = build([folder])
        entry = cell_of(table, row_of(table, "MacNet-Chain", "qwen-2.5-14B"), COST, "Meas.")
        assert entry.sign == sign
        assert any(note.startswith(FAR) for note in table.notes) == (sign == FAR)


def test_several_seeds_show_their_mean_and_seed_0(write_cell):
    folders = [
        spend(write_cell("gmr", "pool", seed=seed, correct=[True] * right + [False] * (4 - right)), [cost] * 4)
        for seed, right, cost in ((0, 1, 1e-4), (1, 2, 2e-4), (2, 3, 6e-4))
    ]
    table = build(folders)
    row = row_of(table, "GMR")
    cost, accuracy = cell_of(table, row, COST, "Meas."), cell_of(table, row, ACCURACY, "Meas.")
    assert (cost.text, accuracy.text) == ("3.00", "50.00")
    assert cost.below.endswith("; seed 0: 1.00")
    assert accuracy.below.endswith("; seed 0: 25.00")
    record = record_of(table, method="gmr")
    assert (record["seed0"], record["cost_seed0"], record["seeds"]) == ("25.00", "0.0001", "0 1 2")
    assert len(record["run_id"].split()) == 3


def test_one_seed_is_not_shown_twice(write_cell):
    table = build([write_cell("gmr", "pool")])
    assert "seed 0" not in cell_of(table, row_of(table, "GMR"), COST, "Meas.").below


def test_only_the_cells_of_the_benchmark_count(write_cell):
    folders = [write_cell("cot"), write_cell("aflow", benchmark="mbpp")]
    assert dict(build(folders).provenance)["cells"] == "1"
    with pytest.raises(UserError, match="no cell of benchmark humaneval"):
        build(folders, "humaneval")


def test_a_benchmark_without_a_cost_table_has_blank_costs(write_cell):
    table = build([write_cell("cot", benchmark="mbpp")], "mbpp")
    row = row_of(table, "CoT", "qwen-2.5-14B")
    assert cell_of(table, row, COST, "Publ.").text == cell_of(table, row, TOTAL, "Publ.").text == ""
    assert cell_of(table, row, TOTAL, "Meas.").text == "125.000", "70.80 % is 354 of 500"


def test_every_measured_record_says_where_it_comes_from(write_cell):
    table = build([write_cell("gmr", "pool"), write_cell("cot")])
    assert len({tuple(record) for record in table.records}) == 1
    measured = [record for record in table.records if record["measured"]]
    assert len(measured) == 2
    assert all(record[name] for record in measured for name in IDENTITY)
    assert record_of(table, method="gmr")["backbones"] == "pool=simulated/pool by simulator 1"


def test_the_order_of_the_cells_does_not_matter_and_every_format_warns(write_cell, tmp_path):
    folders = [write_cell("gmr", "pool"), write_cell("cot"), write_cell("single", calibrated=True)]
    assert build(folders) == build(folders[::-1])
    for path in write(build(folders), tmp_path / "reports", "gsm_cost"):
        assert SIMULATED in path.read_text(), path.name

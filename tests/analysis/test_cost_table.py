"""The table of costs on cells made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.provenance import SIMULATED
from analysis.published import load
from analysis.source import Source
from analysis.table import DAGGER, FAR, NOT_RUN, Entry
from tests.analysis.reading import costs as cost_table
from tests.analysis.reading import write
from tests.analysis.spending import record_of, spend

WriteCell = Callable[..., Path]


def entries(folders: list[Path], method: str) -> list[Entry]:
    table = cost_table.build(Source.of(folders))
    [row] = [row for row in table.rows if row.labels[0] == load().methods[method].title]
    return list(row.entries)


def test_calls_tokens_and_cost_are_those_of_one_question(write_cell: WriteCell) -> None:
    """The cells of the fixture have 2 calls, prompts of 100 to 103 tokens, 10 tokens of reply and a cost of 0.25."""
    calls, tokens, published, cost, _ = entries([write_cell("macnet_chain")], "macnet_chain")
    assert (calls.text, tokens.text, cost.text) == ("2.0", "102 + 10", "2500.00")
    assert float(published.text) == pytest.approx(1e4 * 0.629 / 1056, abs=0.005)
    assert float(cost.beside.removeprefix("×")) == pytest.approx(0.25 / (0.629 / 1056), rel=1e-3)
    assert cost.below == "2500.00–2500.00"
    assert cost.sign == FAR


def test_copies_are_counted_within_a_question_and_averaged_over_seeds(write_cell: WriteCell) -> None:
    """The third and the fourth of five calls repeat earlier ones of their question; the fifth is another question's."""
    folders = [write_cell("gmr", "pool", seed=seed) for seed in (0, 1)]
    calls = {"item_id": ["a", "a", "a", "a", "b"], "key": ["x", "y", "x", "x", "x"]}
    pq.write_table(pa.table(calls), folders[0] / "calls.parquet")
    table = cost_table.build(Source.of([*folders, write_cell("macnet_chain")]))
    assert [entries(folders, "gmr")[0].below, record_of(table, method="gmr")["copies"]] == ["20% copies", "20.00"]
    assert record_of(table, method="macnet_chain")["copies"] == "0.00"
    assert any(note.startswith("Copies: ") for note in table.notes)
    assert entries([write_cell("macnet_tree")], "macnet_tree")[0].below == ""


def test_a_fitted_cost_is_marked_and_never_called_far(write_cell: WriteCell) -> None:
    table = cost_table.build(Source.of([write_cell("single", calibrated=True)]))
    *_, cost, _ = table.rows[0].entries
    assert (cost.sign, cost.beside, table.records[0]["cost_ratio"]) == (DAGGER, "", "")
    assert not any(note.startswith(FAR) for note in table.notes)
    notes = " ".join(cost_table.build(Source.of([write_cell("cot", calibrated=True)])).notes)
    assert "no finding" in notes
    assert "no finding" not in " ".join(cost_table.build(Source.of([write_cell("macnet_tree")])).notes)


def test_where_nothing_is_printed_or_run_the_place_stays_empty(write_cell: WriteCell) -> None:
    folders = [
        write_cell("macnet_chain"),
        write_cell("aflow", benchmark="mbpp", calibrated=True),
        write_cell("full_history", "pool"),
    ]
    table = cost_table.build(Source.of(folders))
    by_method = {row.labels[0]: [entry.text for entry in row.entries] for row in table.rows}
    assert by_method["AFlow"][:2] == [NOT_RUN] * 2
    [printed] = [
        row.cost for row in load().costs["gsm_hard"] if (row.method, row.backbone) == ("aflow", "qwen-2.5-14B")
    ]
    assert by_method["AFlow"][2] == f"{1e4 * printed / 1056:.2f}", "printed, though not run"
    assert by_method["AFlow"][3] == NOT_RUN
    assert any(note == f"{NOT_RUN}: not run." for note in table.notes)
    assert (by_method["Full-History"][2], by_method["Full-History"][3]) == ("", "1250.00")
    assert {entry.sign for row in table.rows for entry in row.entries} == {"", FAR}, "without a print nothing is fitted"
    assert [len(group.columns) for group in table.groups] == [5, 4]
    assert {len(row.entries) for row in table.rows} == {9}
    assert len(table.rows) == 3, "rows that were not run are left out"


def test_every_format_says_that_it_is_simulated(write_cell: WriteCell, tmp_path: Path) -> None:
    table = cost_table.build(Source.of([write_cell("macnet_chain")]))
    for path in write(table, tmp_path / "reports", "costs"):
        assert SIMULATED in path.read_text(), path.name
    assert {record["cost_ratio"] for record in table.records} == {f"{0.25 / (0.629 / 1056):.10g}"}


def test_the_far_mark_is_explained_only_where_it_stands(write_cell: WriteCell) -> None:
    near = spend(write_cell("macnet_chain"), [0.629 / 1056] * 4)
    assert not any(note.startswith(FAR) for note in cost_table.build(Source.of([near])).notes)
    far = cost_table.build(Source.of([write_cell("macnet_chain", "qwen-2.5-32B")]))
    assert any(note.startswith(FAR) for note in far.notes)


def test_a_record_has_the_interval_seed_0_and_where_it_comes_from(write_cell: WriteCell) -> None:
    """Costs in units of 1e-4: 1, 1, 3, 3 with seed 0 and twice as much with seed 1."""
    folders = [
        spend(write_cell("gmr", "pool", seed=seed), [one * (1 + seed) * 1e-4 for one in (1, 1, 3, 3)])
        for seed in (0, 1)
    ]
    table = cost_table.build(Source.of([*folders, write_cell("macnet_chain")]))
    record = record_of(table, method="gmr")
    assert (record["cost_per_query"], record["cost_seed0"], record["seeds"]) == ("0.0003", "0.0002", "0 1")
    assert float(record["cost_low"]) < 0.0002
    assert float(record["cost_high"]) > 0.0004
    assert len(record["run_id"].split()) == 2
    other = record_of(table, method="macnet_chain")
    assert other["cost_seed0"] == ""
    assert all(other[name] for name in ("seeds", "run_id", "config_hash", "code", "data_checksum", "backbones"))
    assert any("seeds, then seed 0 alone" in note for note in table.notes)
    alone = cost_table.build(Source.of(folders[:1]))
    assert not any("seed 0 alone" in note for note in alone.notes)
    assert "seed 0: 2.00" in entries(folders, "gmr")[-2].below

"""All cells as data sets: every row of every table once, found again by its partition, in any reader."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from analysis import results
from analysis.exports import curves, dataset
from analysis.provenance import SIMULATED
from harness.errors import UserError
from harness.results import CALLS, DECISIONS, ITEMS
from harness.training.loop import TABLES, UPDATES
from tests.analysis import learned
from tests.analysis.conftest import WriteCell

ADDED = ["preset", "simulated", "run_id"]


def decided(item: str, choice: str) -> dict[str, Any]:
    return {"item_id": item, "step": 1, "name": "role", "slot": 0, "choice": choice, "options": 2, "log_prob": -0.5}


@pytest.fixture
def folders(write_cell: WriteCell) -> list[Path]:
    """Two seeds of a method that learned, and a method that does not learn."""
    made = [
        learned.make(
            write_cell, "gmr", seed, made=[decided("item-0000", "A/B=c")], updates=[{"accuracy": seed / 3}] * 2
        )
        for seed in (0, 1)
    ]
    other = learned.make(write_cell, "single", backbone="qwen-2.5-14B", benchmark="math", updates=None)
    for folder in (*made, other):
        pq.write_table(CALLS.empty_table(), folder / "calls.parquet")
    return [*made, other]


def write(folders: list[Path], out: Path) -> list[Path]:
    return dataset.export([(folder, results.read(folder).run) for folder in folders], out)


def test_every_row_is_there_with_what_it_belongs_to(folders: list[Path], tmp_path: Path) -> None:
    write(folders, tmp_path)
    found = pd.read_parquet(tmp_path / "items")
    for folder in folders:
        run = results.read(folder).run
        rows = found[found["run_id"] == run.run_id]
        own = pd.read_parquet(folder / "items.parquet")
        assert rows["item_id"].tolist() == own["item_id"].tolist()
        assert rows["cost_total"].tolist() == own["cost_total"].tolist()
        for key, value in {
            "method": run.method,
            "benchmark": run.benchmark,
            "row": run.backbone,
            "seed": run.seed,
        }.items():
            assert set(rows[key].astype(str)) == {str(value)}
        assert set(rows["simulated"]) == {True}
    assert len(found) == 12


def test_other_readers_find_the_partitions(folders: list[Path], tmp_path: Path) -> None:
    write(folders, tmp_path)
    found = ds.dataset(tmp_path / "decisions", partitioning="hive")
    assert found.schema.names == [*DECISIONS.names, *ADDED, "method", "benchmark", "row", "seed"]
    rows = found.to_table(filter=(ds.field("method") == "gmr") & (ds.field("seed") == 1)).to_pylist()
    assert [(row["choice"], row["benchmark"], row["row"]) for row in rows] == [("A/B=c", "gsm_hard", "pool")]


def test_columns_keep_their_types_and_each_file_says_that_it_is_simulated(folders: list[Path], tmp_path: Path) -> None:
    for path in write(folders, tmp_path):
        schema = pq.read_schema(path)
        expected = {"items": ITEMS, "calls": CALLS, "decisions": DECISIONS, "training": UPDATES}[path.stem]
        kinds = {name: schema.field(name).type for name in expected.names}
        assert kinds == {field.name: field.type for field in expected}
        assert schema.names == [*expected.names, *ADDED]
        assert schema.metadata[b"warning"] == SIMULATED.encode()


def test_a_table_that_a_method_need_not_have_is_left_out(folders: list[Path], tmp_path: Path) -> None:
    written = write(folders, tmp_path)
    assert sorted(path.stem for path in written) == sorted([*["items", "calls", "decisions"] * 3, *["training"] * 2])


@pytest.mark.parametrize("damage", ["missing", "damaged", "other"])
def test_a_damaged_table_is_named(folders: list[Path], tmp_path: Path, damage: str) -> None:
    path, run = folders[0] / "decisions.parquet", results.read(folders[0]).run
    match damage:
        case "missing":
            path.unlink()
        case "damaged":
            path.write_bytes(b"PAR1 and no more")
        case "other":
            pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(UserError, match=r"decisions.parquet: not a readable table"):
        dataset.export([(folders[0], run)], tmp_path)


def test_parts_of_cells_that_are_gone_go_and_nothing_else(folders: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole = set(write(folders, out))
    mine = out / "items" / "notes.parquet"
    mine.write_bytes(b"mine")
    left = set(write(folders[:1], out))
    assert left < whole
    assert set(out.rglob("*.parquet")) == {*left, mine}


def test_equal_cells_give_equal_bytes(folders: list[Path], tmp_path: Path) -> None:
    one, two = (write(folders, tmp_path / name) for name in ("one", "two"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_a_name_that_is_no_folder_is_escaped(write_cell: WriteCell, tmp_path: Path) -> None:
    folder = learned.make(write_cell, "single", backbone="a/b=c d%", updates=None)
    pq.write_table(CALLS.empty_table(), folder / "calls.parquet")
    write([folder], tmp_path)
    assert set(pd.read_parquet(tmp_path / "items")["row"]) == {"a/b=c d%"}


def test_memory_does_not_grow_with_a_cell(folders: list[Path], tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([decided("x" * 10_000, "A")] * 1000, DECISIONS)
    pool = pa.default_memory_pool()

    def grown(groups: int) -> int:
        with pq.ParquetWriter(folders[0] / "decisions.parquet", DECISIONS) as writer:
            for _ in range(groups):
                writer.write_table(rows)
        before = pool.max_memory()
        write(folders[:1], tmp_path / "out")
        return pool.max_memory() - before

    grown(2)
    assert grown(20) < rows.nbytes


def test_curves_are_the_logs_line_by_line(folders: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    assert curves.export([results.read(folder) for folder in folders], path) == 2
    text = path.read_text()
    assert text.splitlines()[0] == f"# {SIMULATED}"
    found = pd.read_csv(io.StringIO(text), comment="#")
    assert tuple(found.columns) == curves.HEADS
    for seed, folder in enumerate(folders[:2]):
        own = pd.read_parquet(folder / "training.parquet")
        rows = found[found["seed"] == seed]
        assert (
            rows[["epoch", "update", "measure"]].to_numpy().tolist() == own[list(rows.columns[5:8])].to_numpy().tolist()
        )
        assert rows["value"].to_numpy() == pytest.approx(own["value"].to_numpy(), rel=1e-9)
        assert set(rows["preset"] + rows["method"] + rows["benchmark"] + rows["backbone"]) == {
            "embeddedgmrgsm_hardpool"
        }


def test_curves_of_methods_that_do_not_learn_are_refused(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no cell of a method that learns"):
        curves.export([results.read(folders[-1])], tmp_path / "curves.csv")
    assert not (tmp_path / "curves.csv").exists()


def test_every_table_of_a_cell_is_known() -> None:
    assert set(dataset.TABLES) == {"items", "calls", "decisions", *TABLES}

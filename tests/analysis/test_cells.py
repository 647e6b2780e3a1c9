"""Reading cells: what is taken from them and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.results import read, read_all
from harness.benchmarks.items import Status
from harness.errors import UserError

FILES = ("run.json", "items.parquet", "calls.parquet", "decisions.parquet")


def refusal(call: Callable[[], Any]) -> str:
    """The one line a user reads."""
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def change_run(folder: Path, **changes: Any) -> None:
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def change_items(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    path = folder / "items.parquet"
    pq.write_table(change(pq.read_table(path)), path)


def with_column(name: str, values: list[Any]) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.column_names.index(name), name, pa.array(values))


def test_a_cell_comes_back_as_written(write_cell):
    folder = write_cell(
        "cot", "qwen-2.5-32B", "math", seed=2, correct=[True, False], statuses=["graded", "unparsable"],
        math_verify=[True, None], notes=["limit: 2\ntest items"], calibrated=True,
    )  # fmt: skip
    cell = read(folder)
    assert (cell.run.method, cell.run.backbone, cell.run.benchmark, cell.run.seed) == ("cot", "qwen-2.5-32B", "math", 2)
    assert cell.run.calibrated
    assert cell.run.notes == ("limit: 2 test items",)
    assert cell.run.data.n_test == 2
    assert list(cell.items["correct"]) == [True, False]
    assert list(cell.items["status"]) == [Status.GRADED, Status.UNPARSABLE]
    assert list(cell.items["math_verify"]) == [True, None]
    assert list(cell.items["cost_total"]) == [0.25, 0.25]


def test_rows_come_in_the_order_of_the_items(write_cell):
    folder = write_cell(correct=[True, False, False])
    before = read(folder)
    change_items(folder, lambda table: table.take([2, 0, 1]))
    assert read(folder).items.equals(before.items)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(write_cell, name):
    folder = write_cell()
    (folder / name).unlink()
    assert name in refusal(lambda: read(folder))


@pytest.mark.parametrize("version", [0, 2, "1", None, True])
def test_another_schema_version(write_cell, version):
    folder = write_cell()
    change_run(folder, schema=version)
    assert "schema" in refusal(lambda: read(folder))


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_damaged_run_file(write_cell, text):
    folder = write_cell()
    (folder / "run.json").write_text(text)
    assert "run.json" in refusal(lambda: read(folder))


@pytest.mark.parametrize(
    ("key", "value"),
    [("seed", "0"), ("simulated", "no"), ("notes", "none"), ("data", {}), ("method", ""), ("run_id", 7)],
)
def test_a_field_of_another_type(write_cell, key, value):
    folder = write_cell()
    change_run(folder, **{key: value})
    assert f"run.json: {key}" in refusal(lambda: read(folder))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda table: table.drop_columns(["status", "text"]), "text"),
        (lambda table: table.slice(1), "3 rows, run.json promises 4"),
        (with_column("item_id", ["a", "a", "b", "c"]), "twice"),
        (with_column("correct", [True, None, True, True]), "correct"),
        (with_column("cost_total", [1.0, 1.0, 1.0, None]), "cost_total"),
        (with_column("status", ["graded", "timeout", "graded", "graded"]), "'timeout'"),
        (with_column("status", ["call_failed", "graded", "graded", "graded"]), "without a verdict"),
        (with_column("prompt_tokens", ["many", "few", "some", "none"]), "not a readable table"),
    ],
)
def test_damaged_items(write_cell, change, named):
    folder = write_cell()
    change_items(folder, change)
    assert named in refusal(lambda: read(folder))


def test_no_cells_at_all():
    assert "no results" in refusal(lambda: read_all([]))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"simulated": False}, "simulated"),
        ({"preset": "paper"}, "(paper)"),
        ({"data": {"source": "x", "splits": "y", "checksum": "other", "split_checksum": "s", "n_test": 4}}, "checksum"),
        ({"correct": [True] * 3}, "test items of gsm_hard"),
        ({"rule_version": "2"}, "grading rules of gsm_hard"),
    ],
)
def test_cells_that_cannot_be_compared(write_cell, changes, named):
    folders = [write_cell("single"), write_cell("cot", **changes)]
    assert named in refusal(lambda: read_all(folders))


def test_the_same_cell_twice(write_cell):
    folders = [write_cell(), write_cell(note="again")]
    assert "twice" in refusal(lambda: read_all(folders))


def served(calibration="w1", **changes):
    """The identity of a simulated backbone."""
    known = {
        "model": "org/A",
        "served_by": "simulated",
        "revision": "r1",
        "revision_confirmed": True,
        "calibration": calibration,
    }
    return {"backbones": {"a": {**known, **changes}}}


def test_cells_of_two_calibrations(write_cell):
    folders = [write_cell("single", **served("first")), write_cell("cot", **served("second"))]
    said = refusal(lambda: read_all(folders))
    assert "different calibrations of the simulator" in said
    assert all(str(folder) in said for folder in folders)
    assert len(read_all([write_cell("aflow", **served()), write_cell("macnet_tree", **served())])) == 2


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        (served(), served(revision="r2"), "revisions of a between the seeds of gmr (pool) on gsm_hard"),
        (served(), served(revision=None), "revisions of a"),
        (served(), served(model="org/B"), "revisions of a"),
        ({"notes": ["limit: 4 epochs"]}, {"notes": []}, "settings between the seeds of gmr (pool) on gsm_hard"),
        ({"notes": ["length_scale 0.2"]}, {"notes": ["length_scale 0.5"]}, "(length_scale 0.5)"),
    ],
)
def test_seeds_that_were_not_run_alike(write_cell, first, second, named):
    folders = [write_cell("gmr", "pool", seed=seed, **changes) for seed, changes in enumerate((first, second))]
    assert named in refusal(lambda: read_all(folders))


def test_cells_of_other_weights_do_not_stand_beside_the_original(write_cell):
    real = {"model": "org/A", "served_by": "vllm"}
    four = {**real, "model": "org/A-AWQ", "weights": "awq (4 bits)"}
    folders = [
        write_cell("single", simulated=False, backbones={"a": real}),
        write_cell("cot", simulated=False, backbones={"a": four}),
    ]
    said = refusal(lambda: read_all(folders))
    assert "different weights of the backbones in one table" in said
    assert "awq (4 bits)" in said
    assert "original" in said

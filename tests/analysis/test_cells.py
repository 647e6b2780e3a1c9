"""Reading cells: the values read, and the cells refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from analysis.finished_cells import read, read_all
from harness.benchmarks.items import Status
from harness.errors import UserError
from harness.runner.results import digests


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def change_run(folder: Path, **changes: Any) -> None:
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_cell_comes_back_as_written_in_the_order_of_the_items(write_cell):
    folder = write_cell(correct=[True, False], status=["graded", "unparsable"], notes=["limit: 2\ntest items"])
    cell = read(folder)
    assert cell.run.notes == ("limit: 2 test items",)
    assert list(cell.items["correct"]) == [True, False]
    assert list(cell.items["status"]) == [Status.GRADED, Status.UNPARSABLE]
    items = pq.read_table(folder / "items.parquet")
    pq.write_table(items.take([1, 0]), folder / "items.parquet")
    change_run(folder, tables=digests(folder))
    assert read(folder).items.equals(cell.items)


def test_a_cell_keeps_its_title_and_its_cost_whatever_becomes_of_its_method(write_cell):
    told = {"method_title": "GMR, as it was called", "module": "gmr", "compared_cost": "steps"}
    cell = read(write_cell("no_method_any_more", "pool", **told))
    assert (cell.run.method_title, list(cell.items["cost"])) == (told["method_title"], [0.125] * 4)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda folder: (folder / "decisions.parquet").unlink(), "decisions.parquet is missing; delete"),
        (lambda folder: (folder / "run.json").unlink(), "run.json: No such file or directory; run the cell again"),
        (lambda folder: (folder / "run.json").write_text("{"), "run.json: not JSON"),
        (lambda folder: change_run(folder, schema=2), "run the cell again: schema: Input should be 1, not 2"),
        (lambda folder: flip_a_bit(folder / "items.parquet"), "items.parquet is damaged: its SHA-256 is not the one"),
    ],
)
def test_a_damaged_cell_is_refused(write_cell, damage, named):
    folder = write_cell(updates=[{"loss": 1.0}])
    damage(folder)
    assert named in refusal(lambda: read(folder))


def served(revision="r1"):
    """Return the identity of a simulated backbone."""
    known = {"model": "org/A", "served_by": "simulated", "revision": revision, "revision_confirmed": True}
    return {"backbones": {"a": known}}


OTHER_DATA = {"source": "x", "splits": "y", "checksum": "other", "split_checksum": "s", "n_test": 4, "n_train": 0}
SEEDS = "between the seeds of single (qwen-2.5-14B) on gsm_hard"


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        ({}, {"method": "cot", "simulated": True}, "kinds of backbones"),
        ({}, {"method": "cot", "data": OTHER_DATA}, "data checksums of gsm_hard"),
        ({}, {"method": "cot", "correct": [True] * 3}, "test items of gsm_hard"),
        ({}, {"method": "cot", "rule_version": "2"}, "grading rules of gsm_hard"),
        (served("simulated-1"), {"method": "cot", **served("simulated-2")}, "different simulators"),
        (served(), {"seed": 1, **served("r2")}, f"backbones {SEEDS}"),
        ({"notes": ["limit: 4 epochs"]}, {"seed": 1}, f"settings {SEEDS}"),
        ({}, {"note": "again"}, "twice"),
    ],
)
def test_cells_that_cannot_be_compared(write_cell, first, second, named):
    folders = [write_cell(**first), write_cell(**second)]
    said = refusal(lambda: read_all(folders))
    assert named in said
    assert all(str(folder) in said for folder in folders)


def test_different_methods_need_not_be_run_alike(write_cell):
    folders = [write_cell(**served(), notes=["limit: 4 epochs"]), write_cell("cot", **served("r2"))]
    assert len(read_all(folders)) == 2

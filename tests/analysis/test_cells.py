"""Reading cells, which ones are refused, and of which ones an artefact is made."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from analysis.finished_cells import read, read_all
from analysis.registry import Selection, artefact
from harness.benchmarks.items import Status
from harness.errors import UserError
from harness.runner import layout
from harness.runner.layout import Cell
from harness.runner.preset import resolve
from harness.runner.results import digests
from tests import finished as run


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def change_run(folder: Path, **changes: Any) -> None:
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


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
        (lambda folder: (folder / "items.parquet").write_bytes(b""), "is damaged: its SHA-256 is not the one"),
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


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        ({}, {"method": "cot", "simulated": True}, "kinds of backbones"),
        ({}, {"method": "cot", "correct": [True] * 3}, "test questions of gsm_hard"),
        ({}, {"method": "cot", "rule_version": "2"}, "grading rules of gsm_hard"),
        (served("simulated-1"), {"method": "cot", **served("simulated-2")}, "simulators"),
        ({"notes": ["limit: 4 epochs"]}, {"seed": 1}, "settings in the seeds of single qwen-2.5-14B gsm_hard"),
        (served(), {"seed": 1, **served("r2")}, "weights answered in the seeds of single qwen-2.5-14B gsm_hard"),
    ],
)
def test_cells_that_cannot_be_compared(write_cell, first, second, named):
    folders = [write_cell(**first), write_cell(**second)]
    said = refusal(lambda: read_all(folders))
    assert f"different {named}: " in said
    assert all(f"{folder}: " in said for folder in folders)


def test_different_methods_need_not_be_run_alike(write_cell):
    folders = [write_cell(**served(), notes=["limit: 4 epochs"]), write_cell("cot", **served("r2"))]
    assert len(read_all(folders)) == 2


# The cells of an artefact.

EMBEDDED = resolve("embedded")


def test_a_selection_is_what_it_names_of_what_the_preset_has() -> None:
    chosen = Selection(methods=("puppeteer", "single"), benchmarks=("math", "riddles"), largest=True, seeds=(3, 4))
    assert chosen.cells(EMBEDDED) == [
        Cell("puppeteer", "math", "qwen-2.5-32B", 3),
        Cell("puppeteer", "math", "qwen-2.5-32B", 4),
        # It does not learn, so that another seed would be the same answers.
        Cell("single", "math", "qwen-2.5-32B", 0),
    ]


def test_tables_of_training_are_of_all_that_learn_and_bounds_of_ones_own_methods_too(tmp_path: Path) -> None:
    extra = tmp_path / "methods.yaml"
    extra.write_text("mine: {module: baselines.cheap.knn_router, title: Mine, rows: pool, trained: true}")
    run = {"extra": str(extra), "methods": ["single", "knn_router", "mine"]}
    learned = {cell.method for cell in artefact("training_curves").cells_of(resolve("smoke", run))}
    assert learned == {"knn_router", "mine"}
    assert "mine" in {cell.method for cell in artefact("router_bounds").cells_of(resolve("smoke", run))}
    untrained = resolve("smoke", {"methods": ["single"]})
    with pytest.raises(UserError, match="training_curves cannot be made of preset smoke, which has no method that l"):
        artefact("training_curves").check(untrained)


def test_a_run_under_way_is_shown_by_its_finished_cells(
    finished: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = "main_table"
    shutil.copytree(finished / "results", folder / "results", dirs_exist_ok=True)
    whole = artefact(name).build(run.preset())
    (layout.cell("smoke", Cell("gmr", "humaneval", "pool", 0)) / "run.json").unlink()
    part = artefact(name).build(run.preset())
    said = f"1 of {len(artefact(name).cells_of(run.preset()))} cells are not finished (gmr humaneval pool seed0)"
    assert "INCOMPLETE" not in whole.caption
    assert f"INCOMPLETE: {said}." in part.caption
    assert said in caplog.text
    others = [made.frame[made.frame["method"] == "masrouter"].reset_index(drop=True) for made in (whole, part)]
    pd.testing.assert_frame_equal(*others)
    assert len(others[0])
    for one in Path("results").rglob("run.json"):
        one.unlink()
    with pytest.raises(UserError, match=f"none of the .* cells .* {name} is made .*`snakemake .*/{name}"):
        artefact(name).build(run.preset())


@pytest.mark.usefixtures("folder")
def test_of_a_recording_an_artefact_needs_the_presets_methods_and_those_at_hand() -> None:
    run = resolve("recorded")
    methods = {cell.method for cell in artefact("router_bounds").cells_of(run)}
    assert methods == {*run.methods}
    finished = layout.cell("recorded", Cell("gmr", "humaneval", "pool", 3)) / "run.json"
    seeds = run.model_copy(update={"seeds": (3,)})
    finished.parent.mkdir(parents=True)
    finished.write_text("{}")
    assert "gmr" in {cell.method for cell in artefact("router_bounds").cells_of(seeds)}

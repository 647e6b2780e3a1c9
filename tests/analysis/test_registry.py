"""The list of artefacts and their cells."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from analysis.registry import Selection, artefact
from harness.errors import UserError
from harness.runner import layout
from harness.runner.layout import Cell
from harness.runner.preset import resolve
from tests import finished as run

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

"""The list of artefacts and their cells."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from analysis import registry
from analysis.registry import Selection, artefact
from harness.errors import UserError
from harness.runner import config, layout
from harness.runner.layout import Cell
from harness.runner.preset import resolve
from tests import finished as run

EMBEDDED = resolve("embedded")
SWITCHES = {"no_role_allocator", "no_llm_router", "no_retrieval_gate", "no_write_gate", "no_halting", "no_memory_gates"}


def numbers(name: str) -> set[tuple[str, str, int]]:
    return {(cell.method, cell.benchmark, cell.seed) for cell in artefact(name).cells_of(EMBEDDED)}


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
    with pytest.raises(UserError, match="training_budget cannot be made of preset smoke, which has no method that l"):
        artefact("training_budget").check(untrained)


def test_the_papers_statements_are_none_about_models_of_ones_own() -> None:
    own = resolve("open_tree")
    assert "claims" not in {key for key, entry in registry.artefacts().items() if not entry.lacking(own)}
    with pytest.raises(UserError, match="claims cannot be made of preset open_tree, which has no model of the paper"):
        artefact("claims").check(own)
    methods = {cell.method for cell in artefact("pool").cells_of(own)}
    assert {"single", "random_matched", "gmr_no_memory_gates"} <= methods


def test_an_ablation_alone_needs_the_full_system_and_itself() -> None:
    for switch in SWITCHES:
        methods = {"gmr", f"gmr_{switch}"}
        assert numbers(f"ablation/{switch}") == {(m, b, 0) for m in methods for b in ("gsm_hard", "humaneval")}
    assert numbers("ablation") == set.union(*(numbers(f"ablation/{switch}") for switch in SWITCHES))


def test_an_artefact_without_questions_is_refused_with_the_reason() -> None:
    smoke = resolve("smoke")
    alone = resolve("smoke", {"backbones": ["llama-3.2-3B"], "methods": ["cot"]})
    with pytest.raises(UserError, match=r"has no backbone for its methods among llama-3\.2-3B; choose"):
        artefact("main_table").check(alone)
    artefact("ablation").check(smoke)


@pytest.mark.parametrize("name", ["main_table", "pareto_he"])
def test_a_run_under_way_is_shown_by_its_finished_cells(
    name: str, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(finished / "results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
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


def test_a_slip_in_the_file_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.methods()
    monkeypatch.setattr(config, "FOLDER", tmp_path)
    entry = {"title": "Mine", "module": "analysis.paper.main_table", "kind": "table", "cells": [{"methods": ["gmrr"]}]}
    (tmp_path / "artefacts.yaml").write_text(yaml.safe_dump({"mine": entry}))
    with pytest.raises(UserError, match="unknown method 'gmrr'"):
        registry.artefacts.__wrapped__()


def test_of_a_recording_an_artefact_needs_the_presets_methods_and_those_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = resolve("recorded")
    monkeypatch.chdir(tmp_path)
    methods = {cell.method for cell in artefact("router_bounds").cells_of(run)}
    assert methods == {"single", "knn_router", "random_router"}
    finished = layout.cell("recorded", Cell("gmr", "humaneval", "pool", 3)) / "run.json"
    seeds = run.model_copy(update={"seeds": (3,)})
    finished.parent.mkdir(parents=True)
    finished.write_text("{}")
    assert "gmr" in {cell.method for cell in artefact("router_bounds").cells_of(seeds)}

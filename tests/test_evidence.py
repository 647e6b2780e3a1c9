"""Today's code reproduces the recorded runs in evidence/."""

import contextlib
import io
import re
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import orjson
import pandas as pd
import pytest

from analysis import registry
from cli.bundle import describe
from cli.replay import REPLAYED, replay
from harness.benchmarks.prepare import DATA_DIR, is_known, read
from harness.files import ROOT, sha256
from harness.llm.archive import extract
from harness.runner import cell as cells
from harness.runner import questions
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from tests.cli.bundles import made

BUNDLES = sorted((ROOT / "evidence").glob("*/*.zip"))
LONG = (pytest.mark.nightly, pytest.mark.timeout(3600))


@pytest.mark.parametrize(
    ("bundle", "cells"),
    [
        pytest.param(BUNDLES[0].parents[1] / "open_single/open_single.zip", "single/humaneval/", id="single calls"),
        *(pytest.param(path, "", id=path.stem, marks=LONG) for path in BUNDLES),
    ],
)
def test_cells_and_reports_come_out(bundle: Path, cells: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if cells:  # A plain run makes some of the reports, and its questions come with a package.
        monkeypatch.delenv(DATA_DIR, raising=False)
        few = [*map(registry.artefact, ("main_table", "costs", "errors"))]
        monkeypatch.setattr(registry, "of_run", lambda run: few)
    found = replay(made(bundle, lambda files: None, cells))
    assert {str(job): difference for job, difference in found.differences.items() if difference} == {}
    assert found.differences
    assert found.remarks.keys() <= {"code", "math", "not recorded", "questions of mmlu_pro"}
    if bundle.stem != "open_tree":
        names = {path.name for path in (REPLAYED / bundle.stem).iterdir()}
        assert names >= {"index.html", "main_table.md", "costs.csv", "errors.html"}


@pytest.mark.usefixtures("folder")
async def test_routers_of_preset_recorded_ask_nobody_and_have_the_verdicts_of_single_calls() -> None:
    preset = resolve("recorded", {"limit": {"train": 16, "test": 48}})
    questions.write(preset, "humaneval")
    items, calls = dict[str, pd.DataFrame](), dict[str, pd.DataFrame]()
    for method, row in (*(("single", row) for row in preset.backbones), *product(preset.methods[1:], ["pool"])):
        cell = plan(preset, Cell(method, "humaneval", row, 0))
        run = await cells.run(cell)
        assert run["replies"]["asked"] == 0
        assert any("Q4_K - Medium weights, as reported by its server" in note for note in run["notes"])
        items[row if method == "single" else method] = pd.read_parquet(cell.folder / "items.parquet")
        calls[method] = pd.read_parquet(cell.folder / "calls.parquet")
    for method in preset.methods[1:]:
        chosen = calls[method].groupby("item_id", sort=False)["backbone"].last()  # a cascade keeps its last reply
        expected = [items[backbone]["correct"][number] for number, backbone in enumerate(chosen)]
        assert items[method]["correct"].tolist() == expected
    assert 0.35 < (calls["random_router"]["backbone"] == preset.backbones[0]).mean() < 0.65


@pytest.mark.parametrize("run", ["open_single", "open_grid", "open_tree"])
def test_the_lines_of_the_readme_give_its_numbers(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "evidence" / run / "README.md").read_text(encoding="utf-8")
    ((program, shown),) = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program, {})  # noqa: S102
    assert printed.getvalue() == shown
    if run == "open_single":
        for correct, n in re.findall(r"(\d+) of (\d+)", text.partition("| in percent")[0]):
            assert re.search(rf" {correct} +{int(correct) / int(n):.3f}", shown)


@pytest.mark.parametrize("bundle", BUNDLES, ids=[path.stem for path in BUNDLES])
def test_tables_follow_from_the_bundle(bundle: Path, tmp_path: Path) -> None:
    shutil.copy(bundle, tmp_path)
    for path in describe(tmp_path / bundle.name):
        published = bundle.with_name(path.name)
        if path.suffix == ".parquet":
            assert pd.read_parquet(path).equals(pd.read_parquet(published))
    described = orjson.loads(published.read_bytes())
    assert {entry["contentUrl"]: entry["sha256"] for entry in described["distribution"]} == {
        path.name: sha256(path) for path in (bundle, *bundle.parent.glob("*.parquet"))
    }


def test_questions_are_the_benchmarks_own_by_their_checksums_or_the_recordings_word(tmp_path: Path) -> None:
    extract(ROOT / "evidence/open_grid/open_grid.zip", tmp_path)
    folder = tmp_path / "results/open_grid/data"
    own = read(folder / "mbpp.json", folder / "mbpp.items.jsonl")
    assert is_known("mbpp", own)
    assert not is_known("gsm_hard", own)
    assert own.pool[0].code is not None
    easier = replace(own.pool[0], code=replace(own.pool[0].code, checks="assert True"))
    others = {"pool": [easier, *own.pool[1:]]}, {"test": own.test[::-1]}, {"data": "embedded"}, {"title": "Another"}
    for change in others:
        assert not is_known("mbpp", replace(own, **change))


def test_bundles_stay_small() -> None:
    assert BUNDLES
    files = [path for path in (ROOT / "evidence").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 34_000_000

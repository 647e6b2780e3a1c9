"""The recorded runs of evidence/, by earlier versions: today's code reads them, and makes the same of single calls."""

from pathlib import Path

import pytest

from cli.replay import REPLAYED, replay
from harness.benchmarks.prepare import DATA_DIR
from harness.files import ROOT

BUNDLES = sorted((ROOT / "evidence").glob("*/*.zip"))


@pytest.mark.parametrize("bundle", BUNDLES, ids=[path.stem for path in BUNDLES])
def test_reports_are_made_and_single_calls_on_humaneval_come_out_again(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(DATA_DIR, raising=False)  # The questions come with a package.

    single_calls = ("single", "humaneval")
    found = replay(bundle, is_wanted=lambda cell: (cell.method, cell.benchmark) == single_calls)
    assert found.differences
    assert {str(cell): difference for cell, difference in found.differences.items() if difference} == {}
    assert found.left_out == {}
    made = {path.name for path in (REPLAYED / bundle.stem).iterdir()}
    assert made >= {"index.html", "main_table.md", "costs.csv", "errors.html"}
    assert ("left out, since it is gone: artefact leak_report" in caplog.text) == (bundle.stem == "open")


def test_bundles_stay_small() -> None:
    assert BUNDLES
    files = [path for path in (ROOT / "evidence").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 20_000_000


def test_the_figure_of_the_readme_is_that_of_the_run() -> None:
    assert (ROOT / "docs/images/open.png").read_bytes() == (ROOT / "evidence/open/report/pareto_he.png").read_bytes()

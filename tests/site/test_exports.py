"""The export commands on a real run: everything that is finished, counted."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from harness.runner import layout
from tests.site.run import SETTINGS, cells
from workflow.cli import app


def export(monkeypatch: pytest.MonkeyPatch, run_folder: Path, *words: str) -> str:
    monkeypatch.chdir(run_folder)
    given = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    ended = CliRunner().invoke(app, ["export", *words, "--preset", "smoke", *given], catch_exceptions=False)
    assert ended.exit_code == 0
    return ended.output


def test_tables_are_exported_whole(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = export(monkeypatch, run_folder, "tables", "--out", str(tmp_path))
    assert said.startswith("SIMULATED BACKBONES. ")
    reports = {path.stem for path in (run_folder / "reports" / "smoke").glob("*.csv")}
    assert {path.stem for path in (tmp_path / "tables").glob("*.parquet")} == reports
    for name in ("items", "calls", "decisions"):
        own = [pd.read_parquet(run_folder / layout.cell("smoke", one) / f"{name}.parquet") for one in cells()]
        assert len(pd.read_parquet(tmp_path / name)) == sum(map(len, own))


def test_curves_are_exported_whole(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "curves.csv"
    assert "SIMULATED BACKBONES. curves of" in export(monkeypatch, run_folder, "curves", "--out", str(path))
    logs = (run_folder / "results" / "smoke" / "cells").rglob("training.parquet")
    assert len(pd.read_csv(path, comment="#")) == sum(len(pd.read_parquet(log)) for log in logs)

"""The report that Snakemake makes of a run: what it shows, by which section, and that it says what it was made of."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.finished import SETTINGS
from tests.planning import checkout

SHOWN = ("pareto_he.png", "gate_entropy.png", "training_curves.png")
# Nobody listens there: whatever asked the network would fail.
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


@pytest.fixture(scope="module")
def archive(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """Make the report of a finished run."""
    folder = checkout(tmp_path_factory.mktemp("report"))
    for name in ("results", "reports"):
        (folder / name).symlink_to(finished / name)
    settings = [f"{key}={json.dumps(value)}" for key, value in SETTINGS.items()]
    targets = [f"reports/smoke/{name}" for name in SHOWN]
    words = [*targets, "--config", "preset=smoke", *settings, "--report", "report.zip"]
    ended = subprocess.run(
        [sys.executable, "-m", "snakemake", *words],
        cwd=folder,
        env={**os.environ, **NOWHERE},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ZipFile(folder / "report.zip")


def variable(archive: ZipFile, name: str) -> Any:
    page = archive.read("report/report.html").decode()
    begin = re.search(rf'<script id="{name}">\s*var {name} = ', page)
    assert begin is not None
    return json.JSONDecoder().raw_decode(page, begin.end())[0]


def test_it_shows_the_files_with_caption_and_label(archive: ZipFile) -> None:
    results = variable(archive, "results")
    assert sorted(results) == sorted(f"reports/smoke/{name}" for name in SHOWN)
    for path, result in results.items():
        name = Path(path).stem
        assert result["labels"] == {"artefact": name, "preset": "smoke", "backbones": "SIMULATED"}
        assert "SIMULATED BACKBONES" in result["caption"]
        assert "problematic" not in result["caption"]
    sections = {"Cost and time", "Memory gates and halting", "Training"}
    assert set(variable(archive, "categories")) == sections

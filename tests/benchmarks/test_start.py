"""Cells per second for nearly empty cells: the overhead of starting and ending a process."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.files import ROOT
from harness.runner import layout
from tests.benchmarks.conftest import Measure
from tests.small_run import SINGLE, make, smoke

LIMIT = "limit={train: 1, test: 6, epochs: 1}"


def test_a_cell_of_six_questions(
    benchmark: BenchmarkFixture, measure: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    make(smoke())
    named = ["--method", SINGLE.method, "--benchmark", SINGLE.benchmark, "--backbone", SINGLE.backbone]
    command = [sys.executable, "-m", "cli.main", "cell", "--preset", "smoke", *named]
    folder = layout.cell("smoke", SINGLE)

    def run(_: int) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([*command, "--set", "benchmarks=[gsm_hard]", "--set", LIMIT], check=True, capture_output=True)
        assert (folder / "run.json").is_file()

    measure(benchmark, run, 1)

"""Fixtures: a run of four methods, and bundles of it with and without its questions."""

import contextlib
import shutil
from pathlib import Path

import pytest

from cli.bundle import pack
from tests.finished import BENCHMARK


@pytest.fixture(scope="session")
def few(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the finished run with the cells of four methods; read it, do not write."""
    folder = shutil.copytree(finished, tmp_path_factory.mktemp("few"), dirs_exist_ok=True)
    for method in (folder / "results/smoke/cells").iterdir():
        if method.name not in ("single", "gmr", "masrouter", "puppeteer"):
            shutil.rmtree(method)
    return folder


@pytest.fixture(scope="session")
def whole(few: Path) -> Path:
    with contextlib.chdir(few):
        pack("smoke", few / "whole.zip")
    return few / "whole.zip"


@pytest.fixture(scope="session")
def bare(few: Path) -> Path:
    """Return a bundle without questions."""
    with contextlib.chdir(few), pytest.MonkeyPatch.context() as patch:
        patch.setattr("cli.bundle.withheld_benchmarks", lambda: {BENCHMARK})
        pack("smoke", few / "bare.zip")
    return few / "bare.zip"

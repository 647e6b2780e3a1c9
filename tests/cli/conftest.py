"""Fixtures: bundles of the finished run, with and without its questions."""

import contextlib
from pathlib import Path

import pytest

from cli.bundle import pack
from tests.finished import BENCHMARK


@pytest.fixture(scope="session")
def bare(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles") / "bare.zip"
    with contextlib.chdir(finished), pytest.MonkeyPatch.context() as patch:
        patch.setattr("cli.bundle.withheld_benchmarks", lambda: {BENCHMARK})
        pack("smoke", path)
    return path


@pytest.fixture(scope="session")
def whole(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles") / "whole.zip"
    with contextlib.chdir(finished):
        pack("smoke", path)
    return path

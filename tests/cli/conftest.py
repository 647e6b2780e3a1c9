"""A folder to work in, without an encoder or models; a bundle."""

import contextlib
from pathlib import Path

import pytest

from cli.bundle import pack
from tests.cli.backbones import Backbones
from tests.fake_encoder import FakeEncoder


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Backbones:
    """Work in a new folder, with stand-ins for the encoder and the backbones."""
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.runner.cell.SentenceEncoder", FakeEncoder)
    answering = Backbones()
    monkeypatch.setattr("harness.runner.plan.simulated_endpoint", lambda preset: answering)
    return answering


@pytest.fixture(scope="session")
def bare(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle of the finished run without questions and prompts."""
    path = tmp_path_factory.mktemp("bundles") / "bare.zip"
    with contextlib.chdir(finished):
        pack("smoke", path, questions=False)
    return path

"""A folder with a trained router in it."""

from pathlib import Path

import pytest

from tests.cli.trained import TRAINED, Backbones, write
from tests.fake_encoder import FakeEncoder
from tests.small_run import prepare_questions


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Backbones:
    """Work in a new folder, with stand-ins for the encoder and the backbones."""
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    for module in ("cli.route", "harness.runner.setup"):
        monkeypatch.setattr(f"{module}.SentenceEncoder", FakeEncoder)
    answering = Backbones()
    monkeypatch.setattr("harness.runner.setup.simulated_endpoint", lambda preset: answering)
    return answering


@pytest.fixture
def trained(endpoint: Backbones) -> Path:
    """Return the checkpoint of a finished cell whose questions are prepared."""
    prepare_questions()
    write(TRAINED)
    (TRAINED.parent / "run.json").write_text("{}")
    return TRAINED

"""A tiny run of four cells, recorded once."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_encoder import FakeEncoder
from tests.workflow.bundling import runs

ENCODERS = ("harness.runner.setup", "harness.replay")


@pytest.fixture(scope="session")
def fake_encoder() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for room in ENCODERS:
            patch.setattr(f"{room}.SentenceEncoder", FakeEncoder)
        yield


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory, fake_encoder: None) -> Path:
    """The folder of a finished run, its table made."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "results").mkdir()
    with contextlib.chdir(folder):
        runs.run()
    return folder


@pytest.fixture(scope="session")
def bundle(recorded: Path) -> Path:
    """The bundle of the run."""
    return runs.bundled(recorded, "whole.tar")


@pytest.fixture(scope="session")
def without_questions(recorded: Path) -> Path:
    """The bundle of the run that has no questions."""
    return runs.bundled(recorded, "without.tar", questions=False)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_encoder: None) -> Path:
    """A folder to replay in, on a machine without network and simulator."""

    def closed(*_: object) -> None:
        raise AssertionError("a replay reached for a server")

    monkeypatch.setattr("socket.socket.connect", closed)
    monkeypatch.setattr("socket.socket.connect_ex", closed)
    monkeypatch.setattr("harness.runner.setup.simulated_endpoint", closed)
    monkeypatch.setattr("harness.llm.encoder.SentenceEncoder.encode", closed)
    monkeypatch.chdir(tmp_path)
    return tmp_path

from pathlib import Path

import pytest

from tests import small_run
from tests.fake_encoder import FakeEncoder


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two finished cells: Single LLM and a method that learns."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("harness.runner.resources.SentenceEncoder", FakeEncoder)
        small_run.make(small_run.smoke(), small_run.SINGLE, small_run.GMR)
    return folder


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the waiting time between a client's attempts."""
    monkeypatch.setattr("harness.llm.served_backbone.FIRST_WAIT_S", 0.0)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)

"""Fixtures: the numerical settings of the suite's processes, and one finished run for all tests."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# As in cli/main.py: how a sum is divided among threads shows in its last digits.
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# A loaded machine fails no test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run of all ten methods, with reports; read it, do not write."""
    from tests.finished import shared

    return shared(tmp_path_factory)


@pytest.fixture(scope="session")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the cache where the encoder's graph is made once for all workers, which takes as long as many tests."""
    from tests.finished import base_of

    return base_of(tmp_path_factory) / "graphs"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a new folder with an encoder that needs no model."""
    from tests.fake_encoder import FakeEncoder

    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.runner.resources.SentenceEncoder", FakeEncoder)
    return tmp_path


@pytest.fixture
async def code_tools() -> AsyncIterator[Any]:
    from harness.agents.code_tools import CodeTools
    from harness.sandbox import Sandbox
    from harness.sandbox.worker import LIMITS

    async with Sandbox(LIMITS.model_copy(update={"cpu_s": 2, "wall_s": 6.0})) as sandbox:
        yield CodeTools(sandbox)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the waiting time between a client's attempts."""
    monkeypatch.setattr("harness.llm.served_backbone.FIRST_WAIT_S", 0.0)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)

from pathlib import Path

import pytest

from tests import small_run
from tests.fake_encoder import FakeEncoder


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the small run: a cell of a single model, and one of a method that learns."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("harness.runner.cell.SentenceEncoder", FakeEncoder)
        small_run.make(small_run.smoke(), small_run.SINGLE, small_run.GMR)
    return folder

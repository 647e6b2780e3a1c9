"""Tests compute as the processes of the suite do, and share one finished run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from harness.concurrency import use_one_thread

use_one_thread()
# A loaded machine fails no test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run of all ten methods, with reports; read it, do not write."""
    from tests.finished import shared

    return shared(tmp_path_factory)

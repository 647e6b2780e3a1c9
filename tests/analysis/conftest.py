"""Fixtures that write cells to the folder of a test."""

import functools
from pathlib import Path
from typing import Any

import pytest

from tests.analysis import cells
from tests.analysis.cells import WriteCell


@pytest.fixture
def write_cell(tmp_path: Path) -> WriteCell:
    return functools.partial(cells.write, tmp_path / "cells")


@pytest.fixture
def make(write_cell: WriteCell) -> WriteCell:
    """Write the cell of a method that learns; by default untrained GMR on the pool."""

    def make(method: str = "gmr", seed: int = 0, *, backbone: str = "pool", **given: Any) -> Path:
        usual = {"cost_steps": 0.001, "cost_total": 0.002, "depth": 2, "updates": ()}
        return write_cell(method, backbone, seed=seed, **{**usual, **given})

    return make

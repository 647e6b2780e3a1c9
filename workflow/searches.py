"""Which cells of a preset search for a workflow."""

from __future__ import annotations

from pathlib import Path

from harness.runner import config, layout
from harness.runner.config import Preset

MODULE = "baselines.aflow"


def folders(chosen: Preset) -> list[Path]:
    """The cells whose checkpoints hold the rounds of a search, in the order of the preset."""
    entries = config.methods()
    return [layout.cell(chosen.name, cell) for cell in config.cells(chosen) if entries[cell.method].module == MODULE]

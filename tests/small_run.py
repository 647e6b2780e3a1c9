"""A small run of the smoke preset in the working folder, for tests of what is done with cells."""

from __future__ import annotations

import asyncio
from typing import Any

from harness.benchmarks.prepare import prepare
from harness.runner import cell, config, layout
from harness.runner.config import Cell, Preset
from harness.runner.plan import plan
from harness.runner.simulation import calibrate

SINGLE = Cell("single", "gsm_hard", "llama-3.2-3B", 0)
GMR = Cell("gmr", "gsm_hard", "pool", 0)


def smoke(**changes: Any) -> Preset:
    """Six test questions of one benchmark and one to learn from."""
    limit = {"train": 1, "test": 6, "epochs": 1}
    return config.preset("smoke", {"benchmarks": ["gsm_hard"], "limit": limit, **changes})


def prepare_questions(preset: str = "smoke", *benchmarks: str) -> None:
    """Prepare the embedded questions of benchmarks, gsm_hard unless others are named."""
    for key in benchmarks or ("gsm_hard",):
        prepare(key, "embedded", "official", layout.items(preset, key), layout.manifest(preset, key))


def make(preset: Preset, *cells: Cell) -> None:
    """Prepare the questions and the calibration of a preset, and run some of its cells."""
    prepare_questions(preset.name, *preset.benchmarks)
    asyncio.run(calibrate(preset))
    for one in cells:
        asyncio.run(cell.run(plan(preset, one)))

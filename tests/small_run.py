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


def make(chosen: Preset, *cells: Cell) -> None:
    """Prepare the questions and the calibration of a preset, and run some of its cells."""
    for key in chosen.benchmarks:
        prepare(key, chosen.data, chosen.splits, layout.items(chosen.name, key), layout.manifest(chosen.name, key))
    asyncio.run(calibrate(chosen))
    for one in cells:
        asyncio.run(cell.run(plan(chosen, one)))

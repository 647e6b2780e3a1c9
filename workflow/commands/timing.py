"""The job of the DAG that measures how long a method takes."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from harness.config import Cell
from workflow.app import BenchmarkKey, Overrides, PresetName, app, preset_of


@app.command("time")
def time_cell(
    preset: PresetName,
    method: Annotated[str, typer.Option(help="A key of config/methods.yaml.")],
    benchmark: BenchmarkKey,
    backbone: Annotated[str, typer.Option(help="A key of config/backbones.yaml, or pool.")],
    seed: Annotated[int, typer.Option(help="Training seed.")] = 0,
    overrides: Overrides = None,
) -> None:
    """Time the method of a finished cell: all test questions once, nothing cached. Let nothing else run beside it."""
    from harness import timing
    from harness.plan import plan

    asyncio.run(timing.run(plan(preset_of(preset, overrides), Cell(method, benchmark, backbone, seed))))

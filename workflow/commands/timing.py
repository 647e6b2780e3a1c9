"""The job of the DAG that measures how long a method takes."""

from __future__ import annotations

from harness import layout, recording
from harness.config import Cell
from workflow import stopping
from workflow.app import BackboneRow, BenchmarkKey, MethodKey, Overrides, PresetName, Seed, app, preset_of


@app.command("time")
def time_cell(
    preset: PresetName,
    method: MethodKey,
    benchmark: BenchmarkKey,
    backbone: BackboneRow,
    seed: Seed = 0,
    overrides: Overrides = None,
) -> None:
    """Time the method of a finished cell: all test questions once, nothing cached. Let nothing else run beside it."""
    from harness import timing
    from harness.plan import plan

    one = Cell(method, benchmark, backbone, seed)
    if (recorded := recording.here()) is not None:
        recorded.place([layout.timing(preset, one) / timing.FILE])
        return
    stopping.run(timing.run(plan(preset_of(preset, overrides), one)))

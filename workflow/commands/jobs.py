"""The jobs of the DAG that make results."""

from __future__ import annotations

from harness import config, layout, recording
from harness.config import Cell
from workflow import stopping
from workflow.app import BackboneRow, BenchmarkKey, MethodKey, Overrides, PresetName, Seed, app, preset_of


@app.command()
def data(preset: PresetName, benchmark: BenchmarkKey, overrides: Overrides = None) -> None:
    """Load, normalise, check and split one benchmark."""
    from harness.benchmarks.prepare import prepare

    chosen = preset_of(preset, overrides)
    config.check_benchmark(chosen, benchmark)
    if (recorded := recording.here()) is not None:
        from workflow.bundling.questions import place

        place(recorded, chosen, benchmark)
        return
    prepare(
        benchmark,
        chosen.data,
        chosen.splits,
        layout.items(preset, benchmark),
        layout.manifest(preset, benchmark),
    )


@app.command()
def world(preset: PresetName, overrides: Overrides = None) -> None:
    """Calibrate the simulated backbones to a preset's questions."""
    from harness.simulator.build import build_world_file

    chosen = preset_of(preset, overrides)
    if (recorded := recording.here()) is not None:
        recorded.place([layout.world(preset)])
        return
    stopping.run(build_world_file(chosen))


@app.command()
def cell(
    preset: PresetName,
    method: MethodKey,
    benchmark: BenchmarkKey,
    backbone: BackboneRow,
    seed: Seed = 0,
    overrides: Overrides = None,
) -> None:
    """Run one cell: a method on a benchmark with a backbone and a seed. Goes on where it stopped."""
    from harness import cell as cells
    from harness import replay
    from harness.plan import plan

    planned = plan(preset_of(preset, overrides), Cell(method, benchmark, backbone, seed))
    recorded = recording.here()
    stopping.run(cells.run(planned) if recorded is None else replay.run(planned, recorded))

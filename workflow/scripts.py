"""Jobs of the DAG that no one gives by hand: ``python -m workflow.scripts JOB``."""

from __future__ import annotations

import typer

from workflow import signals
from workflow.app import BackboneRow, BenchmarkKey, MethodKey, Overrides, PresetName, Seed, common, preset_of

scripts = typer.Typer(add_completion=False, pretty_exceptions_enable=False, callback=common)


@scripts.command()
def data(preset: PresetName, benchmark: BenchmarkKey, overrides: Overrides = None) -> None:
    """Load, normalise, check and split one benchmark."""
    from harness.benchmarks.prepare import prepare
    from harness.runner import config, layout

    chosen = preset_of(preset, overrides)
    config.check_benchmark(chosen, benchmark)
    items, manifest = layout.items(preset, benchmark), layout.manifest(preset, benchmark)
    prepare(benchmark, chosen.data, chosen.splits, items, manifest)


@scripts.command()
def calibration(preset: PresetName, overrides: Overrides = None) -> None:
    """Calibrate the simulated backbones to a preset's questions."""
    from harness.runner.calibration import calibrate

    chosen = preset_of(preset, overrides)
    signals.run(calibrate(chosen))


@scripts.command()
def timing(
    preset: PresetName,
    method: MethodKey,
    benchmark: BenchmarkKey,
    backbone: BackboneRow,
    seed: Seed = 0,
    overrides: Overrides = None,
) -> None:
    """Time the method of a finished cell: all test questions once, nothing cached. Let nothing else run meanwhile."""
    from harness.runner import timing as timings
    from harness.runner.config import Cell
    from harness.runner.plan import plan

    one = Cell(method, benchmark, backbone, seed)
    signals.run(timings.run(plan(preset_of(preset, overrides), one)))


if __name__ == "__main__":
    from workflow.cli import run

    run(scripts)

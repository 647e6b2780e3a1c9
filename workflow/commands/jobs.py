"""The jobs of the DAG that make results, and what lets one ask failed calls again."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from harness import recording
from harness.runner import config, layout
from harness.runner.config import Cell
from workflow import stopping
from workflow.app import JOB, BackboneRow, BenchmarkKey, MethodKey, Overrides, PresetName, Seed, app, preset_of


@app.command(rich_help_panel=JOB)
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


@app.command(rich_help_panel=JOB)
def world(preset: PresetName, overrides: Overrides = None) -> None:
    """Calibrate the simulated backbones to a preset's questions."""
    from harness.simulator.build import build_world_file

    chosen = preset_of(preset, overrides)
    if (recorded := recording.here()) is not None:
        recorded.place([layout.world(preset)])
        return
    stopping.run(build_world_file(chosen))


@app.command(rich_help_panel=JOB)
def cell(
    preset: PresetName,
    method: MethodKey,
    benchmark: BenchmarkKey,
    backbone: BackboneRow,
    seed: Seed = 0,
    overrides: Overrides = None,
) -> None:
    """Run one cell: a method on a benchmark with a backbone and a seed. Goes on where it stopped."""
    from harness import replay
    from harness.runner import cell as cells
    from harness.runner.plan import plan

    planned = plan(preset_of(preset, overrides), Cell(method, benchmark, backbone, seed))
    recorded = recording.here()
    stopping.run(cells.run(planned) if recorded is None else replay.run(planned, recorded))


@app.command("time", rich_help_panel=JOB)
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
    from harness.runner.plan import plan

    one = Cell(method, benchmark, backbone, seed)
    if (recorded := recording.here()) is not None:
        recorded.place([layout.timing(preset, one) / timing.FILE])
        return
    stopping.run(timing.run(plan(preset_of(preset, overrides), one)))


@app.command(rich_help_panel=JOB)
def flips(
    preset: PresetName,
    requests: Annotated[
        int, typer.Option(help="Requests to each backbone, each sent three times; at most all test questions.", min=1)
    ] = 200,
    overrides: Overrides = None,
) -> None:
    """Ask the servers of a preset the same requests twice and under load, and count replies and verdicts that differ.

    Writes reports/PRESET/flip_rate.md and .csv. Let nothing else ask the servers meanwhile.
    """
    from workflow import flips as measuring
    from workflow import flips_text

    found = stopping.run(measuring.measure(preset_of(preset, overrides), requests))
    typer.echo(flips_text.to_markdown(found))
    logging.info("flip rate: %s", ", ".join(map(str, flips_text.write(found, layout.REPORTS / preset))))


def _unmake(cell: Path) -> None:
    """First the result, then the calls: interrupted in between, the cell is run again all the same."""
    from harness.training.loop import forget

    (cell / "run.json").unlink(missing_ok=True)
    forget(cell)


@app.command("retry-errors")
def retry_errors(preset: PresetName) -> None:
    """Forget the failed calls of a preset, so that the next run asks them again; a training beside them starts over."""
    from harness.llm.call_log import CallLog, CallLogReader, logs_below

    config.check_presets([preset])
    total = 0
    for path in logs_below(layout.RESULTS / preset / "cells"):
        with CallLogReader(path) as log:
            if not log.failed():
                continue
        with CallLog(path) as log:
            _unmake(path.parent)
            total += log.forget_failed()
    typer.echo(f"{total} failed calls forgotten; the next run of the preset asks them again")

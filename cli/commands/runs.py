"""The jobs of the DAG, of which help shows those that are given by hand too; graders and servers before a run."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import signals
from cli.app import BackboneRow, BenchmarkKey, MethodKey, Overrides, PresetName, Seed, app, preset_of
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.runner.config import Preset


@app.command(hidden=True)
def cell(
    preset: PresetName,
    method: MethodKey,
    benchmark: BenchmarkKey,
    backbone: BackboneRow,
    seed: Seed = 0,
    overrides: Overrides = None,
) -> None:
    """Run one cell: a method on a benchmark with a backbone and a seed. Resumes where it stopped."""
    from harness.runner import cell as cells
    from harness.runner.config import Cell
    from harness.runner.plan import plan

    signals.run(cells.run(plan(preset_of(preset, overrides), Cell(method, benchmark, backbone, seed))))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def retry(context: typer.Context, preset: PresetName) -> None:
    """Ask failed calls of all cells of a preset again, with the settings of its last run; their training starts over.

    What else is given goes to Snakemake, such as a report to be made with them, or --workflow-profile profiles/slurm.
    """
    import json

    from harness.runner import config, layout

    settings = layout.settings(preset)
    if not settings.exists():
        raise UserError(f"preset {preset} has no run here ({settings} is missing), so none of its calls has failed")
    chosen = preset_of(preset, [f"@{settings}"])
    cells = [found for log in sorted(layout.logs(preset)) if (found := _forget_failed_calls(chosen, log))]
    if not cells:
        logging.info("no call of preset %s has failed", preset)
        return
    usual, given = config.settings(config.preset(preset)), config.settings(chosen)
    changed = [f"{key}={json.dumps(value)}" for key, value in given.items() if value != usual[key]]
    words = ["--cores", "all", *cells, *context.args, "--config", f"preset={preset}", *changed]
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *words])  # noqa: S606  our own interpreter


def _forget_failed_calls(chosen: Preset, path: Path) -> str | None:
    """Take back a cell of the preset with failed calls, and these; return the file that makes it again, None for none.

    First the result, then the calls: interrupted in between, the cell is run again all the same.
    """
    from harness.llm.call_log import CallLog, CallLogReader
    from harness.runner import config, layout
    from harness.training.loop import delete_checkpoints

    of = layout.cell_of(path.parent)
    with CallLogReader(path) as log:
        if of is None or not log.failed():
            return None
    try:
        config.check_cell(chosen, of)
    except UserError as error:
        logging.warning("%s is not of the last run and left as it is (%s)", of, error)
        return None
    with CallLog(path) as log:
        (path.parent / "run.json").unlink(missing_ok=True)
        delete_checkpoints(path.parent)
        logging.info("%s: %d failed calls to be asked again", of, log.forget_failed())
    return str(path.parent / "run.json")


@app.command()
def report(
    name: Annotated[str, typer.Argument(help="An artefact of `gmr --list`, claims, or page.")],
    preset: PresetName,
    overrides: Overrides = None,
) -> None:
    """Make one report of a preset from its finished cells: a table, a figure, the claims, the page of the run."""
    from cli import reports

    chosen = preset_of(preset, overrides)
    written = reports.write(name, chosen)
    kind = "simulated backbones" if chosen.simulated else "backbones behind servers"
    shown = ", ".join(map(str, written)) if len(written) < 10 else f"{len(written)} files below {written[0].parent}"
    logging.info("%s of preset %s (%s): %s", name, preset, kind, shown)


@app.command()
def health(
    preset: PresetName,
    benchmark: Annotated[
        str | None, typer.Option(help="Only what this benchmark needs; else all of the preset.", show_default=False)
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Ask all endpoints of a preset what they serve and how fast; results/PRESET/served/BENCHMARK.json has it.

    They complete short prompts and read long ones; everything that is wrong with any is named, and no question asked.
    """
    from cli import health as checks
    from harness.runner import config

    chosen = preset_of(preset, overrides)
    if benchmark is not None:
        config.check_benchmark(chosen, benchmark)
    written = signals.run(checks.check(chosen, [benchmark] if benchmark else chosen.benchmarks))
    logging.info("every endpoint serves what preset %s asks: %s", preset, ", ".join(map(str, written)))


@app.command()
def forecast(
    preset: PresetName,
    artefacts: Annotated[
        list[str] | None,
        typer.Argument(help="Names of artefacts; else all, or all cells of the methods that --set has."),
    ] = None,
    source: Annotated[str, typer.Option("--from", help="The preset whose finished cells are measured.")] = "rehearsal",
    gpu: Annotated[
        str | None, typer.Option(help="Hardware of config/throughput.yaml; else the servers that `gmr health` timed.")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Say how many calls, tokens and hours a run takes, and what it costs, from a slice that was measured."""
    from analysis import registry
    from cli.forecast import lines
    from harness.runner import config, layout

    chosen, settings = preset_of(preset, overrides), layout.settings(source)
    measured = preset_of(source, [f"@{settings}"] if settings.exists() else None)
    named = [registry.artefact(name) for name in artefacts or ()]
    for one in named:
        one.check(chosen)
    cells = list(dict.fromkeys(cell for one in named for cell in one.cells_of(chosen))) or registry.cells_of(chosen)
    if not artefacts and chosen.methods != config.preset(preset).methods:
        cells = [cell for cell in cells if cell.method in chosen.methods]
    for line in lines(chosen, cells, measured, gpu):
        typer.echo(line)


@app.command()
def validate(
    source: Annotated[str, typer.Option("--data", help="embedded or real (GMR_DATA_DIR, else the hub).")] = "embedded",
    benchmark: Annotated[list[str] | None, typer.Option(help="Only these benchmarks.")] = None,
) -> None:
    """Prove that every gold answer is graded right and a mutated one wrong.

    Status 1: a verdict is not as it should be.
    """
    from harness.benchmarks import keys
    from harness.benchmarks.validate import validate as validate_benchmark

    reports = [signals.run(validate_benchmark(key, source)) for key in benchmark or keys()]
    for one in reports:
        typer.echo(one.to_markdown())
    if any(not one.passed for one in reports):
        raise typer.Exit(1)


@app.command()
def simulate(
    preset: PresetName,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    engine: Annotated[bool, typer.Option(help="Take the time a real server would (config/simulator.yaml).")] = False,
    faults: Annotated[Path | None, typer.Option(help="File of faults, such as config/faults.yaml.")] = None,
    latency: Annotated[float, typer.Option(help="Mean seconds of a random delay of every reply.", min=0.0)] = 0.0,
    overrides: Overrides = None,
) -> None:
    """Serve the simulated backbones of a preset as an OpenAI-compatible HTTP server."""
    from harness.files import read
    from harness.runner.simulation import simulated_endpoint
    from harness.simulator.server import Faults, ServerBehaviour, serve

    chosen = preset_of(preset, overrides)
    if not chosen.simulated:
        raise UserError(f"preset {preset} asks real servers; name one with simulated backbones")
    failing = read(faults, Faults) if faults is not None else None
    endpoint = simulated_endpoint(chosen)
    behaviour = ServerBehaviour(endpoint.calibration.engine if engine else None, failing, latency)
    models = len(endpoint.models()["data"])
    logging.info(f"serving {models} simulated models at http://{host}:{port}/v1, Ctrl-C stops")
    try:
        serve(endpoint, host, port, behaviour)
    except OSError as error:
        raise UserError(f"cannot listen on {host}:{port} ({error.strerror}); choose another --port") from error


@app.command(hidden=True)
def data(preset: PresetName, benchmark: BenchmarkKey, overrides: Overrides = None) -> None:
    """Load, normalise, check and split one benchmark."""
    from harness.benchmarks.prepare import prepare
    from harness.runner import config, config_hash, layout

    chosen = preset_of(preset, overrides)
    config.check_benchmark(chosen, benchmark)
    items, manifest = layout.items(preset, benchmark), layout.manifest(preset, benchmark)
    prepare(benchmark, chosen.data, chosen.splits, items, manifest)
    made_of = layout.made_of(preset, f"data/{benchmark}")
    config_hash.note_made_of(made_of, config_hash.made_of_data(chosen))


@app.command(hidden=True)
def calibration(preset: PresetName, overrides: Overrides = None) -> None:
    """Calibrate the simulated backbones to a preset's questions."""
    from harness.runner.simulation import calibrate

    signals.run(calibrate(preset_of(preset, overrides)))


@app.command(hidden=True)
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

    signals.run(timings.run(plan(preset_of(preset, overrides), Cell(method, benchmark, backbone, seed))))

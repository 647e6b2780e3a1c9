"""What helps around a run."""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import Annotated

import typer

from harness import config, layout
from harness.errors import UserError
from workflow.app import Overrides, PresetName, app, preset_of


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
    from harness.opening import simulated_endpoint
    from harness.simulator.faults import load_faults
    from harness.simulator.server import Manners, serve

    chosen = preset_of(preset, overrides)
    if not chosen.simulated:
        raise UserError(f"preset {preset} asks real servers; name one with simulated backbones")
    failing = load_faults(faults) if faults is not None else None
    endpoint = simulated_endpoint(chosen)
    manners = Manners(endpoint.world.settings.engine if engine else None, failing, latency)
    logging.info(
        "serving %d simulated models at http://%s:%d/v1, Ctrl-C stops", len(endpoint.models()["data"]), host, port
    )
    try:
        serve(endpoint, host, port, manners)
    except OSError as error:
        raise UserError(f"cannot listen on {host}:{port} ({error.strerror}); choose another --port") from error


@app.command("ledger")
def print_ledger(preset: PresetName, overrides: Overrides = None) -> None:
    """Print calls, tokens and cost of a preset's finished cells, by method."""
    from harness.ledger import ledger, simulated
    from paper import registry

    chosen = preset_of(preset, overrides)
    folders = [layout.cell(preset, one) for one in registry.cells_of(chosen)]
    finished = sum((folder / "run.json").exists() for folder in folders)
    warning = "SIMULATED BACKBONES. " if simulated(folders) else ""
    typer.echo(f"{warning}Preset {preset}, {finished} of {len(folders)} cells finished.")
    typer.echo(ledger(folders).to_string(float_format="{:.4f}".format))
    others = [path.parent for path in layout.RESULTS.glob(f"{preset}/cells/*/*/*/*/run.json")]
    left = sorted({folder.parents[2].name for folder in others if folder not in folders})
    if left:
        typer.echo(
            f"Finished cells that no artefact of this preset is made of as it stands: {', '.join(left)} "
            "(name them by --set)."
        )
    typer.echo(
        "uses: calls as charged. calls: distinct within a cell. alike: of these, asked by another cell too. "
        "cost: in the paper's unit, over uses."
    )


def _unmake(cell: Path) -> None:
    """First the result, then the calls: interrupted in between, the cell is run again all the same."""
    from harness.training import forget

    (cell / "run.json").unlink(missing_ok=True)
    forget(cell)


@app.command("retry-errors")
def retry_errors(preset: PresetName) -> None:
    """Forget the failed calls of a preset, so that the next run asks them again; a training beside them starts over."""
    from harness.llm.call_log import drop_errors, failed_calls, logs_below

    config.check_presets([preset])
    total = 0
    for log in logs_below(layout.RESULTS / preset / "cells"):
        if failed_calls(log):
            total += drop_errors(log, before=functools.partial(_unmake, log.parent))
    typer.echo(f"{total} failed calls forgotten; the next run of the preset asks them again")

"""What the endpoints of a preset serve, and a server of simulated backbones."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from harness.errors import UserError
from harness.runner import config
from workflow import signals
from workflow.app import JOB, Overrides, PresetName, app, preset_of


@app.command(rich_help_panel=JOB)
def health(
    preset: PresetName,
    benchmark: Annotated[
        str | None, typer.Option(help="Only what this benchmark needs; else all of the preset.", show_default=False)
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Ask all endpoints of a preset what they serve, and write it to results/PRESET/served/BENCHMARK.json.

    Names everything that is wrong with any of them; no question is asked.
    """
    from workflow import health as checks

    chosen = preset_of(preset, overrides)
    if benchmark is not None:
        config.check_benchmark(chosen, benchmark)
    written = signals.run(checks.check(chosen, [benchmark] if benchmark else chosen.benchmarks))
    logging.info("every endpoint serves what preset %s asks: %s", preset, ", ".join(map(str, written)))


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
    from harness.runner.setup import simulated_endpoint
    from harness.simulator.faults import load_faults
    from harness.simulator.server import Manners, serve

    chosen = preset_of(preset, overrides)
    if not chosen.simulated:
        raise UserError(f"preset {preset} asks real servers; name one with simulated backbones")
    failing = load_faults(faults) if faults is not None else None
    endpoint = simulated_endpoint(chosen)
    manners = Manners(endpoint.world.engine if engine else None, failing, latency)
    logging.info(
        "serving %d simulated models at http://%s:%d/v1, Ctrl-C stops", len(endpoint.models()["data"]), host, port
    )
    try:
        serve(endpoint, host, port, manners)
    except OSError as error:
        raise UserError(f"cannot listen on {host}:{port} ({error.strerror}); choose another --port") from error

"""The command that tells before a run what it will ask, take and cost, and after it what it did."""

from __future__ import annotations

from typing import Annotated

import orjson
import typer

from harness import config
from harness.errors import UserError
from workflow.app import Overrides, app, preset_of


@app.command("forecast")
def print_forecast(
    targets: Annotated[
        list[str] | None, typer.Argument(help="Files or artefacts as Snakemake has them, or all (the default).")
    ] = None,
    preset: Annotated[str, typer.Option("--preset", help="The run to be forecast.")] = "paper",
    source: Annotated[str, typer.Option("--from", help="The preset whose finished cells are measured.")] = "rehearsal",
    gpu: Annotated[str | None, typer.Option(help="A GPU of config/throughput.yaml; else its first.")] = None,
    actual: Annotated[
        bool, typer.Option("--actual", help="Set what finished cells of the run took beside it.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    overrides: Overrides = None,
) -> None:
    """Say how many calls, tokens, GPU-hours and bytes a run takes, and what it costs.

    Reckoned from the finished cells of another run, such as a rehearsal on a share of the questions.
    """
    from workflow.forecasting import forecast as forecasts
    from workflow.forecasting import text
    from workflow.forecasting.targets import ALL, wanted
    from workflow.forecasting.throughput import gpus, hours

    chosen = preset_of(preset, overrides)
    named = wanted(targets or [ALL], chosen)
    found = forecasts.forecast(chosen, named, config.preset(source))
    done = forecasts.actual(chosen, named.cells) if actual else None
    if actual and done is None:
        raise UserError(f"none of these cells of preset {preset} is finished, so there is nothing to set beside it")
    device = gpu or gpus()[0]
    taken = None if chosen.simulated else hours(found.amounts, device)
    if json:
        typer.echo(orjson.dumps(text.as_json(found, taken, device, done), option=orjson.OPT_INDENT_2).decode())
        return
    typer.echo("\n".join(text.lines(found, taken, device, done)))

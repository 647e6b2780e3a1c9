"""The job of the DAG that measures what temperature 0 is worth."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from harness import layout
from workflow import stopping
from workflow.app import Overrides, PresetName, app, preset_of


@app.command()
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

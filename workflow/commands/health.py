"""The command that asks what the endpoints of a preset serve."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from harness import config
from workflow import stopping
from workflow.app import Overrides, PresetName, app, preset_of


@app.command()
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
    written = stopping.run(checks.check(chosen, [benchmark] if benchmark else chosen.benchmarks))
    logging.info("every endpoint serves what preset %s asks: %s", preset, ", ".join(map(str, written)))

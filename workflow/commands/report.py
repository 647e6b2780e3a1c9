"""Reports, made from finished cells."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from workflow import reports
from workflow.app import JOB, Overrides, PresetName, app, preset_of

_NAME = f"A key of config/artefacts.yaml, such as main_table, or {', '.join(reports.WRITERS)}."


@app.command(rich_help_panel=JOB)
def report(
    name: Annotated[str, typer.Argument(help=_NAME, show_default=False)],
    preset: PresetName,
    overrides: Overrides = None,
) -> None:
    """Make one report of a preset from its finished cells: a table, a figure, the claims, the page of the run."""
    chosen = preset_of(preset, overrides)
    written = reports.write(name, chosen)
    kind = "simulated backbones" if chosen.simulated else "backbones behind servers"
    shown = ", ".join(map(str, written)) if len(written) < 10 else f"{len(written)} files below {written[0].parent}"
    logging.info("%s of preset %s (%s): %s", name, preset, kind, shown)

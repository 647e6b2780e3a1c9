"""The command that says where a run stands."""

from __future__ import annotations

import time

import orjson
import typer

from harness import layout
from harness.config import Cell, Preset
from workflow.app import Json, Overrides, PresetName, Targets, app, preset_of

_UNFINISHED = 1


@app.command("status")
def show_status(
    targets: Targets = None,
    preset: PresetName = "embedded",
    as_json: Json = False,
    overrides: Overrides = None,
) -> None:
    """Say which cells are finished, running, failed or missing, what they asked so far, and what to do next.

    Reads what lies in results/ and reports/ and touches nothing, so it can be given at any time, beside a run too. A
    run with overrides is looked at with the same ones.
    """
    from workflow.targets import wanted
    from workflow.watching import text
    from workflow.watching.artefacts import artefacts_of
    from workflow.watching.standing import Watch

    chosen, names = preset_of(preset, overrides), targets or ["main_table"]
    cells = wanted(names, chosen).cells
    now = time.monotonic()
    standing = Watch(chosen, cells).look(now)
    beyond = Watch(chosen, _others(chosen, cells)).look(now)
    found = (chosen, names, standing, beyond, artefacts_of(chosen))
    if as_json:
        typer.echo(orjson.dumps(text.as_json(*found), option=orjson.OPT_INDENT_2).decode())
    else:
        typer.echo("\n".join(text.lines(*found)))
    if not text.is_finished(names, standing, found[-1]):
        raise typer.Exit(_UNFINISHED)


def _others(preset: Preset, cells: tuple[Cell, ...]) -> list[Cell]:
    """The cells of a preset that have a folder and are none of some."""
    folders = sorted((layout.RESULTS / preset.name / "cells").glob("*/*/*/seed*"))
    found = (layout.cell_of(folder) for folder in folders)
    return [cell for cell in found if cell is not None and cell not in cells]

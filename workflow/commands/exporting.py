"""Results in the forms that other tools read."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Annotated

import typer

from harness import layout
from harness.config import Cell, Preset
from harness.errors import UserError
from workflow.app import Overrides, PresetName, app, preset_of

exporting = typer.Typer(no_args_is_help=True, help="Write finished results in the forms that other tools read.")
app.add_typer(exporting, name="export")

Methods = Annotated[
    list[str] | None, typer.Option("--method", help="Only cells of this method; may be repeated.", show_default=False)
]


@exporting.command("inspect")
def inspect_logs(
    preset: PresetName = "embedded",
    out: Annotated[
        Path | None, typer.Option(help="The folder; reports/PRESET/inspect without.", show_default=False)
    ] = None,
    method: Methods = None,
    overrides: Overrides = None,
) -> None:
    """Write the test trajectories of every finished cell as a log of Inspect, to be opened with `inspect view`.

    One file a cell, in a folder a benchmark; look at them by `inspect view --log-dir reports/PRESET/inspect`. Needs
    the extra `inspect` (pip install -e '.[inspect]').
    """
    chosen = preset_of(preset, overrides)
    cells = _finished(chosen, method)
    if importlib.util.find_spec("inspect_ai") is None:
        raise UserError("inspect_ai is not installed; pip install -e '.[inspect]' adds it")
    from paper.trajectories.cells import questions
    from workflow.inspect_export.files import write_cell

    folder, written = out or layout.REPORTS / preset / "inspect", []
    asked = {key: questions(preset, key) for key in dict.fromkeys(cell.benchmark for cell in cells)}
    for number, cell in enumerate(cells, start=1):
        written.append(write_cell(chosen, cell, layout.cell(preset, cell), folder, asked[cell.benchmark]))
        logging.info("%d of %d, %s: %s", number, len(cells), cell, written[-1].path)
    size = sum(one.path.stat().st_size for one in written) / 1e6
    kind = "SIMULATED BACKBONES. " if chosen.simulated else ""
    samples = sum(one.samples for one in written)
    typer.echo(f"{kind}{len(written)} logs, {samples:,} trajectories, {size:.1f} MB; inspect view --log-dir {folder}")


def _finished(preset: Preset, methods: list[str] | None) -> list[Cell]:
    """The finished cells of a preset.

    Raises:
        UserError: There is none, or none of a method.
    """
    runs = sorted((layout.RESULTS / preset.name / "cells").glob("*/*/*/seed*/run.json"))
    cells = [cell for run in runs if (cell := layout.cell_of(run.parent)) is not None]
    found = [cell for cell in cells if methods is None or cell.method in methods]
    lacking = sorted(set(methods or ()) - {cell.method for cell in cells})
    if lacking or not found:
        what = f"method {lacking[0]}" if lacking else "its cells"
        raise UserError(
            f"nothing of {what} is finished in preset {preset.name}; run it with "
            f"`snakemake --cores all {layout.report(preset.name, 'main_table.md')}`"
        )
    return found

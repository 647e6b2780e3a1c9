"""Results for other tools: tables, items, calls and decisions as parquet, training curves as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness import layout
from workflow.app import Overrides, PresetName, preset_of
from workflow.commands.exporting import exporting
from workflow.shown import shown


@exporting.command()
def tables(
    preset: PresetName = "embedded",
    out: Annotated[
        Path | None, typer.Option(help="The folder; reports/PRESET/export without.", show_default=False)
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Write the tables of all reports, and the items, calls and decisions of all finished cells, as parquet.

    Below the folder, `tables/` has every CSV of the reports with a parquet file beside it; `items/`, `calls/`,
    `decisions/` and those of training are data sets, partitioned by method, benchmark, row (a backbone, or `pool`) and
    seed.
    """
    from paper.exports import dataset
    from paper.exports.tables import export
    from paper.site.source import Finished

    chosen = preset_of(preset, overrides)
    finished = Finished.of(chosen, shown(chosen))
    folder = out or _folder(preset)
    made = export(finished.folder, preset, folder)
    parts = dataset.export([(cell.folder, cell.run) for cell in finished.cells], folder)
    size = sum(path.stat().st_size for path in (*made, *parts)) / 1e6
    told = f"{len(made)} tables, {len(parts)} parts of {len(finished.cells)} cells, {size:.1f} MB: {folder}"
    typer.echo(f"{_kind(finished.simulated)}{told}{_missing(len(finished.missing))}")


@exporting.command()
def curves(
    preset: PresetName = "embedded",
    out: Annotated[
        Path | None, typer.Option(help="The file; reports/PRESET/export/curves.csv without.", show_default=False)
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Write the training logs of all finished cells as one CSV: a line a cell, update and measure."""
    from paper.exports.curves import export
    from paper.site.source import Finished

    chosen = preset_of(preset, overrides)
    finished = Finished.of(chosen, shown(chosen))
    path = out or _folder(preset) / "curves.csv"
    learned = export(finished.cells, path)
    typer.echo(f"{_kind(finished.simulated)}curves of {learned} cells: {path}{_missing(len(finished.missing))}")


def _folder(preset: str) -> Path:
    return layout.REPORTS / preset / "export"


def _kind(simulated: bool) -> str:
    return "SIMULATED BACKBONES. " if simulated else ""


def _missing(cells: int) -> str:
    return f"; {cells} cells are not finished" if cells else ""

"""Results in the forms that other tools read, and a finished run as one file that others can replay."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.errors import UserError
from harness.runner import layout
from harness.runner.config import Cell, Preset
from workflow.app import Overrides, PresetName, app, preset_of
from workflow.reports import artefacts_of

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
    from analysis.trajectories.cells import questions
    from workflow.inspect_export.files import write_cell

    folder, written = out or layout.REPORTS / preset / "inspect", []
    asked = {key: questions(preset, key) for key in dict.fromkeys(cell.benchmark for cell in cells)}
    for number, cell in enumerate(cells, start=1):
        written.append(write_cell(chosen, cell, layout.cell(preset, cell), folder, asked[cell.benchmark]))
        logging.info("%d of %d, %s: %s", number, len(cells), cell, written[-1].path)
    size = sum(one.path.stat().st_size for one in written) / 1e6
    samples = sum(one.samples for one in written)
    told = f"{len(written)} logs, {samples:,} trajectories, {size:.1f} MB; inspect view --log-dir {folder}"
    typer.echo(f"{_kind(chosen.simulated)}{told}")


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
    from analysis.exports import dataset
    from analysis.exports.tables import export
    from analysis.site.source import Finished

    chosen = preset_of(preset, overrides)
    finished = Finished.of(chosen, artefacts_of(chosen))
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
    from analysis.exports.curves import export
    from analysis.site.source import Finished

    chosen = preset_of(preset, overrides)
    finished = Finished.of(chosen, artefacts_of(chosen))
    path = out or _folder(preset) / "curves.csv"
    learned = export(finished.cells, path)
    typer.echo(f"{_kind(finished.simulated)}curves of {learned} cells: {path}{_missing(len(finished.missing))}")


@app.command()
def bundle(
    preset: PresetName = "embedded",
    out: Annotated[Path | None, typer.Option(help="The file to write; PRESET.bundle.tar unless given.")] = None,
    without_questions: Annotated[
        bool, typer.Option("--without-questions", help="Leave out questions and prompts; a replay needs the data.")
    ] = False,
    artefact: Annotated[
        list[str] | None, typer.Option(help="Only what makes this artefact; may be repeated. All unless given.")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Pack a finished run into one file, from which every table can be made again without a server (docs/replay.md)."""
    from workflow.bundling.bundle import bundle as pack

    chosen = preset_of(preset, overrides)
    path = out or Path(f"{preset}.bundle.tar")
    _tell(path, pack(chosen, artefact or artefacts_of(chosen), path, questions=not without_questions))


@app.command("check-bundle")
def check_bundle(path: Annotated[Path, typer.Argument(help="The bundle.", show_default=False)]) -> None:
    """Read a whole bundle and compare every byte with what its manifest says."""
    from workflow.bundling.archive import Archive

    archive = Archive(path)
    archive.check()
    _tell(path, archive.manifest)


def _tell(path: Path, manifest: dict[str, Any]) -> None:
    files = manifest["files"]
    size = f"{len(files)} files of {sum(one['size'] for one in files) / 1e6:.1f} MB"
    warning = "SIMULATED BACKBONES. " if manifest["simulated"] else ""
    without = "" if manifest["questions"] else " without questions"
    typer.echo(
        f"{warning}{path}: preset {manifest['preset']}{without}, {len(manifest['cells'])} cells, {size}, "
        f"commit {manifest['code']['commit'] or 'unknown'}."
    )
    for licence in manifest["licences"]:
        typer.echo(f"  {licence['of']}: {licence['licence']} ({licence['attribution']})")


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


def _folder(preset: str) -> Path:
    return layout.REPORTS / preset / "export"


def _kind(simulated: bool) -> str:
    return "SIMULATED BACKBONES. " if simulated else ""


def _missing(cells: int) -> str:
    return f"; {cells} cells are not finished" if cells else ""

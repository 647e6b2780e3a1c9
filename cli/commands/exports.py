"""A finished run for others: one file that can be replayed, and trajectories for the viewer of Inspect."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.app import Overrides, PresetName, app, preset_of
from harness.errors import UserError


@app.command()
def bundle(
    preset: PresetName,
    file: Annotated[Path, typer.Argument(help="The bundle, such as PRESET.tar.zst.", show_default=False)],
    without_questions: Annotated[
        bool, typer.Option("--without-questions", help="Leave out questions and prompts; who unpacks needs the data.")
    ] = False,
    checkpoints: Annotated[
        bool,
        typer.Option("--checkpoints", help="Add the trained routers, which a replay trains again."),
    ] = False,
    unpacking: Annotated[bool, typer.Option("--unpack", help="Unpack FILE, and check every byte of it.")] = False,
    into: Annotated[
        Path | None, typer.Option(help="The new folder to unpack to; the name of FILE without endings unless given.")
    ] = None,
) -> None:
    """Pack the results of a preset into one file, or unpack one, to make its reports without a server."""
    from cli.bundle import pack, unpack

    if unpacking:
        folder = into or Path(file.name.partition(".")[0])
        manifest = unpack(file, folder)
        typer.echo(_told(folder, manifest))
        typer.echo(f"Make its reports by `snakemake --directory {folder} --cores all reports/NAME`, such as:")
    else:
        manifest = pack(preset, file, questions=not without_questions, checkpoints=checkpoints)
        for line in manifest["unfinished"]:
            logging.warning("left out: %s", line)
        typer.echo(_told(file, manifest))
    typer.echo(f"  {', '.join(manifest['reports']) or 'none: not every cell of any is finished'}")


@app.command()
def export(
    preset: PresetName,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead every finished cell of this method, such as an ablation; may be repeated.", show_default=False
        ),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Write trajectories as logs of Inspect, for `inspect view`: reports/PRESET/inspect.

    Without --method those of the preset's own cells that are finished. Needs the extra `inspect` of the package.
    """
    if importlib.util.find_spec("inspect_ai") is None:
        raise UserError("inspect_ai is not installed; pip install -e '.[inspect]' adds it")
    from analysis.inspect_logs import write_cell
    from analysis.source import lacks
    from analysis.trajectories import questions
    from cli import reports
    from harness.runner import config, layout

    chosen = preset_of(preset, overrides)
    cells = config.cells(chosen)
    if method is not None:
        found = sorted((layout.RESULTS / chosen.name / "cells").glob("*/*/*/seed*"))
        cells = [cell for folder in found if (cell := layout.cell_of(folder)) and cell.method in method]
    folders = [layout.cell(chosen.name, cell) for cell in cells]
    unfinished = [folder for folder in folders if not (folder / "run.json").exists()]
    cells = [cell for cell, folder in zip(cells, folders, strict=True) if folder not in unfinished]
    asked_for = method or chosen.methods
    lacking = [key for key in asked_for if key not in {cell.method for cell in cells}]
    if lacking and (method or not cells):
        is_usual = tuple(asked_for) == config.preset(preset).methods
        given = "" if is_usual else f" --config methods='[{', '.join(asked_for)}]'"
        raise UserError(
            f"nothing of {lacking[0]} is finished in preset {chosen.name}; run it with "
            f"`snakemake --cores all {layout.report(chosen.name, 'main_table.md')}{given}`"
        )
    if method is None and unfinished:
        logging.warning("left out: %s", lacks(unfinished, len(cells)))
    folder = layout.REPORTS / preset / "inspect"
    asked = {key: questions(preset, key) for key in dict.fromkeys(cell.benchmark for cell in cells)}
    for cell in cells:
        logging.info("%s: %s", cell, write_cell(preset, cell, folder, asked[cell.benchmark]))
    if method is None:
        reports.note_made("inspect", chosen)
    logging.info("inspect view --log-dir %s", folder)


def _told(path: Path, manifest: dict[str, Any]) -> str:
    from cli.bundle import whose

    size = f"{len(manifest['files'])} files of {sum(one['size'] for one in manifest['files'].values()) / 1e6:.1f} MB"
    without = "" if manifest["questions"] else " without questions"
    told = f"preset {manifest['preset']}{without}, {len(manifest['cells'])} cells, {size}, {whose(manifest['code'])}"
    warning = "SIMULATED BACKBONES. " if manifest["simulated"] else ""
    return f"{warning}{path}: {told}; licences are in its manifest.json"

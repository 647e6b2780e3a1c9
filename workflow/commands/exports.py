"""A finished run as one file that others can replay."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from workflow.app import PresetName, app


@app.command()
def bundle(
    file: Annotated[Path, typer.Argument(help="The bundle, such as PRESET.tar.zst.", show_default=False)],
    preset: PresetName = "embedded",
    without_questions: Annotated[
        bool, typer.Option("--without-questions", help="Leave out questions and prompts; who unpacks needs the data.")
    ] = False,
    unpacking: Annotated[bool, typer.Option("--unpack", help="Unpack FILE, and check every byte of it.")] = False,
    into: Annotated[
        Path | None, typer.Option(help="The new folder to unpack to; the name of FILE without endings unless given.")
    ] = None,
) -> None:
    """Pack the results of a preset into one file, or unpack one, to make its reports without a server."""
    from workflow.bundle import pack, unpack

    if unpacking:
        folder = into or Path(file.name.partition(".")[0])
        manifest = unpack(file, folder)
        typer.echo(_told(folder, manifest))
        typer.echo(f"Make its reports by `snakemake --directory {folder} --cores all reports/NAME`, such as:")
    else:
        manifest = pack(preset, file, questions=not without_questions)
        for line in manifest["unfinished"]:
            logging.warning("left out: %s", line)
        typer.echo(_told(file, manifest))
    typer.echo(f"  {', '.join(manifest['reports']) or 'none: not every cell of any is finished'}")


def _told(path: Path, manifest: dict[str, Any]) -> str:
    size = f"{len(manifest['files'])} files of {sum(one['size'] for one in manifest['files'].values()) / 1e6:.1f} MB"
    without = "" if manifest["questions"] else " without questions"
    commit = manifest["code"]["commit"] or "unknown"
    told = f"preset {manifest['preset']}{without}, {len(manifest['cells'])} cells, {size}, commit {commit}"
    warning = "SIMULATED BACKBONES. " if manifest["simulated"] else ""
    return f"{warning}{path}: {told}; licences stand in its manifest.json"

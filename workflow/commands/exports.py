"""A finished run as one file that others can replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from workflow.app import Overrides, PresetName, app, preset_of
from workflow.shown import shown


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
    _tell(path, pack(chosen, artefact or shown(chosen), path, questions=not without_questions))


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

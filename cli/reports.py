"""The reports of a preset: which there are, and how each is made from its finished cells."""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import Any

from analysis import registry
from harness.files import digest, sha256
from harness.runner import config, config_hash, layout
from harness.runner.config import Preset


def all_files() -> list[str]:
    """Return the names of all files of artefacts, PDFs of tables included, below the folder of a preset."""
    artefacts = registry.artefacts().values()
    files = [file for artefact in artefacts for file in artefact.files]
    return [*files, *(f"{artefact.key}.pdf" for artefact in artefacts if artefact.kind == "table")]


def inputs_of(name: str, preset: Preset) -> list[Path]:
    """Return the files that a report is made from."""
    match name:
        case "inspect":
            return [layout.cell(preset.name, cell) / "run.json" for cell in config.cells(preset)]
        case "page":
            artefacts = registry.of_run(preset)
            return [layout.report(preset.name, file) for artefact in artefacts for file in artefact.files]
        case _:
            return registry.artefact(name).inputs(preset)


def made_of(name: str, preset: Preset) -> str:
    """Return the digest of what decides what a report shows: settings, code, the content of its inputs."""
    settings: Any
    match name:
        case "inspect":
            settings, code = list(map(str, config.cells(preset))), registry.code_of_report()
        case "page":
            artefacts = registry.of_run(preset)
            choices = [[artefact.deciding_settings(preset), artefact.title, artefact.section] for artefact in artefacts]
            settings = [preset.description, choices]
            code = registry.code_of_report("docs/deviations.md", "config/licences.yaml")
        case _:
            settings, code = registry.artefact(name).deciding_settings(preset), registry.artefact(name).code()
    return digest([settings, code, list(map(_content, inputs_of(name, preset)))])


@functools.cache
def _content(path: Path) -> str | None:
    """Return the SHA-256 of a file, read once a process; None if it is missing, as cells of a partial report are."""
    return sha256(path) if path.is_file() else None


def note_made(name: str, preset: Preset) -> None:
    """Write what a report is made of, once its files are there."""
    config_hash.note_made_of(layout.made_of(preset.name, f"reports/{name}"), made_of(name, preset))


def write(name: str, preset: Preset) -> list[Path]:
    """Make a report from whatever cells are finished, and return its files.

    Args:
        name: ``page``, or a key of ``config/artefacts.yaml``.
        preset: The preset whose report it is.

    Raises:
        UserError: if the name is unknown, or a table or figure lacks cells.
    """
    folder = layout.REPORTS / preset.name
    if name == "page":
        from analysis import page

        files = [folder / "index.html"]
        if lacking := page.write(preset, [artefact.key for artefact in registry.of_run(preset)]):
            logging.info("%d further tables and figures can be made: snakemake --cores all %s", len(lacking), *files)
    else:
        from analysis import exhibit

        files = exhibit.write(registry.artefact(name).build(preset), folder, name)
    note_made(name, preset)
    return files

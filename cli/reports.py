"""The reports of a preset: which there are, and how each is made from its finished cells."""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import Any, NamedTuple

from analysis import registry
from harness.files import digest, sha256
from harness.runner import config_hash, layout
from harness.runner.run import Run


def all_files() -> list[str]:
    """Return the names of all files of artefacts, PDFs of tables included, below the folder of a preset."""
    artefacts = registry.artefacts().values()
    files = [file for artefact in artefacts for file in artefact.files]
    return [*files, *(f"{artefact.key}.pdf" for artefact in artefacts if artefact.kind == "table")]


class Report(NamedTuple):
    """The files of a report, those it is made from, and what else decides what it shows: settings and code."""

    files: list[str]  # below the folder of a preset
    inputs: list[Path]
    settings: Any
    code: str

    def made_of(self) -> str:
        """Return the digest of settings, code and content of the inputs."""
        return digest([self.settings, self.code, list(map(_content, self.inputs))])


def report(name: str, run: Run) -> Report:
    """Return a report: ``page``, ``inspect``, or a key of ``config/artefacts.yaml``; UserError for any other."""
    if name == "inspect":
        cells = run.cells()
        runs = [layout.cell(run.name, cell) / "run.json" for cell in cells]
        return Report([name], runs, list(map(str, cells)), registry.code_of_report())
    if name == "page":
        artefacts = registry.of_run(run)
        shown = [layout.report(run.name, file) for artefact in artefacts for file in artefact.files]
        choices = [[artefact.deciding_settings(run), artefact.title, artefact.section] for artefact in artefacts]
        code = registry.code_of_report("docs/deviations.md")
        return Report(["index.html"], shown, [run.description, choices], code)
    artefact = registry.artefact(name)
    return Report(artefact.files, artefact.inputs(run), artefact.deciding_settings(run), artefact.code())


@functools.cache
def _content(path: Path) -> str | None:
    """Return the SHA-256 of a file, read once a process; None if it is missing, as cells of a partial report are."""
    return sha256(path) if path.is_file() else None


def is_current(name: str, run: Run) -> bool:
    """Return whether the files of a report are there, made of today's settings, code and inputs."""
    made, record = report(name, run), layout.made_of(run.name, f"reports/{name}")
    files = [layout.report(run.name, file) for file in made.files]
    return config_hash.is_made_of(record, made.made_of(), files)


def note_made(name: str, run: Run) -> None:
    """Write what a report is made of, once its files are there."""
    config_hash.note_made_of(layout.made_of(run.name, f"reports/{name}"), report(name, run).made_of())


def write(name: str, run: Run) -> list[Path]:
    """Make ``page`` or an artefact from whatever cells are finished, and return its files.

    Raises UserError if the name is unknown, or none of its cells is finished.
    """
    folder = layout.REPORTS / run.name
    if name == "page":
        from analysis import page

        files = [folder / "index.html"]
        all_of_it = f"snakemake --cores all {files[0]}"
        keys = [artefact.key for artefact in registry.of_run(run)]
        lacking = page.write(run)
        if older := [key for key in keys if key not in lacking and not is_current(key, run)]:
            what = "tables and figures on it are of other code, settings or cells than today's; make them again"
            logging.warning("%d %s: %s", len(older), what, all_of_it)
        if lacking:
            logging.info("%d further tables and figures can be made: %s", len(lacking), all_of_it)
    else:
        from analysis import exhibit

        files = exhibit.write(registry.artefact(name).build(run), folder, name)
    note_made(name, run)
    return files

"""The reports of a preset: which there are, and how each is made from its finished cells."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from analysis import registry
from harness.runner import layout
from harness.runner.results import read_finished
from harness.runner.run import Identity, Run


def all_files() -> list[str]:
    """Return the names of all files of artefacts, PDFs of tables included, below the folder of a preset."""
    artefacts = registry.artefacts().values()
    files = [file for artefact in artefacts for file in artefact.files]
    return [*files, *(f"{artefact.key}.pdf" for artefact in artefacts if artefact.kind == "table")]


def inputs(name: str, run: Run) -> list[Path]:
    """Return the files that a report is made from: ``page``, ``inspect``, or a key of ``config/artefacts.yaml``.

    Raises UserError for any other name, or a report that cannot be made of the preset.
    """
    if name == "page":
        shown = registry.of_run(run)
        return [layout.report(run.name, file) for artefact in shown for file in artefact.files]
    if name == "inspect":
        return [layout.cell(run.name, cell) / "run.json" for cell in run.cells()]
    registry.artefact(name).check(run)
    return registry.artefact(name).inputs(run)


def identity(name: str, run: Run) -> Identity:
    """Return what decides a report besides the content of its inputs: settings and code."""
    settings: Any = list(map(str, inputs(name, run)))
    files, code = [name], registry.code_of_report()
    if name == "page":
        shown = [[each.deciding_settings(run), each.title, each.section] for each in registry.of_run(run)]
        settings, files = [run.description, shown], ["index.html"]
        code = registry.code_of_report("docs/deviations.md")
    elif name != "inspect":
        artefact = registry.artefact(name)
        settings, files, code = artefact.deciding_settings(run), artefact.files, artefact.code()
    outputs = [layout.report(run.name, file) for file in files]
    return Identity(layout.identity(run.name, f"reports/{name}"), {"settings": settings, "code": code}, outputs)


def check_cells(name: str, run: Run) -> None:
    """Raise UserError for a finished cell of a report that is not of today's settings, code and questions."""
    for path in inputs(name, run):
        if path.exists() and (cell := layout.cell_of(path.parent)) is not None:
            read_finished(run.cell(cell))


def write(name: str, run: Run) -> list[Path]:
    """Make ``page`` or an artefact from whatever cells are finished, and return its files.

    Raises UserError if the name is unknown, or none of its cells is finished.
    """
    folder = layout.REPORTS / run.name
    identity(name, run).write()
    if name == "page":
        from analysis import page

        files = [folder / "index.html"]
        all_of_it = f"snakemake --cores all {files[0]}"
        lacking = page.write(run)
        if older := [each.key for each in registry.of_run(run) if each.key not in lacking and _is_older(each, run)]:
            what = "tables and figures on it are of other code, settings or cells than today's; make them again"
            logging.warning("%d %s: %s", len(older), what, all_of_it)
        if lacking:
            logging.info("%d further tables and figures can be made: %s", len(lacking), all_of_it)
    else:
        from analysis import exhibit

        files = exhibit.write(registry.artefact(name).build(run), folder, name)
    return files


def _is_older(artefact: registry.Artefact, run: Run) -> bool:
    """Return whether the files of an artefact are of other code, settings or cells than today's."""
    today = identity(artefact.key, run)
    times = [path.stat().st_mtime for path in artefact.inputs(run) if path.exists()]
    return not today.is_current() or max(times, default=0.0) > min(path.stat().st_mtime for path in today.outputs)

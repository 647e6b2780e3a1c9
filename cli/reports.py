"""Reports of a preset: their inputs, identities, and how they are made."""

import logging
from pathlib import Path
from typing import Any

from analysis import registry
from harness.runner import layout
from harness.runner.results import read_finished
from harness.runner.run import Identity, Run


def all_files() -> list[str]:
    """Paths of all artefact files relative to the folder of a preset, including PDFs of tables."""
    artefacts = registry.artefacts().values()
    files = [file for artefact in artefacts for file in artefact.files]
    return [*files, *(f"{artefact.key}.pdf" for artefact in artefacts if artefact.kind == "table")]


def inputs(name: str, run: Run) -> list[Path]:
    """Input files of a report: ``page``, ``inspect``, or a key of ``config/artefacts.yaml``.

    Raises UserError if the report is unknown or cannot be made from the preset.
    """
    if name == "page":
        shown = registry.of_run(run)
        return [layout.report(run.name, file) for artefact in shown for file in artefact.files]
    if name == "inspect":
        return [layout.cell(run.name, cell) / "run.json" for cell in run.cells()]
    registry.artefact(name).check(run)
    return registry.artefact(name).inputs(run)


def identity(name: str, run: Run) -> Identity:
    """Identity of a report: its settings and code."""
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
    """Raise a UserError if settings, code or questions of a finished cell have changed."""
    for path in inputs(name, run):
        if path.exists() and (cell := layout.cell_of(path.parent)) is not None:
            read_finished(run.cell(cell))


def write(name: str, run: Run) -> list[Path]:
    """Make ``page`` or an artefact from the finished cells. Return its files.

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
            what = "tables and figures on it are outdated (code, settings or cells have changed); make them again"
            logging.warning("%d %s: %s", len(older), what, all_of_it)
        if lacking:
            logging.info("%d further tables and figures are not made yet: %s", len(lacking), all_of_it)
    else:
        from analysis import exhibit

        files = exhibit.write(registry.artefact(name).build(run), folder, name)
    return files


def _is_older(artefact: registry.Artefact, run: Run) -> bool:
    """Whether an artefact is outdated: its code, settings or cells have changed."""
    today = identity(artefact.key, run)
    times = [path.stat().st_mtime for path in artefact.inputs(run) if path.exists()]
    return not today.is_current() or max(times, default=0.0) > min(path.stat().st_mtime for path in today.outputs)

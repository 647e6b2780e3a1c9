"""Reports of a preset: their inputs, identities, and how they are made."""

import importlib.util
import logging
from pathlib import Path
from typing import Any

from analysis import registry
from harness.errors import UserError, hint
from harness.runner import layout
from harness.runner.config import preset_names
from harness.runner.preset import command, making_with
from harness.runner.results import read_finished
from harness.runner.run import Identity, Run


def all_files() -> list[str]:
    """Paths of all artefact files relative to the folder of a preset."""
    return [file for artefact in registry.artefacts().values() for file in artefact.files]


def hint_for(target: str) -> str:
    """Suggest the nearest target for one that no rule makes. Any of its preset, artefact and ending may be wrong."""
    folders = ["reports", *(f"reports/{preset}" for preset in preset_names())]
    files = [f"{folder}/{file}" for folder in folders for file in all_files()]
    return hint(target, files if target.startswith("reports/") else [], "`gmr --list` names the artefacts and presets")


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
    """Make ``page``, ``inspect`` or an artefact from the finished cells. Return its files.

    Raises UserError if the name is unknown, or none of its cells is finished.
    """
    folder = layout.REPORTS / run.name
    if name == "inspect":
        return _write_logs(run, folder / name)
    identity(name, run).write()
    if name != "page":
        from analysis import exhibit

        return exhibit.write(registry.artefact(name).build(run), folder, name)
    from analysis import page

    all_of_it = command(run, folder / "index.html")
    older = [each.key for each in registry.of_run(run) if _is_older(each, run)]
    lacking = page.write(run, older)
    if older:
        what = "tables and figures on it are outdated (code, settings or cells have changed); make them again"
        logging.warning("%d %s: %s", len(older), what, all_of_it)
    if lacking:
        logging.info("%d further tables and figures are not made yet: %s", len(lacking), all_of_it)
    return [folder / "index.html"]


def _write_logs(run: Run, folder: Path) -> list[Path]:
    """Write all finished cells in ``results/PRESET``, those of other runs included, as logs for ``inspect view``."""
    if importlib.util.find_spec("inspect_ai") is None:
        raise UserError("inspect_ai is not installed; pip install -e '.[inspect]' adds it")
    from analysis.beyond.inspect_logs import write_cell
    from analysis.finished_cells import read
    from analysis.registry import describe_unfinished

    cells = [layout.cell(run.name, cell) for cell in layout.cells(run.name)]
    finished, logs = [cell for cell in cells if (cell / "run.json").exists()], []
    if not finished:
        raise UserError(
            f"nothing of preset {run.name} is finished", making_with(run, layout.report(run.name, "main_table.md"))
        )
    if unfinished := [cell for cell in cells if cell not in finished]:
        logging.warning("left out: %s", describe_unfinished(unfinished, len(finished)))
    identity("inspect", run).write()
    for cell in finished:
        try:
            logs.append(write_cell(read(cell), run.recorded, folder))
        except UserError as error:
            logging.warning("left out: %s", error)
    logging.info("inspect view --log-dir %s", folder)
    return logs


def _is_older(artefact: registry.Artefact, run: Run) -> bool:
    """Whether an artefact is outdated: its code, settings or cells have changed."""
    today = identity(artefact.key, run)
    if not all(path.exists() for path in today.outputs):
        return False
    times = [path.stat().st_mtime for path in artefact.inputs(run) if path.exists()]
    return not today.is_current() or max(times, default=0.0) > min(path.stat().st_mtime for path in today.outputs)

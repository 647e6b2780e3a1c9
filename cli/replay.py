"""Replay of a bundle: check its files, and reproduce its results from its recorded replies with the current code.

A bundle is data: a replay asks no server, ignores the bundle's servers, and imports its code only on request. Questions
that the bundle lacks come from ``GMR_DATA_DIR`` or the hub.
Programs of the recorded models run in the sandbox.
"""

import contextlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import orjson
import pandas as pd

from analysis import registry
from analysis.provenance import audited
from cli import reports, signals
from gmr.enumeration import Selection, enumerate_steps
from harness.benchmarks import catalogue
from harness.benchmarks.prepare import FOREIGN
from harness.errors import UserError
from harness.llm.recordings import Recording, data_of, opened
from harness.runner import cell as cells
from harness.runner import config, layout, questions, record
from harness.runner.layout import POOL, Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.runner.run import Run
from harness.unfinished import temporary_prefix

logger = logging.getLogger(__name__)

#: Folder of replayed reports, with one folder per preset.
REPLAYED = layout.REPORTS / "replayed"
# Maximum length of a shown value.
_SHOWN = 60
# Settings of a bundle that a replay ignores.
_NOT_TAKEN = {"servers", "budget"}
_OWN_CODE = "code of the bundle's maker, which runs only with --code FILE"
# Entries of run.json that follow from replies, questions, settings and code.
_RECOMPUTED = (
    *("simulated", "notes", "backbones", "data", "sampling", "rule_version", "benchmark_title", "method_title"),
    *("module", "multi_agent", "routing", "compared_cost", "config"),
)


class Replay(NamedTuple):
    """Result of a replay."""

    recording: Recording
    differences: dict[Cell, str]  # by reproduced cell; empty if its results are equal
    enumerations: dict[str, str]  # the same by benchmark
    other_code: list[Cell]  # recorded by other code
    left_out: dict[Cell, str]  # cells that were not reproduced, and why
    ungraded: dict[str, str]  # benchmarks that were not reproduced, and why
    unchecked: list[str]  # benchmarks whose questions were not verified
    audit: str  # stored result of an audit, not verified


def replay(
    path: Path,
    *,
    is_wanted: Callable[[Cell], bool] = lambda cell: True,
    make_reports: bool = True,
    code: str | None = None,
) -> Replay:
    """Check a bundle, reproduce its cells, and make its reports in ``REPLAYED``.

    Args:
        path: Bundle.
        is_wanted: Which cells to reproduce.
        make_reports: Whether to make the reports.
        code: File in the bundle that declares methods of its maker, which are then imported.

    Raises:
        UserError: if the bundle is damaged (see :func:`harness.llm.recordings.extract`) or its preset is invalid.
    """
    target = Path.cwd() / REPLAYED
    if path.is_dir():
        raise UserError(f"{path} is a folder of results; pack it by `gmr bundle`, or name it in `recordings`")
    recording = opened(path.absolute(), *filter(None, [code]))
    with data_of(path), _work_folder(recording, code) as run:
        recorded = layout.cells(run.name)
        left_out = {cell: f"{cell.method} is {_OWN_CODE}" for cell in recorded if cell.method not in run.entries}
        left_out |= {
            cell: f"{cell.benchmark} is {_OWN_CODE}" for cell in recorded if cell.benchmark not in run.benchmarks
        }
        folders = [layout.cell(run.name, cell) for cell in recorded]
        audit = audited(run.name, {str(f): orjson.loads((f / "run.json").read_bytes())["run_id"] for f in folders})
        wanted = [cell for cell in recorded if is_wanted(cell) and cell not in left_out]
        enumerated = [path.parent.name for path in sorted(layout.tree(run.name, "").glob("*/run.json"))]
        ungraded: dict[str, str] = {}
        falsified: dict[str, str] = {}
        for benchmark in dict.fromkeys([*(cell.benchmark for cell in wanted), *enumerated]):
            try:
                questions.write(run, benchmark)
            except questions.OtherQuestionsError as error:
                falsified[benchmark] = str(error)
            except UserError as error:
                ungraded[benchmark] = str(error)
        differences = {cell: falsified[cell.benchmark] for cell in wanted if cell.benchmark in falsified}
        other_code: list[Cell] = []
        for cell in wanted:
            if cell.benchmark not in ungraded | falsified:
                try:
                    with data_of(path):
                        differences[cell], is_same_code = _answer_again(run, cell, recording)
                    other_code += [] if is_same_code else [cell]
                except UserError as error:
                    differences[cell] = str(error).removeprefix(f"{cell}: ")
        enumerations = {
            key: falsified.get(key) or _enumerate_again(run, key, recording)
            for key in enumerated
            if key not in ungraded
        }
        used = {benchmark: layout.manifest(run.name, benchmark) for benchmark in run.benchmarks}
        unchecked = [key for key, path in used.items() if path.is_file() and FOREIGN in path.read_text("utf-8")]
        if make_reports and recorded:
            _make_reports(run)
            shutil.copytree(layout.REPORTS, target, dirs_exist_ok=True)
        return Replay(recording, differences, enumerations, other_code, left_out, ungraded, unchecked, audit)


@contextlib.contextmanager
def _work_folder(recording: Recording, code: str | None) -> Iterator[Run]:
    """Yield the run of a bundle in a temporary working folder with its recorded tables.

    Calls are answered by the bundle only, whatever its settings say.
    """
    settings = {key: value for key, value in recording.settings.items() if key not in _NOT_TAKEN}
    settings |= {"endpoints": "recorded", "recordings": [str(recording.path)], "extra": None}
    os.environ.pop("GMR_CACHE_DIR", None)  # The cache of this machine is neither read nor written.
    os.environ["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1"  # noqa: S105  no password
    with TemporaryDirectory(prefix=temporary_prefix("replay")) as folder, contextlib.chdir(folder):
        if code is not None:
            if recording.settings.get("extra") != code or not (recording.root / code).is_file():
                raise UserError(f"{recording.path.name} has no methods in a file {code}")
            settings["extra"] = str(recording.root / code)
        known = config.methods(settings["extra"])
        for noun, names in (("methods", known), ("benchmarks", catalogue.keys())):
            settings[noun] = [name for name in settings.get(noun, ()) if name in names]
            if not settings[noun]:
                raise UserError(f"all {noun} of {recording.path.name} are {_OWN_CODE}")
        results = layout.RESULTS / recording.preset
        shutil.copytree(recording.results, results, ignore=shutil.ignore_patterns("*.sqlite", "data", "identity"))
        yield resolve(recording.preset, settings)


def _make_reports(run: Run) -> None:
    """Make the main table, the page, and every artefact whose cells exist. Some artefacts need a trained method."""
    artefacts = registry.of_run(run)
    keys = [artefact.key for artefact in artefacts if all(path.exists() for path in artefact.inputs(run))]
    for key in dict.fromkeys(["main_table", *keys, "page"]):
        try:
            reports.write(key, run)
        except UserError as error:
            logger.warning("%s was not made: %s", key, error)


def _answer_again(run: Run, cell: Cell, recording: Recording) -> tuple[str, bool]:
    """Train, answer and grade a cell. Return how its results differ, and whether the current code recorded it.

    If the tables are equal, ``run.json`` is the recorded file with recomputed entries. Raises UserError if a call was
    not recorded.
    """
    folder = layout.cell(run.name, cell)
    recorded = orjson.loads((folder / "run.json").read_bytes())
    if strange := [name for name in recorded["tables"] if Path(name).name != name]:
        raise UserError(f"run.json names a table outside its folder: {strange[0]}")
    replayed = signals.run(cells.run(plan(run, cell)))
    differences = _differences(recording, folder)
    replayed["data"]["source"] = recorded["data"]["source"]
    if record.SERVER_CHANGED in recorded["notes"]:
        # Only the run itself has seen it.
        replayed["notes"].insert(recorded["notes"].index(record.SERVER_CHANGED), record.SERVER_CHANGED)
    is_same_code = replayed["code"] == recorded["code"]
    recomputed = {key: replayed[key] for key in _RECOMPUTED}
    if wrong := [key for key, value in recomputed.items() if value != recorded[key]]:
        was, now = (str(each[wrong[0]])[:_SHOWN] for each in (recorded, replayed))
        text = f"run.json has {wrong[0]} {was!r}, recomputed {now!r}"
        if is_same_code:
            differences.append(text)
        else:
            logger.info("%s, recorded by other code: its %s", cell, text)
    if not any(differences):
        content = orjson.dumps({**recorded, **recomputed}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        (folder / "run.json").write_bytes(content)
        for name in recorded["tables"]:
            shutil.copyfile(recording.results / folder.relative_to(layout.RESULTS / run.name) / name, folder / name)
    return "; ".join(filter(None, differences)), is_same_code


def _enumerate_again(run: Run, benchmark: str, recording: Recording) -> str:
    """Follow and grade every path of an enumeration. Return how its tables differ."""
    folder = layout.tree(run.name, benchmark)
    try:
        with data_of(recording.path):
            made = orjson.loads((folder / "run.json").read_bytes())
            selection = Selection(**made.get("selection", {}))
            signals.run(enumerate_steps(plan(run, Cell(made["method"], benchmark, POOL, 0)), selection))
            return "; ".join(filter(None, _differences(recording, folder)))
    except UserError as error:
        return str(error)


def _differences(recording: Recording, folder: Path) -> list[str]:
    """Describe how each table of a folder differs from the recorded one, if it does."""
    before = _tables(recording.results / folder.relative_to(layout.RESULTS / recording.preset))
    after = _tables(folder)
    if others := before.keys() ^ after.keys():
        return [f"{min(others)} was not {'recomputed' if min(others) in before else 'recorded'}"]
    return [_difference(name, table, after[name]) for name, table in before.items()]


def _tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Load the tables of a cell as text, so that numbers are compared exactly."""
    return {path.stem: pd.read_parquet(path).map(str) for path in sorted(folder.glob("*.parquet"))}


def _difference(name: str, before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Describe how a table differs from the recorded one. Empty if they are equal."""
    if list(before) != list(after):
        return f"{name} has the columns {', '.join(after)}, recorded {', '.join(before)}"
    if len(before) != len(after):
        return f"{name} has {len(after)} rows, recorded {len(before)}"
    unequal = before != after
    rows = unequal.any(axis=1)
    if not rows.any():
        return ""
    row = rows.idxmax()
    column = unequal.loc[row].idxmax()
    was, now = (str(table.loc[row, column])[:_SHOWN] for table in (before, after))
    where = f"{rows.sum()} of {len(rows)} rows of {name} differ, the first of {before.iloc[row, 0]}"
    return f"{where}: {column} was {was!r}, is {now!r}"

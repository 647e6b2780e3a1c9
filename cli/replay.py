"""Replay of a bundle: are its files whole, and does today's code make the same of its recorded replies again?

A bundle is data: it opens no connection, its settings name no server, and its maker's code is run only if it is named.
Programs of the recorded models are executed, confined.
"""

from __future__ import annotations

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
from harness import earlier
from harness.benchmarks import catalogue
from harness.benchmarks.prepare import FOREIGN
from harness.errors import UserError
from harness.llm.recordings import Recording, data_of, opened
from harness.runner import cell as cells
from harness.runner import config, layout, questions
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.runner.run import Run

logger = logging.getLogger(__name__)

#: Where the reports of a replay are written, a folder for each preset.
REPLAYED = layout.REPORTS / "replayed"
# Characters of a value that differs.
_SHOWN = 60
# Settings of a bundle that a replay does not heed: where servers are, what it may spend, code.
_NOT_TAKEN = {"servers", "budget", "recorded"}
_OWN_CODE = "code of the bundle's maker, which runs only if its file is named (--code FILE)"
# What a run says of itself that follows from replies, questions and settings; and from the same code alone.
_RECOMPUTED = ("simulated", "notes", "backbones", "data", "sampling")
_OF_CODE = (
    "rule_version",
    "benchmark_title",
    "method_title",
    "module",
    "multi_agent",
    "routing",
    "compared_cost",
    "config",
)


class Replay(NamedTuple):
    """Result of a replay."""

    recording: Recording  # whose files are whole
    differences: dict[Cell, str]  # how the results of each cell that was answered again differ; empty if they do not
    other_code: list[Cell]  # recorded by other code than today's
    left_out: dict[Cell, str]  # cells that were not answered again, and why: their method is gone, or the bundle's own
    ungraded: dict[str, str]  # benchmarks of which nothing was answered again, and why
    unchecked: list[str]  # benchmarks whose questions are the bundle's word
    audit: str  # the stored result of an audit, the bundle's word


def replay(
    path: Path,
    *,
    is_wanted: Callable[[Cell], bool] = lambda cell: True,
    make_reports: bool = True,
    code: str | None = None,
) -> Replay:
    """Check a bundle, answer its cells again, all or those that are wanted, and make its reports in ``REPLAYED``.

    Methods of the bundle's maker are run only if the file that declares them is named as ``code``. Raises UserError as
    :func:`harness.llm.recordings.extract`, or if its preset is not one of today's.
    """
    target = Path.cwd() / REPLAYED
    recording = opened(path.absolute(), code)
    with data_of(path), _work_folder(recording, code) as run:
        recorded = layout.cells(run.name)
        known = run.entries
        left_out = {
            cell: f"{cell.method} {earlier.replacement('method', cell.method) or _OWN_CODE}"
            for cell in recorded
            if cell.method not in known
        }
        left_out |= {cell: _OWN_CODE for cell in recorded if cell.benchmark not in run.benchmarks}
        folders = [layout.cell(run.name, cell) for cell in recorded]
        audit = audited(run.name, {str(f): orjson.loads((f / "run.json").read_bytes())["run_id"] for f in folders})
        wanted = [cell for cell in recorded if is_wanted(cell) and cell not in left_out]
        ungraded: dict[str, str] = {}
        falsified: dict[str, str] = {}
        for benchmark in dict.fromkeys(cell.benchmark for cell in wanted):
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
        used = {benchmark: layout.manifest(run.name, benchmark) for benchmark in run.benchmarks}
        unchecked = [key for key, path in used.items() if path.is_file() and FOREIGN in path.read_text("utf-8")]
        if make_reports:
            _make_reports(run)
            layout.REPORTS.mkdir(exist_ok=True)  # A tree alone has none.
            shutil.copytree(layout.REPORTS, target, dirs_exist_ok=True)
        return Replay(recording, differences, other_code, left_out, ungraded, unchecked, audit)


@contextlib.contextmanager
def _own_cache(folder: str) -> Iterator[None]:
    before = os.environ.get("GMR_CACHE_DIR")
    os.environ["GMR_CACHE_DIR"] = f"{folder}/cache"
    try:
        yield
    finally:
        os.environ.pop("GMR_CACHE_DIR")
        os.environ |= {} if before is None else {"GMR_CACHE_DIR": before}


@contextlib.contextmanager
def _work_folder(recording: Recording, code: str | None) -> Iterator[Run]:
    """Work in a folder, with caches, that is deleted afterwards, in which the recorded tables lie; give the preset.

    Whatever the settings of the bundle say, its replies are its own, and no server is asked.
    """
    settings = {key: value for key, value in recording.settings.items() if key not in _NOT_TAKEN}
    settings |= {"endpoints": "recorded", "recordings": [str(recording.path)], "extra": None}
    with TemporaryDirectory(prefix="gmr-replay-") as folder, contextlib.chdir(folder), _own_cache(folder):
        if code is not None:
            if recording.settings.get("extra") != code or not (recording.root / code).is_file():
                raise UserError(f"{recording.path.name} has no methods in a file {code}")
            settings["extra"] = str(recording.root / code)
        known = config.methods(settings["extra"])
        for noun, names in (("methods", known), ("benchmarks", catalogue.keys())):
            named = [*settings.get(noun, ())]
            settings[noun] = [name for name in named if name in names or earlier.replacement(noun[:-1], name)]
            if not settings[noun]:
                raise UserError(f"all {noun} of {recording.path.name} are {_OWN_CODE}")
        results = layout.RESULTS / recording.preset
        shutil.copytree(recording.results, results, ignore=shutil.ignore_patterns("*.sqlite", "data", "identity"))
        yield resolve(recording.preset, settings)


def _make_reports(run: Run) -> None:
    """Make the main table and what has all its cells; some need a trained method, which may be lacking."""
    artefacts = registry.of_run(run)
    keys = [artefact.key for artefact in artefacts if all(path.exists() for path in artefact.inputs(run))]
    for key in dict.fromkeys(["main_table", *keys, "page"]):
        try:
            reports.write(key, run)
        except UserError as error:
            logger.warning("%s is not made: %s", key, error)


def _answer_again(run: Run, cell: Cell, recording: Recording) -> tuple[str, bool]:
    """Train, answer and grade a cell again; return how its results differ, and whether its code is today's.

    If its tables do not, its ``run.json`` is the recorded one, but for what follows from the rest. Raises UserError if
    a call was not recorded.
    """
    folder = layout.cell(run.name, cell)
    stated = orjson.loads((folder / "run.json").read_bytes())
    found = signals.run(cells.run(plan(run, cell)))
    before, after = _tables(recording.results / folder.relative_to(layout.RESULTS / run.name)), _tables(folder)
    differences = [_difference(name, table, after[name]) for name, table in before.items()]
    found["data"]["source"] = stated["data"]["source"]
    is_same_code = found["code"] == stated["code"]
    recomputed = {key: found[key] for key in (*_RECOMPUTED, *(_OF_CODE if is_same_code else ())) if key in stated}
    if wrong := [key for key, value in recomputed.items() if value != stated[key]]:
        was, now = (str(each[wrong[0]])[:_SHOWN] for each in (stated, found))
        text = f"run.json says {wrong[0]} {was!r}, which is {now!r}"
        if is_same_code:
            differences.append(text)
        else:
            logger.info("%s, recorded by other code: its %s", cell, text)
    if not any(differences):
        content = orjson.dumps({**stated, **recomputed}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        (folder / "run.json").write_bytes(content)
        for name in stated["tables"]:
            shutil.copyfile(recording.results / folder.relative_to(layout.RESULTS / run.name) / name, folder / name)
    return "; ".join(filter(None, differences)), is_same_code


def _tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of a cell as text, by which numbers are equal to the last digit."""
    return {path.stem: pd.read_parquet(path).map(str) for path in sorted(folder.glob("*.parquet"))}


def _difference(name: str, before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Return in words how a table differs from the recorded one in what that has; empty if it does not."""
    if lost := [str(column) for column in before if column not in after]:
        return f"{name} has no column {', '.join(lost)}"
    after = after[list(before)]
    if "measure" in before:
        after = after[after["measure"].isin(before["measure"])].reset_index(drop=True)
    if len(before) != len(after):
        return f"{name} has {len(after)} rows, recorded were {len(before)}"
    unequal = before != after
    rows = unequal.any(axis=1)
    if not rows.any():
        return ""
    row = rows.idxmax()
    column = unequal.loc[row].idxmax()
    was, now = (str(table.loc[row, column])[:_SHOWN] for table in (before, after))
    where = f"{rows.sum()} of {len(rows)} rows of {name} differ, the first of {before.iloc[row, 0]}"
    return f"{where}: {column} was {was!r}, is {now!r}"

"""Replay of a bundle: are its files whole, and does today's code make the same of its recorded replies again?

No server is asked, and the weights of the sentence encoder are not needed. Programs of the recorded models, and methods
that the bundle's maker added, are executed.
"""

from __future__ import annotations

import contextlib
import logging
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
from cli.bundle import SETTINGS, Crate, extract
from harness import earlier
from harness.benchmarks.prepare import prepare
from harness.errors import UserError
from harness.files import read_yaml
from harness.runner import cell as cells
from harness.runner import config, layout
from harness.runner.config import Cell, Preset
from harness.runner.plan import plan

logger = logging.getLogger(__name__)

#: Where the reports of a replay are written, a folder for each preset.
REPLAYED = layout.REPORTS / "replayed"
# Characters of a value that differs.
_SHOWN = 60


class Replay(NamedTuple):
    """Result of a replay."""

    crate: Crate  # of the bundle, whose files are whole
    differences: dict[Cell, str]  # how the results of each cell that was answered again differ; empty if they do not
    other_code: list[Cell]  # recorded by other code than today's
    retired: list[Cell]  # of methods that are gone, and were not answered again
    ungraded: dict[str, str]  # benchmarks of which nothing was answered again, and why
    audit: str  # the stored result of an audit


def replay(
    path: Path,
    *,
    is_wanted: Callable[[Cell], bool] = lambda cell: True,
    make_reports: bool = True,
) -> Replay:
    """Check a bundle, answer its cells again, all or those that are wanted, and make its reports in ``REPLAYED``.

    Raises UserError as :func:`cli.bundle.extract`, or if its preset is not one of today's.
    """
    target = Path.cwd() / REPLAYED
    with _unpacked(path) as (crate, preset):
        recorded = layout.cells(preset.name)
        folders = [layout.cell(preset.name, cell) for cell in recorded]
        run_ids = {str(folder): orjson.loads((folder / "run.json").read_bytes())["run_id"] for folder in folders}
        audit = audited(preset.name, run_ids)
        known = config.methods(preset.extra)
        retired = [cell for cell in recorded if cell.method not in known and earlier.replacement("method", cell.method)]
        wanted = [cell for cell in recorded if is_wanted(cell) and cell not in retired]
        ungraded: dict[str, str] = {}
        for benchmark in dict.fromkeys(cell.benchmark for cell in wanted):
            try:
                _prepare_questions(preset, benchmark)
            except UserError as error:
                ungraded[benchmark] = str(error)
        differences: dict[Cell, str] = {}
        other_code: list[Cell] = []
        for cell in wanted:
            if cell.benchmark not in ungraded:
                try:
                    differences[cell], is_same_code = _answer_again(preset, cell)
                    other_code += [] if is_same_code else [cell]
                except UserError as error:
                    differences[cell] = str(error)
        if make_reports:
            _make_reports(preset)
            shutil.copytree(layout.REPORTS, target, dirs_exist_ok=True)
        return Replay(crate, differences, other_code, retired, ungraded, audit)


@contextlib.contextmanager
def _unpacked(path: Path) -> Iterator[tuple[Crate, Preset]]:
    """Unpack a bundle into a working folder that is deleted afterwards; yield its manifest and its preset."""
    source = path.absolute()
    with TemporaryDirectory(prefix="gmr-replay-") as folder, contextlib.chdir(folder):
        crate = extract(source, Path())
        settings = read_yaml(SETTINGS)
        yield crate, config.preset(settings.pop("preset"), settings)


def _prepare_questions(preset: Preset, benchmark: str) -> None:
    """Prepare the questions of a benchmark that the bundle was made without.

    Raises UserError if they cannot be had, or are others than the recorded ones.
    """
    items, manifest = layout.items(preset.name, benchmark), layout.manifest(preset.name, benchmark)
    if items.exists():
        return
    content = manifest.read_bytes()
    recorded = orjson.loads(content)
    try:
        prepare(benchmark, preset.data, preset.splits, items, manifest)
        prepared = orjson.loads(manifest.read_bytes())
    finally:
        manifest.write_bytes(content)
    if others := [name for name in recorded if recorded[name] != prepared.get(name) and name != "source"]:
        items.unlink()
        raise UserError(f"the questions of {benchmark} are not those of the recorded run: {others[0]} differs")


def _make_reports(preset: Preset) -> None:
    """Make the main table and what has all its cells; some need a trained method, which may be lacking."""
    artefacts = registry.of_run(preset)
    keys = [artefact.key for artefact in artefacts if all(path.exists() for path in artefact.inputs(preset))]
    for key in dict.fromkeys(["main_table", *keys, "page"]):
        try:
            reports.write(key, preset)
        except UserError as error:
            logger.warning("%s is not made: %s", key, error)


def _answer_again(preset: Preset, cell: Cell) -> tuple[str, bool]:
    """Train, answer and grade a cell from its log; return how its tables differ, and whether its code is today's.

    What was recorded is restored if they do not. Raises UserError if a call is not in the log.
    """
    cell_plan = plan(preset, cell)
    recorded = {path: path.read_bytes() for path in cell_plan.folder.iterdir() if path.suffix in (".json", ".parquet")}
    before = _tables(cell_plan.folder)
    run = signals.run(cells.run(cell_plan))
    after = _tables(cell_plan.folder)
    differences = "; ".join(filter(None, (_difference(name, table, after[name]) for name, table in before.items())))
    if not differences:
        for path, content in recorded.items():
            path.write_bytes(content)
    return differences, run["code"] == orjson.loads(recorded[cell_plan.folder / "run.json"])["code"]


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

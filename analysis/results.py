"""The cells of a run, read and checked: what each was, and a data frame of its items."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Required

import orjson
from pydantic import ConfigDict, PositiveInt
from typing_extensions import TypedDict

from harness.benchmarks.items import Status
from harness.errors import UserError
from harness.files import Declaration, Many, Text, check
from harness.runner.config import methods

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
#: The log that learning leaves in the folder of a cell.
TRAINING = "training.parquet"
_FILES = ("run.json", "items.parquet", "calls.parquet", "decisions.parquet")
_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("item_id", "status", "detail", "answer", "text"), "string"),
    **dict.fromkeys(("correct", "math_verify"), "bool"),
    **dict.fromkeys(("calls", "depth", "prompt_tokens", "completion_tokens"), "int64"),
    **dict.fromkeys(("cost_total", "cost_steps"), "float64"),
}
_NULLABLE = ("answer", "text", "math_verify")
# Nothing was found out about the answer: a server or the sandbox failed.
_ERRORS = frozenset({Status.CALL_FAILED, Status.SANDBOX_ERROR})
_NEVER_CORRECT = _ERRORS | {Status.UNPARSABLE, Status.EMPTY}
# Modules of the methods whose published cost is that of the steps alone; of all others it is of all calls (D-REPORT-2).
_STEPS_ALONE = frozenset({"gmr", "baselines.puppeteer"})
_SHORT = 12


def outcome(status: str, correct: bool) -> str:
    """``right``, ``wrong`` or ``error``: whether anything was found out about an answer, and what."""
    if status in _ERRORS:
        return "error"
    return "right" if correct else "wrong"


def short(digest: str) -> str:
    """The leading characters of a hash, enough to find it again."""
    return digest[:_SHORT]


class Data(Declaration, extra="ignore"):
    """The questions a cell was measured on: where they came from and what identifies them."""

    source: str
    splits: str
    checksum: Text
    split_checksum: Text
    n_test: PositiveInt


class Identity(TypedDict, total=False):
    """What a cell knows of a backbone it asked; what the server did not say of itself is ``None``."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    model: Required[str]
    served_by: str | None
    revision: str | None
    revision_confirmed: bool
    calibration: str
    weights: Text


class Run(Declaration, extra="ignore"):
    """What ``run.json`` says of a cell, as far as a report needs it.

    Attributes:
        method_title: As ``config/methods.yaml`` has it now; that of ``run.json`` for a method that is not in there.
        calibrated: The accuracy of this cell was fitted to the paper, so agreeing with the paper is no evidence.
        notes: What a reader of a table must know, such as a reduced number of questions, or a training that was
            rewarded by other rules than those that graded the test.
        backbones: Identity of each backbone.
    """

    preset: Text
    method: Text
    method_title: Text
    benchmark: Text
    benchmark_title: Text
    backbone: Text
    seed: int
    simulated: bool
    calibrated: bool
    notes: Many[str]
    data: Data
    config_hash: Text
    code: Text
    run_id: Text
    backbones: Mapping[str, Identity]
    sandbox: str
    rule_version: str

    @property
    def cell(self) -> str:
        """Its name in links and records: ``METHOD/BENCHMARK/BACKBONE/SEED``."""
        return f"{self.method}/{self.benchmark}/{self.backbone}/{self.seed}"


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One measured cell and its folder.

    Attributes:
        items: One row an item in order of item id: the columns of ``items.parquet`` and ``cost``, by the definition of
            the published cost: of the steps, or of all calls (D-REPORT-2). Costs are in the paper's unit.
    """

    folder: Path
    run: Run
    items: pd.DataFrame


def read(folder: Path) -> Cell:
    """Read one cell folder.

    Raises:
        UserError: When a file is missing, unreadable, of another schema version, or the rows are not one an item.
    """
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        raise UserError(
            f"{folder}: {', '.join(missing)} missing; expected a finished cell with {', '.join(_FILES)}; "
            "run the cell again or leave it out"
        )
    run = _read_run(folder / "run.json")
    items = _read_items(folder / "items.parquet")
    if len(items) != run.data.n_test:
        raise UserError(
            f"{folder}: items.parquet has {len(items)} rows, run.json promises {run.data.n_test}; "
            "run the cell again: an incomplete cell is no result"
        )
    entry = methods().get(run.method)
    steps_alone = entry is not None and entry.module in _STEPS_ALONE
    return Cell(folder, run, items.assign(cost=items["cost_steps" if steps_alone else "cost_total"]))


def read_all(folders: Iterable[Path]) -> tuple[Cell, ...]:
    """Read cells that belong in one table.

    Returns:
        The cells in order of benchmark, method, backbone and seed.

    Raises:
        UserError: There is no cell, one cannot be read, one is given twice, or two differ in kind of backbones, preset,
            calibration, weights, questions or grading rules; or the seeds of one measurement in their settings or in
            what answered under the name of a backbone: a mean over them would be of nothing that was ever run.
    """
    cells = tuple(sorted((read(folder) for folder in folders), key=_identity))
    if not cells:
        raise UserError("no results to show: expected at least one cell folder; run the workflow first")
    _agree(cells, lambda cell: "simulated" if cell.run.simulated else "real", "kinds of backbones")
    _agree(cells, lambda cell: cell.run.preset, "presets")
    _agree(cells, lambda cell: _named(cell, "calibration"), "calibrations of the simulator")
    _agree(cells, lambda cell: _named(cell, "weights", "original"), "weights of the backbones")
    for benchmark in sorted({cell.run.benchmark for cell in cells}):
        column = [cell for cell in cells if cell.run.benchmark == benchmark]
        _agree(column, lambda cell: cell.run.data.checksum, f"data checksums of {benchmark}")
        _agree(column, _test_items, f"test items of {benchmark}")
        _agree(column, lambda cell: f"rules {cell.run.rule_version}", f"grading rules of {benchmark}")
    _check_seeds(cells)
    return cells


def read_table(path: Path, columns: Sequence[str], types: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Some columns of a table of a cell, of certain types of Arrow where they are given.

    Raises:
        UserError: The file is missing or damaged, or lacks a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(columns))
        if types is not None:
            table = table.cast(pa.schema([(name, pa.type_for_alias(types[name])) for name in table.column_names]))
        return table.to_pandas()[list(columns)]
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path}: not a readable table with the columns {', '.join(columns)} ({reason}); run the cell again"
        ) from error


def _read_run(path: Path) -> Run:
    try:
        document = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path}: not JSON ({error}); expected a finished cell; run it again") from error
    version = document.get("schema") if isinstance(document, dict) else None
    if version != SCHEMA or version is True:
        raise UserError(
            f"{path}: result schema {version!r}, expected {SCHEMA}; "
            "make the cell again with this version of the suite, or use the version that made it"
        )
    run: Run = check(document, Run, path)
    entry = methods().get(run.method)
    # White space in the notes cannot break a line of a table.
    notes = tuple(" ".join(note.split()) for note in run.notes)
    return run.model_copy(update={"method_title": entry.title if entry else run.method_title, "notes": notes})


def _read_items(path: Path) -> pd.DataFrame:
    items = read_table(path, tuple(_COLUMNS), _COLUMNS).sort_values("item_id", ignore_index=True)
    holes = [name for name in _COLUMNS if name not in _NULLABLE and items[name].isna().any()]
    if holes:
        raise UserError(f"{path}: empty fields in column {', '.join(holes)}; run the cell again")
    if items["item_id"].duplicated().any():
        raise UserError(f"{path}: an item is in it twice, expected one row an item; run the cell again")
    unknown = sorted(set(items["status"]) - set(Status))
    if unknown:
        raise UserError(f"{path}: status {unknown[0]!r}, expected one of {', '.join(Status)}; run the cell again")
    if (items["correct"] & items["status"].isin(_NEVER_CORRECT)).any():
        raise UserError(f"{path}: an item without a verdict counts as correct; grade the cell again")
    return items


def _check_seeds(cells: Sequence[Cell]) -> None:
    places: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        places.setdefault((cell.run.method, cell.run.backbone, cell.run.benchmark), []).append(cell)
    for (method, backbone, benchmark), seeds in places.items():
        if len({cell.run.seed for cell in seeds}) < len(seeds):
            raise UserError(
                f"the same cell twice ({method}, {backbone}, {benchmark}): "
                f"{' and '.join(str(cell.folder) for cell in seeds)}; expected each seed once; leave one out"
            )
        where = f"between the seeds of {method} ({backbone}) on {benchmark}"
        _agree(seeds, lambda cell: "; ".join(cell.run.notes) or "none", f"settings {where}")
        for key in sorted({key for cell in seeds for key in cell.run.backbones}):
            asked = [cell for cell in seeds if key in cell.run.backbones]
            _agree(asked, functools.partial(_answered, key), f"revisions of {key} {where}")


def _answered(key: str, cell: Cell) -> str:
    from analysis.provenance import answered

    return answered(cell.run.backbones[key])


def _agree(cells: Sequence[Cell], of: Callable[[Cell], str], what: str) -> None:
    for other in cells[1:]:
        if of(other) != of(cells[0]):
            raise UserError(
                f"different {what} in one table: {cells[0].folder} ({of(cells[0])}) and {other.folder} ({of(other)}); "
                "give only cells that belong together, or make one of them again"
            )


def _named(cell: Cell, what: str, default: str = "") -> str:
    found = {short(str(backbone.get(what, default))) for backbone in cell.run.backbones.values()} - {""}
    return ", ".join(sorted(found)) or "none"


def _test_items(cell: Cell) -> str:
    digest = hashlib.sha256("\n".join(cell.items["item_id"]).encode()).hexdigest()
    return f"{len(cell.items)} items, {short(digest)}"


def _identity(cell: Cell) -> tuple[str, str, str, int, str]:
    run = cell.run
    return run.benchmark, run.method, run.backbone, run.seed, str(cell.folder)

"""Reading cells: the folders of one method, backbone, benchmark and seed, and the only thing ``paper`` ever reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Required

import orjson
from pydantic import ConfigDict, PositiveInt
from typing_extensions import TypedDict

from harness.benchmarks.items import Status
from harness.declarations import Declaration, Many, Text, check
from harness.errors import UserError
from harness.runner.config import methods

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = 1
_FILES = ("run.json", "items.parquet", "calls.parquet", "decisions.parquet")
_Kind = Literal["string", "bool", "int64", "float64"]
_READ: Mapping[str, _Kind] = {
    "item_id": "string",
    "correct": "bool",
    "status": "string",
    "detail": "string",
    "math_verify": "bool",
    "calls": "int64",
    "prompt_tokens": "int64",
    "completion_tokens": "int64",
    "cost_total": "float64",
    "cost_steps": "float64",
}
_ALSO = ("answer", "text", "depth")
_NULLABLE = ("math_verify",)
# Nothing was found out about the answer: a server or the sandbox failed.
_ERRORS = frozenset({Status.CALL_FAILED, Status.SANDBOX_ERROR})
_NEVER_CORRECT = _ERRORS | {Status.UNPARSABLE, Status.EMPTY}
# Modules of the methods whose published cost is that of the steps alone; of all others it is of all calls (D-REPORT-2).
_STEPS_ALONE = frozenset({"gmr", "baselines.puppeteer"})


def outcome(status: Status, correct: bool) -> str:
    """``right``, ``wrong`` or ``error``: whether anything was found out about an answer, and what."""
    if status in _ERRORS:
        return "error"
    return "right" if correct else "wrong"


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
    world: str
    weights: Text


class Run(Declaration, extra="ignore"):
    """What ``run.json`` says of a cell, as far as a report needs it.

    Attributes:
        method_title: As ``config/methods.yaml`` has it now; that of ``run.json`` for a method that is not in there.
        calibrated: The accuracy of this cell was fitted to the paper, so agreeing with the paper is no finding.
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


@dataclass(frozen=True, slots=True)
class Items:
    """One entry an item in order of item id; costs in the paper's unit.

    Attributes:
        detail: A few words on the verdict; of a program how it ended, before the colon.
        math_verify: The secondary verdict on mathematics, ``None`` where it was not asked for or did not decide.
    """

    item_id: tuple[str, ...]
    correct: tuple[bool, ...]
    status: tuple[Status, ...]
    detail: tuple[str, ...]
    math_verify: tuple[bool | None, ...]
    calls: tuple[int, ...]
    prompt_tokens: tuple[int, ...]
    completion_tokens: tuple[int, ...]
    cost_total: tuple[float, ...]
    cost_steps: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One measured cell and where it lies."""

    folder: Path
    run: Run
    items: Items

    @property
    def costs(self) -> tuple[float, ...]:
        """Of each item, by the definition of the published cost: of the steps, or of all calls (D-REPORT-2)."""
        entry = methods().get(self.run.method)
        steps_alone = entry is not None and entry.module in _STEPS_ALONE
        return self.items.cost_steps if steps_alone else self.items.cost_total


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
    if len(items.item_id) != run.data.n_test:
        raise UserError(
            f"{folder}: items.parquet has {len(items.item_id)} rows, run.json promises {run.data.n_test}; "
            "run the cell again: an incomplete cell is no result"
        )
    return Cell(folder, run, items)


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
    notes = [" ".join(note.split()) for note in run.notes]
    return run.model_copy(update={"method_title": entry.title if entry else run.method_title, "notes": tuple(notes)})


def _read_items(path: Path) -> Items:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        missing = sorted({*_READ, *_ALSO} - set(names))
        if missing:
            raise UserError(f"{path}: no column {', '.join(missing)}; run the cell again with this version")
        table = pq.read_table(path, columns=list(_READ))
        table = table.cast(pa.schema([(name, pa.type_for_alias(kind)) for name, kind in _READ.items()]))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: not a readable table of items ({reason}); run the cell again") from error
    return _items(table.sort_by("item_id"), path)


def _items(table: pa.Table, path: Path) -> Items:
    holes = [name for name in _READ if name not in _NULLABLE and table[name].null_count]
    if holes:
        raise UserError(f"{path}: empty fields in column {', '.join(holes)}; run the cell again")
    columns = {name: tuple(table[name].to_pylist()) for name in _READ}
    if len(set(columns["item_id"])) != len(columns["item_id"]):
        raise UserError(f"{path}: an item stands in it twice, expected one row an item; run the cell again")
    unknown = sorted(set(columns["status"]) - set(Status))
    if unknown:
        raise UserError(f"{path}: status {unknown[0]!r}, expected one of {', '.join(Status)}; run the cell again")
    columns["status"] = tuple(Status(status) for status in columns["status"])
    items = Items(**columns)
    if any(right and status in _NEVER_CORRECT for right, status in zip(items.correct, items.status, strict=True)):
        raise UserError(f"{path}: an item without a verdict counts as correct; grade the cell again")
    return items

"""Results of a cell: the schema of its tables, and how they are written and read."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from harness.agents.trajectory import Answered, Call, Decision, Trajectory
from harness.errors import UserError
from harness.files import sha256, whole_file, write_atomically

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1
#: Written on everything that comes of simulated backbones.
SIMULATED_WARNING = (
    "SIMULATED BACKBONES: no trained language model was asked; the measured numbers say nothing about real models"
)
# Thousands of calls take some megabytes in memory, and more would not compress better.
ROW_GROUP = 1 << 12

ITEMS = pa.schema(
    [
        ("item_id", pa.string()),
        ("correct", pa.bool_()),
        ("status", pa.string()),
        ("detail", pa.string()),
        ("answer", pa.string()),
        ("text", pa.string()),
        ("also", pa.map_(pa.string(), pa.bool_())),
        ("calls", pa.int64()),
        ("depth", pa.int64()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cost_total", pa.float64()),
        ("cost_steps", pa.float64()),
        ("embedded", pa.int64()),
        ("truncated", pa.int64()),
        ("cut_off", pa.bool_()),
        ("utility", pa.float64()),
    ]
)
_TYPES = {"str": pa.string(), "str | None": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


def _schema(record: type[Call | Decision]) -> pa.Schema:
    fields = [(field.name, _TYPES[str(field.type)]) for field in dataclasses.fields(record)]
    return pa.schema([("item_id", pa.string()), *fields])


CALLS, DECISIONS = _schema(Call), _schema(Decision)
TABLES: Mapping[str, pa.Schema] = {"items": ITEMS, "calls": CALLS, "decisions": DECISIONS}
_OF_LEDGER = ["item_id", "key", "prompt_tokens", "completion_tokens", "cost", "error"]

Utility = Callable[[Answered], float]


def item_row(answered: Answered, utility: Utility | None = None) -> dict[str, Any]:
    """Return the row of a question in ``items.parquet``, with a null ``utility`` for a method without one."""
    trajectory, verdict = answered
    return {
        "item_id": trajectory.item.id,
        "correct": verdict.correct,
        "status": verdict.status.value,
        "detail": verdict.detail,
        "answer": verdict.answer,
        "text": trajectory.answer,
        "also": sorted(verdict.also.items()),
        "calls": len(trajectory.calls),
        "depth": trajectory.depth,
        "prompt_tokens": sum(call.prompt_tokens for call in trajectory.calls),
        "completion_tokens": sum(call.completion_tokens for call in trajectory.calls),
        "cost_total": trajectory.cost_total,
        "cost_steps": trajectory.cost_steps,
        "embedded": trajectory.embedded,
        "truncated": trajectory.truncated,
        "cut_off": trajectory.cut_off,
        "utility": None if utility is None else utility(answered),
    }


def write(
    folder: Path, answered: Sequence[Answered], identity: dict[str, Any], utility: Utility | None = None
) -> dict[str, Any]:
    """Write the tables of a cell and, last, ``run.json``; return its content.

    That is the identity (configuration, data, code and models), the SHA-256 of each table in ``tables``, and a hash of
    all that as ``run_id``. Answers come in the order of the test split; the utility of a question is the objective of a
    learning method.
    """
    tables: Mapping[str, Iterable[Mapping[str, Any]]] = {
        "items": (item_row(each, utility) for each in answered),
        "calls": (row for each in answered for row in trajectory_rows(each.trajectory, "calls")),
        "decisions": (row for each in answered for row in trajectory_rows(each.trajectory, "decisions")),
    }
    for name, table in tables.items():
        write_table(folder / f"{name}.parquet", TABLES[name], table, simulated=identity["simulated"])
    run = {"schema": SCHEMA_VERSION, **identity, "tables": digests(folder)}
    run["run_id"] = hashlib.sha256(orjson.dumps(run, option=orjson.OPT_SORT_KEYS)).hexdigest()
    write_atomically(folder / "run.json", orjson.dumps(run, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
    return run


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every table of a cell, by file name."""
    return {path.name: sha256(path) for path in sorted(folder.glob("*.parquet"))}


def trajectory_rows(trajectory: Trajectory, kind: str) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of ``"calls"`` or ``"decisions"`` of one question."""
    # dataclasses.asdict would copy each value, which takes many times as long.
    names = TABLES[kind].names[1:]
    for record in getattr(trajectory, kind):
        yield {"item_id": trajectory.item.id, **{name: getattr(record, name) for name in names}}


def write_table(path: Path, schema: pa.Schema, rows: Iterable[Mapping[str, Any]], *, simulated: bool) -> None:
    """Write a table whole or not at all, one row group in memory; equal rows give equal bytes.

    The schema of a simulated run has the warning in its metadata, under the key ``simulated``.
    """
    if simulated:
        schema = schema.with_metadata({"simulated": SIMULATED_WARNING})
    waiting = iter(rows)
    with whole_file(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        group = list(islice(waiting, ROW_GROUP))
        writer.write_table(pa.Table.from_pylist(group, schema=schema))
        while group := list(islice(waiting, ROW_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))


def read_rows(path: Path, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a parquet file, with all columns or some, one row group in memory."""
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield from file.read_row_group(number, columns=columns).to_pylist()


def ledger(cells: Sequence[Path]) -> pd.DataFrame:
    """Return a row for each method, for its training (``NAME training``), and for ``all``, over finished cells.

    Columns: ``uses`` (calls as charged), ``calls`` (distinct within a cell; one that training and test share counts for
    the test), ``alike`` (asked by another cell, too), ``failed``, ``prompt_tokens``, ``completion_tokens`` and ``cost``
    summed over uses. Raises UserError if no cell is finished.
    """
    import pandas as pd

    frames = [
        pd.read_parquet(cell / file, columns=_OF_LEDGER).assign(cell=str(cell), method=cell.parents[2].name + phase)
        for cell in cells
        if (cell / "run.json").exists()
        for file, phase in (("calls.parquet", ""), ("training_calls.parquet", " training"))
        if (cell / file).exists()
    ]
    if not frames:
        raise UserError("no cell of this run is finished; run `snakemake --cores all` on one of its tables first")
    uses = pd.concat(frames, ignore_index=True)
    calls = uses.drop_duplicates(["cell", "key"])
    shared = calls[calls.duplicated("key", keep=False)]
    rows = uses.groupby("method", sort=False).agg(
        uses=("key", "size"),
        failed=("error", "count"),
        prompt_tokens=("prompt_tokens", "sum"),
        completion_tokens=("completion_tokens", "sum"),
        cost=("cost", "sum"),
    )
    rows.insert(1, "calls", calls.groupby("method").size().reindex(rows.index, fill_value=0))
    rows.insert(2, "alike", shared.groupby("method").size().reindex(rows.index, fill_value=0))
    rows.loc["all"] = rows.sum()
    whole = rows.columns.drop("cost")
    return rows.astype(dict.fromkeys(whole, "int64"))

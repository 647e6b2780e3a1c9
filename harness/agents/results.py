"""The result schema: the tidy tables a cell leaves behind, the only thing tables and figures read."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from harness.agents.trajectory import Call, Decision, Trajectory, fields
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.files import whole_file, write_atomically

SCHEMA_VERSION = 1
# Thousands of calls take some megabytes while they wait, and compress as well as ever more would.
ROW_GROUP = 1 << 12

ITEMS = pa.schema(
    [
        ("item_id", pa.string()),
        ("correct", pa.bool_()),
        ("status", pa.string()),
        ("detail", pa.string()),
        ("answer", pa.string()),
        ("text", pa.string()),
        ("math_verify", pa.bool_()),
        ("calls", pa.int64()),
        ("depth", pa.int64()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cost_total", pa.float64()),
        ("cost_steps", pa.float64()),
        ("embedded", pa.int64()),
        ("truncated", pa.int64()),
        ("utility", pa.float64()),
    ]
)
CALLS = pa.schema(
    [
        ("item_id", pa.string()),
        ("step", pa.int64()),
        ("purpose", pa.string()),
        ("slot", pa.int64()),
        ("backbone", pa.string()),
        ("role", pa.string()),
        ("key", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cost", pa.float64()),
        ("is_step", pa.bool_()),
        ("finish_reason", pa.string()),
        ("error", pa.string()),
    ]
)
DECISIONS = pa.schema(
    [
        ("item_id", pa.string()),
        ("step", pa.int64()),
        ("name", pa.string()),
        ("slot", pa.int64()),
        ("choice", pa.string()),
        ("options", pa.int64()),
        ("log_prob", pa.float64()),
    ]
)
TABLES: Mapping[str, pa.Schema] = {"items": ITEMS, "calls": CALLS, "decisions": DECISIONS}


class Answered(NamedTuple):
    """One question, answered and graded."""

    trajectory: Trajectory
    verdict: Verdict


Utility = Callable[[Answered], float]


def item_row(answered: Answered, utility: Utility | None = None) -> dict[str, Any]:
    """The row of one question in ``items.parquet``; its ``utility`` is null for a method that maximises nothing."""
    trajectory, verdict = answered
    return {
        "item_id": trajectory.item.id,
        "correct": verdict.correct,
        "status": verdict.status.value,
        "detail": verdict.detail,
        "answer": verdict.answer,
        "text": trajectory.answer,
        "math_verify": verdict.also.get("math_verify"),
        "calls": len(trajectory.calls),
        "depth": trajectory.depth,
        "prompt_tokens": sum(call.prompt_tokens for call in trajectory.calls),
        "completion_tokens": sum(call.completion_tokens for call in trajectory.calls),
        "cost_total": trajectory.cost_total,
        "cost_steps": trajectory.cost_steps,
        "embedded": trajectory.embedded,
        "truncated": trajectory.truncated,
        "utility": None if utility is None else utility(answered),
    }


def write(
    folder: Path, answered: Iterable[Answered], identity: dict[str, Any], utility: Utility | None = None
) -> dict[str, Any]:
    """Write the tables of a cell and, last, ``run.json``.

    Args:
        folder: The cell's folder.
        answered: In the order of the test split; read once, and never all in memory.
        identity: What made the run; ``run_id``, a hash over it and over the tables, is added.
        utility: What the method maximises, of one question; ``None`` for a method that does not learn.

    Returns:
        The content of ``run.json``.
    """
    with ExitStack() as stack:
        tables = {
            name: stack.enter_context(writing_table(folder / f"{name}.parquet", schema))
            for name, schema in TABLES.items()
        }
        for one in answered:
            tables["items"].add([item_row(one, utility)])
            for kind in ("calls", "decisions"):
                tables[kind].add(rows(one.trajectory, kind))
    digest = hashlib.sha256(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS))
    for name in TABLES:
        with (folder / f"{name}.parquet").open("rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
    run = {"schema": SCHEMA_VERSION, **identity, "run_id": digest.hexdigest()}
    write_atomically(folder / "run.json", orjson.dumps(run, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
    return run


def read(folder: Path, items: Sequence[Item]) -> list[Answered]:
    """Answers and verdicts of a cell: the inverse of :func:`write`.

    Args:
        folder: The cell's folder.
        items: The questions of the test, in its order.

    Raises:
        UserError: A table is missing, damaged, of another version of the suite, or of other questions.
    """
    stored, calls, decisions = (_stored(folder / f"{name}.parquet", schema) for name, schema in TABLES.items())
    if [row["item_id"] for row in stored] != [item.id for item in items]:
        raise UserError(f"{folder / 'items.parquet'} is not about the questions of this test; run the cell again")
    own_calls, own_decisions = (_by_item(table) for table in (calls, decisions))
    return [
        Answered(
            Trajectory(
                item,
                row["text"],
                tuple(Call(**call) for call in own_calls[item.id]),
                tuple(Decision(**decision) for decision in own_decisions[item.id]),
                row["embedded"],
                row["truncated"],
            ),
            _verdict(row),
        )
        for item, row in zip(items, stored, strict=True)
    ]


def _stored(path: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a readable table ({str(error).splitlines()[0]}); run the cell again") from error
    if not table.schema.equals(schema):
        raise UserError(f"{path}: its columns are not those of this version of the suite; run the cell again")
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def _by_item(table: Iterable[dict[str, Any]]) -> defaultdict[str, list[dict[str, Any]]]:
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in table:
        found[row.pop("item_id")].append(row)
    return found


def _verdict(row: dict[str, Any]) -> Verdict:
    also = {} if row["math_verify"] is None else {"math_verify": row["math_verify"]}
    return Verdict(row["correct"], row["answer"], Status(row["status"]), row["detail"], also)


def rows(trajectory: Trajectory, kind: str) -> Iterator[dict[str, Any]]:
    """The rows of ``"calls"`` or ``"decisions"`` of one question."""
    for record in getattr(trajectory, kind):
        yield {"item_id": trajectory.item.id, **fields(record)}


class Table:
    """A table being written, in row groups of a fixed size: equal rows give equal bytes, however many come at a time.

    Args:
        file: Where it is written.
        schema: Of its rows.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(file, schema, compression="zstd")
        self._schema = schema
        self._waiting: list[Mapping[str, Any]] = []
        self._is_empty = True

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows at the end."""
        for row in rows:
            self._waiting.append(row)
            if len(self._waiting) == ROW_GROUP:
                self._write()

    def close(self) -> None:
        """Write what is left; of a table without rows, its columns."""
        if self._waiting or self._is_empty:
            self._write()
        self._writer.close()

    def abandon(self) -> None:
        """Write no more."""
        # Or it would close itself when it is collected, and complain that its file is closed.
        self._writer.is_open = False

    def _write(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._waiting, schema=self._schema))
        self._waiting.clear()
        self._is_empty = False


@contextmanager
def writing_table(path: Path, schema: pa.Schema) -> Iterator[Table]:
    """A table whose file appears whole when the block ends, and not at all if it fails.

    Raises:
        UserError: The disk is full, or the folder cannot be written.
    """
    with whole_file(path) as file:
        table = Table(file, schema)
        try:
            yield table
            table.close()
        except BaseException:
            table.abandon()
            raise


def rows_of(path: Path, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a table, of which a row group at a time is in memory.

    Args:
        path: The file.
        columns: Only these; all where none are named.
    """
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield from file.read_row_group(number, columns=columns).to_pylist()

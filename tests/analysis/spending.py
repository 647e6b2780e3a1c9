"""What the cells of the fixtures lack: costs and depths that differ between questions, and a log of a training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.table import Entry
from harness.runner.config import methods
from tests.analysis.reading import Read as Table
from tests.analysis.reading import Row


def spend(folder: Path, costs: Sequence[float], depths: Sequence[int] | None = None) -> Path:
    """Replace the costs, and the depths, of a cell's questions, none of which has a final call."""
    path = folder / "items.parquet"
    rows = pq.read_table(path).to_pylist()
    for row, cost, depth in zip(rows, costs, depths or [1] * len(rows), strict=True):
        row |= {"cost_steps": cost, "cost_total": cost, "depth": depth}
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    return folder


def row_of(table: Table, *labels: str) -> Row:
    """The one row that has all of these labels."""
    [row] = [row for row in table.rows if set(labels) <= set(row.labels)]
    return row


def cell_of(table: Table, row: Row, group: str, column: str) -> Entry:
    """The entry of a row below a heading and a column title."""
    places = [(one.title, title) for one in table.groups for title in one.columns]
    return row.entries[places.index((group, column))]


def record_of(table: Table, **wanted: str) -> dict[str, str]:
    """The one record with these fields."""
    [record] = [one for one in table.records if all(one[key] == value for key, value in wanted.items())]
    return dict(record)


def title(method: str) -> str:
    """What tables call a method of the configuration, whatever its cells say."""
    return methods()[method].title

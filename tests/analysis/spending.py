"""What the cells of the fixtures lack: costs, depths, calls, timing jobs; and places of a table by their headings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.table import Entry
from harness.runner.config import methods
from tests.analysis.reading import Read as Table
from tests.analysis.reading import Row

ENGINE = {"concurrent_sequences": 64, "prefill_tokens_per_s_1b": 60000.0, "decode_tokens_per_s_1b": 600.0}


def spend(folder: Path, costs: Sequence[float], depths: Sequence[int] | None = None) -> Path:
    """Replace the costs, and the depths, of a cell's questions, none of which has a final call."""
    path = folder / "items.parquet"
    rows = pq.read_table(path).to_pylist()
    for row, cost, depth in zip(rows, costs, depths or [1] * len(rows), strict=True):
        row |= {"cost_steps": cost, "cost_total": cost, "depth": depth}
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    return folder


def with_calls(folder: Path, calls: Sequence[Sequence[tuple[str, int, int]]]) -> Path:
    """Give a cell calls by item: backbone, prompt and completion tokens. The order of the file is free."""
    names = ("backbone", "prompt_tokens", "completion_tokens")
    items = pq.read_table(folder / "items.parquet")["item_id"].to_pylist()
    both = zip(items, calls, strict=True)
    rows = [{"item_id": item, **dict(zip(names, call, strict=True))} for item, own in both for call in own]
    pq.write_table(pa.Table.from_pylist(rows[::-1]), folder / "calls.parquet")
    return folder


def time(cell: Path, folder: Path, /, **changes: Any) -> Path:
    """A timing job of a cell, of 6 seconds; ``changes`` replace top-level keys."""
    run = json.loads((cell / "run.json").read_text())
    names = ("preset", "method", "benchmark", "backbone", "seed", "simulated")
    numbers = {"schema": 1, "n": run["data"]["n_test"], "seconds": 6.0, "concurrency": 32, "calls": 8}
    document = {
        **{name: run[name] for name in names},
        **numbers,
        "failed_calls": 0,
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "engine": ENGINE if run["simulated"] else None,
        "cell": {"run_id": run["run_id"]},
        "host": {"platform": "Linux-test", "processors": 2},
        **changes,
    }
    folder.mkdir(parents=True)
    (folder / "timing.json").write_text(json.dumps(document))
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

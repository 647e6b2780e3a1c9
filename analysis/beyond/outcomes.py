"""All graded answers of a run as one table, and the paths of its enumerations, for pandas and other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from analysis.finished_cells import read_run
from harness.runner.results import TEST_SPLIT, check_tables, read_rows, write_table

OUTCOMES = pa.schema(
    [
        *((name, pa.string()) for name in ("benchmark", "item_id", "split", "method", "backbone")),
        ("seed", pa.int64()),
        # Backbone of the last call. For paths of an enumeration: role, and whether the step was stored.
        *((name, pa.string()) for name in ("asked", "role")),
        ("stored", pa.bool_()),
        *((name, pa.string()) for name in ("text", "answer", "status")),
        ("correct", pa.bool_()),
        *((name, pa.int64()) for name in ("prompt_tokens", "completion_tokens")),
        ("cost", pa.float64()),  # of all calls
        ("finish_reason", pa.string()),  # of the last call
    ]
)


def write(path: Path, cells: Sequence[Path], trees: Sequence[Path]) -> None:
    """Write all graded answers of cells and paths of enumerations, given by folder, as one deterministic table."""
    simulated = any(orjson.loads((folder / "run.json").read_bytes())["simulated"] for folder in (*cells, *trees))
    rows = (row for folder in (*cells, *trees) for row in (_answers if folder in cells else _paths)(folder))
    write_table(path, OUTCOMES, rows, simulated=simulated)


def _answers(folder: Path) -> Iterator[dict[str, Any]]:
    run = read_run(folder)
    check_tables(folder, run.tables)
    calls = read_rows(folder / "calls.parquet", ["item_id", "backbone", "finish_reason"])
    last = {call["item_id"]: {"asked": call["backbone"], "finish_reason": call["finish_reason"]} for call in calls}
    cell = {"benchmark": run.benchmark, "method": run.method, "backbone": run.backbone, "seed": run.seed}
    for item in read_rows(folder / "items.parquet"):
        yield {"split": TEST_SPLIT, **item, **cell, **last.get(item["item_id"], {}), "cost": item["cost_total"]}


def _paths(folder: Path) -> Iterator[dict[str, Any]]:
    for node in read_rows(folder / "nodes.parquet"):
        closing = {"asked": node["backbone"], "finish_reason": node["aggregate_finish_reason"]}
        yield {**node, **closing, "benchmark": folder.name, "method": "enumerate", "cost": node["cost_total"]}

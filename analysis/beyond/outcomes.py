"""One table of all graded answers of a run, and one of the paths of its enumerations."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.finished_cells import read_run
from harness.runner import layout
from harness.runner.results import check_tables, read_rows, write_table

# Type and description of the columns of the table of answers.
_COLUMNS = {
    "benchmark": (pa.string(), "benchmark, by its key in config/benchmarks.yaml"),
    "item_id": (pa.string(), "question, by its id in the benchmark's own files"),
    "question": (pa.string(), "its text; null if it may not be passed on"),
    "split": (pa.string(), "split"),
    "method": (pa.string(), "method that answered"),
    "backbone": (pa.string(), "backbone asked, or pool for a router"),
    "seed": (pa.int64(), "seed"),
    "asked": (pa.string(), "backbone of the last call"),
    "text": (pa.string(), "reply to the last call, or what the method made of several"),
    "answer": (pa.string(), "answer extracted from the text; null if none was found"),
    "status": (pa.string(), "graded, or why not"),
    "correct": (pa.bool_(), "whether the answer is right"),
    "prompt_tokens": (pa.int64(), "prompt tokens of all calls for the question"),
    "completion_tokens": (pa.int64(), "reply tokens of all calls for the question"),
    "cost": (pa.float64(), "cost of all calls, at the pool's prices"),
    "finish_reason": (pa.string(), "finish reason of the last call"),
}
OUTCOMES = pa.schema([(name, type_) for name, (type_, _) in _COLUMNS.items()])
#: Descriptions of columns in both tables.
DESCRIPTIONS = {name: text for name, (_, text) in _COLUMNS.items()} | {
    "role": "role of the step",
    "stored": "whether the last call sees the step",
    "cost_total": "cost of all calls, at the pool's prices",
    "cost_steps": "the same without the last call",
}


def write(path: Path, cells: Sequence[Path]) -> None:
    """Write all graded answers of cells, given by folder, as one deterministic table."""
    rows = (row for folder in cells for row in _answers(folder))
    write_table(path, OUTCOMES, rows, simulated=_is_simulated(cells))


def write_nodes(path: Path, trees: Sequence[Path]) -> None:
    """Write all paths of enumerations, given by folder, as one deterministic table."""
    nodes = {folder.name: folder / "nodes.parquet" for folder in trees}
    columns = [pq.read_schema(file).remove_metadata() for file in nodes.values()]
    schema = pa.unify_schemas([pa.schema([("benchmark", pa.string())]), *columns])
    rows = ({"benchmark": name, **node} for name, file in nodes.items() for node in read_rows(file))
    write_table(path, schema, rows, simulated=_is_simulated(trees))


def _is_simulated(folders: Sequence[Path]) -> bool:
    return any(orjson.loads((folder / "run.json").read_bytes())["simulated"] for folder in folders)


def _answers(folder: Path) -> Iterator[dict[str, Any]]:
    run = read_run(folder)
    check_tables(folder, run.tables)
    calls = read_rows(folder / "calls.parquet", ["item_id", "backbone", "finish_reason"])
    last = {call["item_id"]: {"asked": call["backbone"], "finish_reason": call["finish_reason"]} for call in calls}
    cell = {"benchmark": run.benchmark, "method": run.method, "backbone": run.backbone, "seed": run.seed}
    questions = _questions(folder.parents[4] / "data" / layout.items(run.preset, run.benchmark).name)
    for item in read_rows(folder / "items.parquet"):
        of_item = {"question": questions.get(item["item_id"]), "cost": item["cost_total"]}
        yield {**item, **cell, **last.get(item["item_id"], {}), **of_item}


@functools.cache
def _questions(path: Path) -> dict[str, str]:
    """Return the questions of a benchmark by id; none if a bundle leaves them out."""
    items = [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
    return {item["id"]: item["question"] for item in items}

"""Cells as a run leaves them, made of stated calls, and the preset that their questions belong to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from harness import layout
from harness.config import Cell
from harness.results import CALLS
from harness.training import TABLES

SOURCE = "rehearsal"
TRAIN, TEST = 10, 40


def prepared(benchmark: str, preset: str = SOURCE, train: int = TRAIN, test: int = TEST) -> None:
    """The manifest of a benchmark, with nothing in it but ids."""
    ids = {"train": [f"train/{n}" for n in range(train)], "test": [f"test/{n}" for n in range(test)]}
    path = layout.manifest(preset, benchmark)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(ids))


def call(
    item: str, key: str, backbone: str = "qwen-2.5-14B", prompt: int = 100, completion: int = 10
) -> dict[str, object]:
    """A use of a model; equal keys are one call."""
    return {
        "item_id": item,
        "step": 1,
        "purpose": "solve",
        "slot": 0,
        "backbone": backbone,
        "role": "",
        "key": key,
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cost": (prompt * 0.003 * 14 + completion * 0.010 * 14) / 1e6,
        "is_step": True,
        "finish_reason": "stop",
        "error": None,
    }


def finished(
    cell: Cell,
    test: Sequence[dict[str, object]],
    training: Iterable[Sequence[dict[str, object]]] = (),
    preset: str = SOURCE,
    log_bytes: int = 1000,
) -> Path:
    """A finished cell: its test calls, and those of each pass of its training."""
    folder = layout.cell(preset, cell)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(test), CALLS), folder / "calls.parquet")
    rows = [{"epoch": number, "rollout": 0, **one} for number, calls in enumerate(training, 1) for one in calls]
    if rows:
        pq.write_table(pa.Table.from_pylist(rows, TABLES["training_calls"]), folder / "training_calls.parquet")
    (folder / "calls.jsonl.zst").write_bytes(bytes(log_bytes))
    (folder / "timing.json").write_bytes(orjson.dumps({"wall_s": 60.0}))
    (folder / "run.json").write_bytes(orjson.dumps({"simulated": True}))
    return folder

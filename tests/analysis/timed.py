"""Calls and timing jobs for synthetic cells, written the way the suite writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Call = tuple[str, int, int]
ENGINE = {"concurrent_sequences": 64, "prefill_tokens_per_s_1b": 60000.0, "decode_tokens_per_s_1b": 600.0}


def with_calls(folder: Path, calls: Sequence[Sequence[Call]]) -> Path:
    """Give a cell calls (backbone, prompt and completion tokens), by item, and its items the tokens of these."""
    path = folder / "items.parquet"
    items = pq.read_table(path).to_pylist()
    rows = []
    for item, own in zip(items, calls, strict=True):
        item["calls"], item["prompt_tokens"], item["completion_tokens"] = (
            len(own),
            sum(call[1] for call in own),
            sum(call[2] for call in own),
        )
        rows += [
            {"item_id": item["item_id"], "backbone": one[0], "prompt_tokens": one[1], "completion_tokens": one[2]}
            for one in own
        ]
    pq.write_table(pa.Table.from_pylist(items, schema=pq.read_schema(path)), path)
    # The order of the file is free.
    pq.write_table(pa.Table.from_pylist(rows[::-1]), folder / "calls.parquet")
    return folder


def time(cell: Path, folder: Path, seconds: float, /, **changes: Any) -> Path:
    """A timing job of a cell; ``changes`` replace top-level keys."""
    run = json.loads((cell / "run.json").read_text())
    document = {
        "schema": 1,
        **{name: run[name] for name in ("preset", "method", "benchmark", "backbone", "seed", "simulated")},
        "n": run["data"]["n_test"],
        "seconds": seconds,
        "concurrency": 32,
        "calls": 8,
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

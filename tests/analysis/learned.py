"""Cells of methods that learn, made by hand: verdicts, costs, decisions, and the log of a training."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.agents.results import DECISIONS, ITEMS
from harness.runner import config
from harness.training.loop import UPDATES

WriteCell = Callable[..., Path]


@functools.cache
def titles() -> dict[str, str]:
    """How the suite calls its methods."""
    return {key: entry.title for key, entry in config.methods().items()}


def make(
    write_cell: WriteCell,
    method: str = "gmr",
    seed: int = 0,
    *,
    backbone: str = "pool",
    correct: Sequence[bool] = (True, True, True, False),
    steps: float = 0.001,
    total: float = 0.002,
    depth: Sequence[int] = (2, 2, 2, 2),
    own: Sequence[float | None] = (None, None, None, None),
    made: Sequence[Mapping[str, Any]] = (),
    updates: Sequence[Mapping[str, float]] | None = (),
    per_epoch: int = 100,
    **changes: Any,
) -> Path:
    """One cell; ``updates=None`` for a method that does not learn, ``()`` for one left as initialised."""
    folder = write_cell(method, backbone, seed=seed, correct=correct, **{"method_title": titles()[method], **changes})
    items = pq.read_table(folder / "items.parquet").to_pylist()
    for item, its_depth, its_own in zip(items, depth, own, strict=True):
        item |= {"cost_steps": steps, "cost_total": total, "depth": its_depth, "utility": its_own}
    _write(items, ITEMS, folder / "items.parquet")
    _write(made, DECISIONS, folder / "decisions.parquet")
    if updates is not None:
        log = [
            {"epoch": 1 + (number - 1) // per_epoch, "update": number, "measure": key, "value": value}
            for number, update in enumerate(updates, 1)
            for key, value in {"trajectories": 1.0, **update}.items()
        ]
        _write(log, UPDATES, folder / "training.parquet")
    return folder


def single(write_cell: WriteCell, backbone: str, right: int, cost: float) -> Path:
    """The cell of a single backbone: how many of four are right, and the cost of a question."""
    correct = [place < right for place in range(4)]
    return make(write_cell, "single", backbone=backbone, correct=correct, steps=cost, total=cost, updates=None)


def _write(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)

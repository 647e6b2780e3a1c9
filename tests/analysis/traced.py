"""Decisions of gates and tables of training rollouts, made by hand; figures turned into words and into bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure as Picture
from matplotlib.text import Text

from analysis import figure as drawing
from analysis.figure import Figure
from analysis.source import Source
from analysis.table import csv
from harness.agents.results import DECISIONS
from tests.analysis import learned

#: What one step decided: opened retrieval gates of the records stored so far, and the write gate.
Step = tuple[Sequence[bool], bool]


def gate(question: int, step: int, name: str, is_open: bool, slot: int = 0) -> dict[str, Any]:
    choice = "yes" if is_open else "no"
    row = (f"item-{question:04d}", step, name, slot, choice, 2, -math.log(2))
    return dict(zip(DECISIONS.names, row, strict=True))


def trajectory(question: int, *steps: Step) -> list[dict[str, Any]]:
    """All draws of both memory gates, steps counted from 1 as in the log."""
    found = []
    for number, (opened, written) in enumerate(steps, 1):
        found += [gate(question, number, "retrieve", is_open, slot) for slot, is_open in enumerate(opened)]
        found.append(gate(question, number, "write", written))
    return found


def make(write_cell: Callable[..., Path], method: str = "gmr", seed: int = 0, **changes: Any) -> Path:
    """A cell of four questions, trained on ``rollouts``: questions, epochs and rollouts of a question."""
    questions, epochs, group = changes.pop("rollouts", (2, 3, 6))
    folder = learned.make(write_cell, method, seed, **changes)
    rows = [
        {"item_id": f"train-{question}", "epoch": epoch, "rollout": rollout}
        for question in range(questions)
        for epoch in range(1, epochs + 1)
        for rollout in range(group)
    ]
    schema = pa.schema([("item_id", pa.string()), ("epoch", pa.int64()), ("rollout", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "training_decisions.parquet")
    return folder


def picture(figure: Figure) -> Picture:
    return drawing.picture(figure)


def words(figure: Figure) -> str:
    """All text of a picture, line breaks and other white space as one blank."""
    texts = picture(figure).findobj(Text)
    return " ".join(" ".join(text.get_text() for text in texts if isinstance(text, Text)).split())


def files(module: str, folders: Iterable[Path], **options: str) -> bytes:
    """Every file of a figure, one after the other."""
    figure = import_module(module).build(Source.of(list(folders), **options))
    made = drawing.pictures(figure)
    return made["png"] + made["pdf"] + made["svg"] + csv(figure.frame, figure.warning).encode()

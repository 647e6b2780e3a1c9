"""The chunks of the explorer: what cells there are, the items of each, and their trajectories a few at a time."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from analysis.explorer.packing import Chunk
from analysis.results import Cell, outcome
from analysis.site.chunks import write_chunk
from analysis.trajectories import CellRecords, Record, open_cell
from analysis.trajectories.cells import questions
from harness.runner import config

# Characters of texts in a chunk: few enough to be there at once, enough to share what prompts repeat.
_MOST = 1 << 18
_FIRST_WORDS = 100
_ROOT = "explorer"


def write_data(preset: str, cells: Sequence[Cell], data: Path) -> list[Path]:
    """Write the chunks of all cells.

    Args:
        preset: Whose cells.
        cells: Finished ones.
        data: The folder of all chunks of the site.

    Returns:
        The files.

    Raises:
        UserError: A cell is damaged, or the disk is full.
    """
    written: list[Path] = []
    listed: list[dict[str, Any]] = []
    for benchmark in dict.fromkeys(cell.run.benchmark for cell in cells):
        asked = questions(preset, benchmark)
        seen: dict[str, str] = {}
        for cell in (one for one in cells if one.run.benchmark == benchmark):
            with open_cell(preset, _key(cell), asked) as records:
                written += _write_cell(cell, records, data)
                seen |= {
                    id_: textwrap.shorten(asked[id_].question, _FIRST_WORDS, placeholder=" ...") for id_ in records.ids
                }
            listed.append(_listed(cell))
        written.append(write_chunk(data, f"{_ROOT}/questions/{benchmark}", [list(seen), list(seen.values())]))
    order = {cell.run.cell: place for place, cell in enumerate(cells)}
    listed.sort(key=lambda entry: order[entry["name"]])
    return [*written, write_chunk(data, f"{_ROOT}/cells", listed)]


def _key(cell: Cell) -> config.Cell:
    run = cell.run
    return config.Cell(run.method, run.benchmark, run.backbone, run.seed)


def _listed(cell: Cell) -> dict[str, Any]:
    run = cell.run
    return {
        "name": cell.run.cell,
        "method": run.method,
        "title": run.method_title,
        "benchmark": run.benchmark,
        "benchmark_title": run.benchmark_title,
        "backbone": run.backbone,
        "seed": run.seed,
        "simulated": run.simulated,
        "items": len(cell.items.item_id),
        "right": sum(cell.items.correct),
        "folder": cell.folder.as_posix(),
        "notes": list(run.notes),
    }


def _write_cell(cell: Cell, records: CellRecords, data: Path) -> Iterator[Path]:
    name = f"{_ROOT}/{cell.run.cell}"
    rows: list[list[Any]] = []
    chunk, number = Chunk(), 0
    for place, id_ in enumerate(records.ids):
        record = records.record(id_)
        chunk.add(record)
        rows.append(_row(record, number))
        if chunk.size >= _MOST or place == len(records.ids) - 1:
            yield write_chunk(data, f"{name}/{number}", chunk.packed())
            chunk, number = Chunk(), number + 1
    columns = [list(column) for column in zip(*rows, strict=True)]
    yield write_chunk(data, f"{name}/items", dict(zip(_COLUMNS, columns, strict=True)))


_COLUMNS = ("id", "verdict", "status", "depth", "calls", "tokens", "cost", "chunk")


def _row(record: Record, chunk: int) -> list[Any]:
    totals = record.totals
    return [
        record.item.id,
        outcome(record.verdict.status, record.verdict.correct),
        str(record.verdict.status),
        totals.depth,
        totals.calls,
        totals.prompt_tokens + totals.completion_tokens,
        totals.cost_total,
        chunk,
    ]

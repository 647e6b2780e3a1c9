"""The files of the training page: the page itself, and its data in a chunk a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis.site import frame
from analysis.site.chunks import write_chunk
from analysis.site.source import Finished
from analysis.training_view.rows import Row, data, extent, rows_of
from harness.files import write_atomically

_INDEX = "training/index"


def write(finished: Finished) -> list[Path]:
    """Write ``site/training.html`` and its chunks.

    Args:
        finished: The finished part of a run.

    Returns:
        The files written.

    Raises:
        UserError: A table of a cell is missing or damaged, or the folder cannot be written.
    """
    site = finished.folder / frame.FOLDER
    rows = rows_of(finished.cells)
    listed = [_listed(row) for row in rows]
    table = [{**one, "seeds": list(row.cells), "extent": extent(row)} for one, row in zip(listed, rows, strict=True)]
    page = site / "training.html"
    text = frame.render("training.html.j2", title="Training", here="training", site=finished.site, rows=table)
    write_atomically(page, text)
    folder = site / "data"
    chunks = [write_chunk(folder, row.chunk, data(row)) for row in rows]
    return [page, write_chunk(folder, _INDEX, listed), *chunks]


def _listed(row: Row) -> dict[str, Any]:
    """What the page says of a row before it is chosen."""
    run = row.first.run
    return {
        "key": row.key,
        "title": row.title,
        "benchmark": run.benchmark,
        "benchmark_title": run.benchmark_title,
        "chunk": row.chunk,
    }

"""The training logs of all finished cells as one tidy CSV, as they were logged."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from analysis.provenance import table_run_id
from analysis.results import Cell
from analysis.tables import warning
from analysis.tidy import exact
from analysis.traces import read_table
from harness.errors import UserError
from harness.files import whole_file

HEADS = ("preset", "method", "benchmark", "backbone", "seed", "epoch", "update", "measure", "value")
_LOG = "training.parquet"
_UNITS = "as logged in training: accuracy and other shares are fractions, utility is in the unit of the method"


def export(cells: Sequence[Cell], path: Path) -> int:
    """Write one line a cell, update and measure, after comments that say what the numbers are and of which run.

    A cell whose method was left as initialised has no line.

    Args:
        cells: Finished cells of one preset; those of methods that do not learn have no part in it.
        path: The file.

    Returns:
        How many cells there are curves of.

    Raises:
        UserError: None of the methods learns, a training log is damaged, or the file cannot be written.
    """
    learned = [cell for cell in cells if (cell.folder / _LOG).is_file()]
    if not learned:
        raise UserError(
            "no cell of a method that learns among the finished ones, so there is no curve; name such a method under "
            "`methods` of the preset, and run it"
        )
    comments = [warning(any(cell.run.simulated for cell in learned)), _UNITS, f"run {table_run_id(learned)}"]
    with whole_file(path) as file:
        file.write("".join(f"# {comment}\n" for comment in comments if comment).encode())
        file.write(_text([HEADS]))
        for cell in learned:
            file.write(_text(_rows(cell)))
    return len(learned)


def _rows(cell: Cell) -> Iterator[Sequence[object]]:
    run, path = cell.run, cell.folder / _LOG
    logged = read_table(path, HEADS[5:])
    for epoch, update, measure, value in logged.itertuples(index=False):
        yield (run.preset, run.method, run.benchmark, run.backbone, run.seed, epoch, update, measure, exact(value))


def _text(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()

"""Logs of Inspect on the disk: a file a cell, equal to the byte for equal results."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from inspect_ai.log import EvalLog, write_eval_log

from analysis import results
from analysis.trajectories import open_cell
from harness.benchmarks.items import Item
from harness.files import whole_file
from harness.runner.config import Cell, Preset
from workflow.inspect_export.logs import log_of

# The earliest that a zip can say.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


class Written(NamedTuple):
    """A log that was written.

    Attributes:
        path: The file.
        samples: How many trajectories are in it.
    """

    path: Path
    samples: int


def path_of(out: Path, cell: Cell) -> Path:
    """Where the log of a cell lies: a folder a benchmark, as Inspect shows folders."""
    return out / cell.benchmark / f"{cell.method}_{cell.backbone}_seed{cell.seed}.eval"


def write_cell(preset: Preset, cell: Cell, folder: Path, out: Path, asked: Mapping[str, Item]) -> Written:
    """Write the log of one finished cell.

    Args:
        preset: Of the cell.
        cell: Which.
        folder: Where it lies.
        out: Where logs go.
        asked: The questions of its benchmark, by id.

    Raises:
        UserError: The cell is damaged, or the log cannot be written.
    """
    with open_cell(preset.name, cell, asked) as records:
        log = log_of(results.read(folder), (records.record(item) for item in records.ids))
    path = path_of(out, cell)
    write(log, path)
    return Written(path, len(log.samples or []))


def write(log: EvalLog, path: Path) -> None:
    """Write a log as Inspect does, without the clock that is in each entry of a zip.

    Raises:
        UserError: The disk is full, or the folder cannot be written.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "log.eval"
        write_eval_log(log, str(made), format="eval")
        with zipfile.ZipFile(made) as source, whole_file(path) as file, zipfile.ZipFile(file, "w") as target:
            for entry in source.infolist():
                info = zipfile.ZipInfo(entry.filename, _NO_TIME)
                target.writestr(info, source.read(entry), zipfile.ZIP_DEFLATED)

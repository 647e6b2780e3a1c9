"""The CSV of every report as parquet: the same rows and columns, with types, and what the comments say as metadata."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import registry
from analysis.exports.columns import typed
from analysis.tables import SIMULATED
from harness.errors import UserError
from harness.files import whole_file, write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "tables"


def export(reports: Path, preset: str, out: Path) -> list[Path]:
    """Copy every CSV of a preset's reports, a parquet file of the same name beside it.

    Args:
        reports: The folder of the preset's reports.
        preset: Its name.
        out: Where the folder ``tables`` is made.

    Returns:
        The parquet files.

    Raises:
        UserError: One is no CSV of this suite, or the folder cannot be written.
    """
    folders = [reports, *(reports / name for name in registry.folders())]
    found = [path for folder in folders for path in sorted(folder.glob("*.csv"))]
    return [_export(path, preset, out / FOLDER / path.relative_to(reports)) for path in found]


def _export(path: Path, preset: str, target: Path) -> Path:
    content = path.read_bytes()
    table = parquet(content.decode(), preset, path)
    write_atomically(target, content)
    return write(table, target.with_suffix(".parquet"))


def parquet(text: str, preset: str, where: Path) -> pa.Table:
    """The table of a CSV of this suite.

    Its metadata: ``preset``; ``simulated``, ``true`` or ``false``; ``warning``, the sentence about simulated backbones
    where it applies; ``run_ids``, those of the cells behind it as a JSON list; ``comments``, what else stands above the
    table; ``csv_sha256``, of the file it was made from.

    Args:
        text: Of the file.
        preset: Its run.
        where: The file, named in the error.

    Raises:
        UserError: Its lines are not equally long, or there is none.
    """
    import pyarrow as pa

    comments, heads, rows = _parsed(text)
    if not heads or any(len(row) != len(heads) for row in rows):
        raise UserError(f"{where}: not a table with equally long lines; make the report again, or take it away")
    columns = {head: [row[place] for row in rows] for place, head in enumerate(heads)}
    found = pa.table({head: typed(head, values) for head, values in columns.items()})
    about = {
        "preset": preset,
        **warned(SIMULATED in comments),
        "run_ids": json.dumps(_run_ids(columns)),
        "comments": "\n".join(comment for comment in comments if comment != SIMULATED),
        "csv_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    return found.replace_schema_metadata(about)


def warned(simulated: bool) -> dict[str, str]:
    """What metadata say of the backbones."""
    return {"simulated": str(simulated).lower(), **({"warning": SIMULATED} if simulated else {})}


def write(table: pa.Table, path: Path) -> Path:
    """Write a table; equal tables give equal bytes with the same version of pyarrow."""
    import pyarrow.parquet as pq

    with whole_file(path) as file:
        pq.write_table(table, file, compression="zstd")
    return path


def _parsed(text: str) -> tuple[list[str], list[str], list[list[str]]]:
    """Comment lines, heads, rows; a comment is one only above the table."""
    lines = text.splitlines(keepends=True)
    begins = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    heads, *rows = [*csv.reader(io.StringIO("".join(lines[begins:])))] or [[]]
    return [line.removeprefix("#").strip() for line in lines[:begins]], heads, rows


def _run_ids(columns: Mapping[str, Sequence[str]]) -> list[str]:
    named = [*columns.get("run_id", ()), *columns.get("run", ())]
    return sorted({run for field in named for run in field.split()})

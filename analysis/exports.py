"""Results for other tools: tables and figures' data, items, calls and decisions as parquet, training curves as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis import registry
from analysis.provenance import SIMULATED, table_run_id, warning
from analysis.results import TRAINING, Cell, Run, read_table
from analysis.table import csv
from harness.errors import UserError
from harness.files import whole_file, write_atomically, writing
from harness.results import TABLES as TESTED
from harness.training.loop import TABLES as TRAINED

#: By table: the columns of the cells' files, to which ``preset``, ``simulated`` and ``run_id`` are added.
TABLES = {**TESTED, **TRAINED}
# The backbone of a cell, or the pool, is called its row: the calls have a column of their own for who answered them.
_KEYS = {"method": "method", "benchmark": "benchmark", "row": "backbone", "seed": "seed"}
# One seed looks like a number and three do not, so that files of two runs would not fit together.
_TEXTS = dict.fromkeys(
    ("seeds", "run", "run_id", "config_hash", "code", "data_checksum", "by_seed", "concurrency"), str
)
_UNITS = "as logged in training: accuracy and other shares are fractions, utility is in the unit of the method"


def tables(reports: Path, preset: str, out: Path) -> list[Path]:
    """Copy every CSV of a preset's reports to ``out/tables``, a parquet file of the same name beside it.

    Metadata say the preset, and whether its backbones were simulated.

    Raises:
        UserError: One is no CSV of this suite, or the folder cannot be written.
    """
    folders = [reports, *(reports / name for name in registry.folders())]
    found = [path for folder in folders for path in sorted(folder.glob("*.csv"))]
    return [_table(path, preset, out / "tables" / path.relative_to(reports)) for path in found]


def dataset(cells: Iterable[tuple[Path, Run]], out: Path) -> list[Path]:
    """Write all cells of a run as one tidy data set a table, partitioned as Hive does.

    A part is ``out/TABLE/method=M/benchmark=B/row=R/seed=S/TABLE.parquet``. Parts of an earlier export whose cells
    are not among these are removed.

    Args:
        cells: Folders of finished cells, and what their ``run.json`` says.
        out: Folder of the data sets.

    Returns:
        The files written.

    Raises:
        UserError: A table of a cell is missing or damaged, or the folder cannot be written.
    """
    written = [part for folder, run in cells for part in _parts(folder, run, out)]
    pattern = "/".join(f"{key}=*" for key in _KEYS)
    for name in TABLES:
        for part in set(out.glob(f"{name}/{pattern}/{name}.parquet")) - set(written):
            with writing(part):
                part.unlink()
    return written


def curves(cells: Sequence[Cell], path: Path) -> int:
    """Write the training logs as one CSV: a line a cell, update and measure, as they were logged.

    Args:
        cells: Finished cells of one preset; those of methods that do not learn have no part in it.
        path: The file.

    Returns:
        How many cells there are curves of.

    Raises:
        UserError: None of the methods learns, a training log is damaged, or the file cannot be written.
    """
    learned = [cell for cell in cells if (cell.folder / TRAINING).is_file()]
    if not learned:
        raise UserError(
            "no cell of a method that learns among the finished ones, so there is no curve; name such a method under "
            "`methods` of the preset, and run it"
        )
    logs = [
        read_table(cell.folder / TRAINING, ("epoch", "update", "measure", "value")).assign(
            **{name: getattr(cell.run, name) for name in ("preset", "method", "benchmark", "backbone", "seed")}
        )
        for cell in learned
    ]
    columns = ["preset", "method", "benchmark", "backbone", "seed", "epoch", "update", "measure", "value"]
    comments = [warning(any(cell.run.simulated for cell in learned)), _UNITS, f"run {table_run_id(learned)}"]
    write_atomically(path, csv(pd.concat(logs)[columns], "\n# ".join(filter(None, comments))))
    return len(learned)


def _table(path: Path, preset: str, target: Path) -> Path:
    text = path.read_text(encoding="utf-8")
    try:
        frame = pd.read_csv(path, comment="#", dtype=_TEXTS)
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: not a table ({reason}); make the report again, or take it away") from error
    write_atomically(target, text)
    _write(frame, target.with_suffix(".parquet"), {"preset": preset, **_warned(f"# {SIMULATED}\n" in text)})
    return target.with_suffix(".parquet")


def _parts(folder: Path, run: Run, out: Path) -> Iterator[Path]:
    added = {"preset": run.preset, "simulated": run.simulated, "run_id": run.run_id}
    partition = Path(*(f"{key}={quote(str(getattr(run, name)), safe='')}" for key, name in _KEYS.items()))
    for name, schema in TABLES.items():
        source = folder / f"{name}.parquet"
        if name in TESTED or source.is_file():
            target = out / name / partition / f"{name}.parquet"
            _write(read_table(source, schema.names).assign(**added), target, {**added, **_warned(run.simulated)})
            yield target


def _write(frame: pd.DataFrame, path: Path, about: Mapping[str, Any]) -> None:
    made = pa.Table.from_pandas(frame, preserve_index=False)
    with whole_file(path) as file:
        pq.write_table(made.replace_schema_metadata({key: str(value) for key, value in about.items()}), file)


def _warned(simulated: bool) -> dict[str, str]:
    return {"simulated": str(simulated).lower(), **({"warning": SIMULATED} if simulated else {})}

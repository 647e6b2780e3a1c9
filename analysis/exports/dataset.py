"""All cells of a run as one tidy data set a table: partitioned by method, benchmark, row and seed, as Hive does.

The parts are copied row group by row group, so memory does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from analysis.exports.tables import warned
from analysis.results import Run
from harness.errors import UserError
from harness.files import whole_file, writing
from harness.results import TABLES as TESTED
from harness.training.loop import TABLES as TRAINED

if TYPE_CHECKING:
    import pyarrow as pa

#: By table: the columns of the cells' files, to which ``preset``, ``simulated`` and ``run_id`` are added.
TABLES = {**TESTED, **TRAINED}
# The backbone of a cell, or the pool, is called its row: the calls have a column of their own for who answered them.
_KEYS = {"method": "method", "benchmark": "benchmark", "row": "backbone", "seed": "seed"}


def export(cells: Iterable[tuple[Path, Run]], out: Path) -> list[Path]:
    """Write a data set for every table there is.

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
    _remove_others(out, set(written))
    return written


def _parts(folder: Path, run: Run, out: Path) -> Iterator[Path]:
    for name, schema in TABLES.items():
        source = folder / f"{name}.parquet"
        if name in TESTED or source.is_file():
            yield _copy(source, out / name / _partition(run) / f"{name}.parquet", schema, run)


def _partition(run: Run) -> Path:
    """The folders of a part; what a path or Hive reads otherwise is escaped."""
    return Path(*(f"{key}={quote(str(getattr(run, name)), safe='')}" for key, name in _KEYS.items()))


def _copy(source: Path, target: Path, schema: pa.Schema, run: Run) -> Path:
    """The rows of a cell's table with what tells them from those of other runs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    added = {"preset": pa.string(), "simulated": pa.bool_(), "run_id": pa.string()}
    whole = pa.schema([*schema, *added.items()], {"preset": run.preset, **warned(run.simulated), "run_id": run.run_id})
    try:
        with (
            pq.ParquetFile(source) as file,
            whole_file(target) as end,
            pq.ParquetWriter(end, whole, compression="zstd") as writer,
        ):
            for number in range(file.num_row_groups):
                rows = file.read_row_group(number, columns=schema.names)
                for name, kind in added.items():
                    rows = rows.append_column(name, pa.repeat(pa.scalar(getattr(run, name), kind), len(rows)))
                writer.write_table(rows.cast(whole).replace_schema_metadata(whole.metadata))
    except (pa.ArrowException, FileNotFoundError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{source}: not a readable table of a finished cell ({reason}); run the cell again") from error
    return target


def _remove_others(out: Path, written: set[Path]) -> None:
    pattern = "/".join(f"{key}=*" for key in _KEYS)
    for name in TABLES:
        for part in out.glob(f"{name}/{pattern}/{name}.parquet"):
            if part not in written:
                with writing(part):
                    part.unlink()

"""Tables written row by row, so that memory does not grow with their length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from harness.files import whole_file

# Thousands of calls take some megabytes while they wait, and compress as well as ever more would.
ROW_GROUP = 1 << 12


class Table:
    """A table being written, in row groups of a fixed size: equal rows give equal bytes, however many come at a time.

    Args:
        file: Where it is written.
        schema: Of its rows.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(file, schema, compression="zstd")
        self._schema = schema
        self._waiting: list[Mapping[str, Any]] = []
        self._is_empty = True

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows at the end."""
        for row in rows:
            self._waiting.append(row)
            if len(self._waiting) == ROW_GROUP:
                self._write()

    def close(self) -> None:
        """Write what is left; of a table without rows, its columns."""
        if self._waiting or self._is_empty:
            self._write()
        self._writer.close()

    def abandon(self) -> None:
        """Write no more, whatever is missing."""
        # Or it would close itself when it is collected, and complain that its file is closed.
        self._writer.is_open = False

    def _write(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._waiting, schema=self._schema))
        self._waiting.clear()
        self._is_empty = False


@contextmanager
def writing_table(path: Path, schema: pa.Schema) -> Iterator[Table]:
    """A table whose file appears whole when the block ends, and not at all if it fails.

    Raises:
        UserError: The disk is full, or the folder cannot be written.
    """
    with whole_file(path) as file:
        table = Table(file, schema)
        try:
            yield table
            table.close()
        except BaseException:
            table.abandon()
            raise


def rows_of(path: Path, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a table, of which a row group at a time is in memory.

    Args:
        path: The file.
        columns: Only these; all where none are named.
    """
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield from file.read_row_group(number, columns=columns).to_pylist()

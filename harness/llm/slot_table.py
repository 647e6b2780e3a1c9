"""A small file in which processes agree on what each of them holds of something limited.

Every process has a row: how much it holds, how much it could use, and when it was last given something. The row
belongs to it as long as it has the lock on it (:mod:`harness.locked_file`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from harness.errors import UserError
from harness.files import writing
from harness.locked_file import LockedFile

PROCESSES = 1024
_ROW = struct.Struct("<IIQ")


class Row(NamedTuple):
    """What one process says of itself.

    Attributes:
        held: What it has.
        wanted: What it could use, what it has included.
        given: Number of the occasion on which it last got more; smaller is longer ago.
    """

    held: int = 0
    wanted: int = 0
    given: int = 0


class SlotTable:
    """The file, opened by one process.

    Args:
        path: The file; made if absent.

    Raises:
        UserError: The file cannot be written or locked, or too many processes use it.
    """

    def __init__(self, path: Path) -> None:
        self._file = LockedFile(path)
        self.path = self._file.path
        try:
            with writing(path):
                self.own = self._claim()
            with self._file.guarded(wait=True):
                self._write(self.own, Row())
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Give up the row."""
        self._file.close()

    def guarded(self) -> AbstractContextManager[bool]:
        """Keep the others from reading and writing inside the block; ``False`` if another process is just at it."""
        return self._file.guarded()

    def read(self) -> list[Row]:
        """All rows; those of processes that are gone are cleared. For a guarded block."""
        content = self._file.read(PROCESSES * _ROW.size)
        rows = [Row(*numbers) for numbers in _ROW.iter_unpack(content[: len(content) // _ROW.size * _ROW.size])]
        for number, row in enumerate(rows):
            if any(row) and number != self.own and self._file.own(number):
                rows[number] = Row()
                self._write(number, Row())
                self._file.disown(number)
        return rows

    def write(self, row: Row) -> None:
        """Put the own row. For a guarded block."""
        self._write(self.own, row)

    def _write(self, number: int, row: Row) -> None:
        self._file.write(_ROW.pack(*row), number * _ROW.size)

    def _claim(self) -> int:
        for number in range(PROCESSES):
            if self._file.own(number):
                return number
        raise UserError(f"more than {PROCESSES} processes use {self.path}; run fewer at once")


def fair_shares(rows: Sequence[Row], places: int) -> list[int]:
    """Places for each row: nobody more than it wants, and nobody more than another that wants more.

    What cannot be divided goes, one place each, to those who were given something longest ago.
    """
    shares = [0] * len(rows)
    hungry = [number for number, row in enumerate(rows) if row.wanted]
    while hungry and (each := places // len(hungry)):
        for number in hungry:
            got = min(each, rows[number].wanted - shares[number])
            shares[number] += got
            places -= got
        hungry = [number for number in hungry if shares[number] < rows[number].wanted]
    for number in sorted(hungry, key=lambda number: (rows[number].given, number))[:places]:
        shares[number] += 1
    return shares

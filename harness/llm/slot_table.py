"""A small file in which processes agree on what each of them holds of something limited.

Every process has a row: how much it holds, how much it could use, and when it was last given something. The row
belongs to it as long as it holds a POSIX lock on a byte of its own, which the kernel releases however the process ends;
another byte guards reading and writing. Both work wherever ``fcntl`` locks do, network file systems included, so that
processes on several machines can agree as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.errors import UserError
from harness.files import writing

PROCESSES = 1024
# Bytes that are locked need not exist; these lie behind all rows.
_GUARD = 1 << 20
_OWNERS = _GUARD + 1
_ROW = struct.Struct("<IIQ")
_OPEN: set[Path] = set()


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

    A process may open a file only once, and nothing else in it may open that file: POSIX locks go with the first
    closing of any handle.

    Args:
        path: The file; made if absent.

    Raises:
        UserError: The file cannot be written or locked, or too many processes use it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        if self.path in _OPEN:
            raise RuntimeError(f"{path} is open in this process already")
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            with writing(path):
                self.own = self._claim()
                fcntl.lockf(self._file, fcntl.LOCK_EX, 1, _GUARD)
                self._write(self.own, Row())
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _GUARD)
        except BaseException:
            os.close(self._file)
            raise
        _OPEN.add(self.path)

    def close(self) -> None:
        """Give up the row."""
        os.close(self._file)
        _OPEN.discard(self.path)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[bool]:
        """Keep the others from reading and writing inside the block; ``False`` if another process is just at it."""
        with writing(self.path):
            if not self._lock(_GUARD):
                yield False
                return
            try:
                yield True
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _GUARD)

    def read(self) -> list[Row]:
        """All rows; those of processes that are gone are cleared. For a guarded block."""
        content = os.pread(self._file, PROCESSES * _ROW.size, 0)
        rows = [Row(*numbers) for numbers in _ROW.iter_unpack(content[: len(content) // _ROW.size * _ROW.size])]
        for number, row in enumerate(rows):
            if any(row) and number != self.own and self._lock(_OWNERS + number):
                rows[number] = Row()
                self._write(number, Row())
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _OWNERS + number)
        return rows

    def write(self, row: Row) -> None:
        """Put the own row. For a guarded block."""
        self._write(self.own, row)

    def _write(self, number: int, row: Row) -> None:
        os.pwrite(self._file, _ROW.pack(*row), number * _ROW.size)

    def _claim(self) -> int:
        for number in range(PROCESSES):
            if self._lock(_OWNERS + number):
                return number
        raise UserError(f"more than {PROCESSES} processes use {self.path}; run fewer at once")

    def _lock(self, byte: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):
            return False
        return True


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

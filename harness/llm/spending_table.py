"""A small file in which the processes of a run tell each other what they have spent.

Every call log has a row: what its calls took, how many more its process has reserved, and the state of the log for
which that is true. A row is owned by the process that writes the log. What a process that was killed had spent is not
in its row, but in its log, which no longer has the state that the row tells of: whoever comes next counts it.
"""

from __future__ import annotations

import hashlib
import struct
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from harness.errors import UserError
from harness.llm.budget import Spent
from harness.locked_file import LockedFile

LOGS = 1 << 14
# While a log is written no state of it is told.
UNKNOWN = 0
_ROW = struct.Struct("<16sQQdQQ")


class Entry(NamedTuple):
    """A row.

    Attributes:
        name: What the log is known by.
        spent: What its calls took.
        reserved: Calls that may still be added.
        state: Of the log (:func:`harness.llm.budget.state_of`).
    """

    name: bytes
    spent: Spent
    reserved: int
    state: int


class SpendingTable:
    """The file, opened by one process.

    Args:
        path: The file; made if absent.

    Raises:
        UserError: The file cannot be written or locked.
    """

    def __init__(self, path: Path) -> None:
        self._file = LockedFile(path)
        self.path = path

    def close(self) -> None:
        """Give the file up."""
        self._file.close()

    def guarded(self, *, wait: bool = False) -> AbstractContextManager[bool]:
        """Keep the others from reading and writing inside the block; see :class:`~harness.locked_file.LockedFile`."""
        return self._file.guarded(wait=wait)

    def own(self, row: int, *, wait: bool = False) -> bool:
        """Make a row ours while this process lives; says whether it is."""
        return self._file.own(row, wait=wait)

    def disown(self, row: int) -> None:
        """Give up a row."""
        self._file.disown(row)

    def read(self) -> list[Entry]:
        """All rows. For a guarded block."""
        content = self._file.read(LOGS * _ROW.size)
        whole = content[: len(content) // _ROW.size * _ROW.size]
        return [
            Entry(name, Spent(calls, tokens, cost), reserved, state)
            for name, calls, tokens, cost, reserved, state in _ROW.iter_unpack(whole)
        ]

    def write(self, row: int, entry: Entry) -> None:
        """Put a row. For a guarded block.

        Raises:
            UserError: There are too many.
        """
        if row >= LOGS:
            raise UserError(f"{self.path} has room for {LOGS:,} call logs; remove results that are not needed")
        self._file.write(
            _ROW.pack(entry.name, *entry.spent, entry.reserved, entry.state),
            row * _ROW.size,
        )


def name_of(log: Path) -> bytes:
    """What a log is known by, wherever the working folder lies."""
    return hashlib.sha256(log.as_posix().encode()).digest()[:16]

"""Records that wait on the disk until they are needed, so that memory does not grow with their number."""

from __future__ import annotations

import os
import tempfile
import weakref
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from harness.files import writing


class Spool:
    """JSON values in the order in which they were added, in a file that has no name.

    The file is gone when nobody holds the spool any longer, or when the process is killed: what stood in it is made
    anew from the call log. Eight bytes a record stay in memory.

    Args:
        folder: On whose disk the file lies; made if absent.

    Raises:
        UserError: The folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ends = array("q", [0])
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  lives as long as the spool
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> Any:
        start, end = self._ends[number], self._ends[number + 1]
        return orjson.loads(os.pread(self._file.fileno(), end - start, start))

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))

    def add(self, value: Any) -> None:
        """Add a record: anything that JSON can say, dataclasses and numbers of numpy included.

        Raises:
            UserError: The disk is full.
        """
        record = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
        rest = memoryview(record)
        with writing(self._folder):
            while rest:
                rest = rest[self._file.write(rest) :]
        self._ends.append(self._ends[-1] + len(record))

"""Records by digest that many processes share without waiting for each other.

Below one folder each process appends to a file of its own, which it locks, and reads those of the others as they are
when it opens. How a record is laid out is the business of its :class:`Form`.
"""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path
from typing import NamedTuple, Protocol

from harness.errors import UserError
from harness.files import writing
from harness.places import GONE, Digests, Numbers, Places

logger = logging.getLogger(__name__)

# Files of 16 TiB, half a million of them.
_OFFSET_BITS = 44
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1


class Scanned(NamedTuple):
    """The records of a file in their order: whose each is, and where it begins; ``end`` is where the last one ends."""

    digests: Digests
    offsets: Numbers
    end: int


class Form(Protocol):
    """How a record lies in a file."""

    def scan(self, path: Path) -> Scanned:
        """The whole records of a file.

        Raises:
            OSError: The file cannot be read.
        """
        ...

    def read(self, file: int, offset: int) -> bytes:
        """The record that begins at a place of an open file, or what is there now.

        Raises:
            OSError: The file cannot be read.
        """
        ...

    def pack(self, digest: bytes, content: bytes) -> bytes:
        """A whole record."""
        ...

    def unpack(self, digest: bytes, record: bytes) -> bytes | None:
        """The content of a record; ``None`` if it is damaged or another one's."""
        ...


class SharedRecords:
    """The records of one folder: those of every file for reading, one file for appending.

    Args:
        path: The own file; made if absent. An unfinished last record (the mark of a killed process or a full disk) is
            cut off. Files beside it with the same suffix are those of the others.
        form: The layout of a record, the same for all files.

    Raises:
        UserError: Another process has the own file open, or it cannot be written.
    """

    def __init__(self, path: Path, form: Form) -> None:
        self._path = path
        self._form = form
        # A place is the number of a file, then the offset in it; the own file is the first.
        self._places = Places()
        self._files = [path]
        self._file = _open_alone(path)
        try:
            for other in sorted(set(path.parent.glob(f"*{path.suffix}")) - {path}):
                self._index_other(other)
            self._length = self._index_own()
        except BaseException:
            self.close()
            raise

    def get(self, digest: bytes) -> bytes | None:
        """The content of a record, ``None`` if there is none or it is damaged."""
        place = self._places.get(digest)
        if place is None or place == GONE:
            return None
        path, offset = self._files[place >> _OFFSET_BITS], place & _OFFSET_MASK
        content = self._form.unpack(digest, self._read(path, offset))
        if content is None:
            logger.warning("%s: dropped a damaged record (byte %d)", path, offset)
            self._places.set(digest, GONE)
        return content

    def append(self, digest: bytes, content: bytes) -> None:
        """Write one record; on return it has left this process.

        Raises:
            UserError: The disk is full; no part of the record stays.
        """
        record = self._form.pack(digest, content)
        with writing(self._path):
            try:
                rest = record
                while rest:
                    rest = rest[os.write(self._file, rest) :]
            except OSError:
                # Behind a torn record later ones would be unreadable.
                os.ftruncate(self._file, self._length)
                raise
        self._places.set(digest, self._length)
        self._length += len(record)

    def close(self) -> None:
        """Give the own file up; closing twice is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _index_other(self, path: Path) -> None:
        """Part of a record at the end is left alone: its owner may be writing it right now."""
        self._files.append(path)
        try:
            self._index(len(self._files) - 1)
        except OSError as error:
            logger.warning("%s: passed over (%s)", path, error.strerror)

    def _index_own(self) -> int:
        """Returns the length of the file, without an unfinished record at its end."""
        with writing(self._path):
            end = self._index(0)
            torn = os.fstat(self._file).st_size - end
            if torn:
                logger.warning("%s: cut off an unfinished last record (%d bytes)", self._path, torn)
                os.ftruncate(self._file, end)
        return end

    def _index(self, number: int) -> int:
        """Note the places of a file's records; a later one of the same digest is the one to trust."""
        found = self._form.scan(self._files[number])
        self._places.extend(found.digests, found.offsets | (number << _OFFSET_BITS))
        return found.end

    def _read(self, path: Path, offset: int) -> bytes:
        """One record as it is on disk now; the file may have been deleted since it was indexed."""
        try:
            with path.open("rb", buffering=0) as file:
                return self._form.read(file.fileno(), offset)
        except OSError:
            return b""


def _open_alone(path: Path) -> int:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise UserError(f"{path} is being written by another process; wait until it is done, or stop it") from error
    return handle

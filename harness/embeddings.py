"""Sentence embeddings by text, made once and then shared by all cells.

Below one folder each cell appends to a file of its own and reads those of the others. A record has a fixed size: the
SHA-256 of the text, its length in tokens, the vector, and a CRC over these. It is a cache: deleting it costs time and
changes nothing else.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np

from harness.encoder import Encoded, Encoder
from harness.errors import UserError
from harness.files import writing

logger = logging.getLogger(__name__)

_DIGEST = hashlib.sha256().digest_size
_TOKENS = struct.Struct("<I")
_CRC = struct.Struct("<I")
_HEAD = _DIGEST + _TOKENS.size


class Embeddings:
    """The embeddings of texts, from the cache or made in threads beside the event loop.

    Nothing is opened before the first text, so a cell that embeds nothing leaves no file.

    Args:
        encoder: Makes what the cache lacks.
        folder: The cache of this encoder; made if absent. Vectors of another one must never lie in it.
        name: Name of the file this process appends to; no two processes may share one.
    """

    def __init__(self, encoder: Encoder, folder: Path, name: str) -> None:
        self.encoder = encoder
        self._path = folder / f"{name}.bin"
        self._opened: _Records | None = None
        self._threads = ThreadPoolExecutor(max_workers=_processors(), thread_name_prefix="encode")
        self._in_flight: dict[bytes, asyncio.Task[Encoded]] = {}

    async def __aenter__(self) -> Embeddings:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def embed(self, text: str) -> Encoded:
        """The embedding of a text: a read-only vector of length 1, shape (dimension,), and how long the text is.

        Callers that ask for one text at the same time share the work. On return the record has left this process.

        Raises:
            UserError: The cache cannot be written, another process writes the same file, or the model is not there.
        """
        digest = _digest(text)
        known = self._records.get(digest)
        if known is None:
            # A caller that gives up must not take the work from the others.
            known = await asyncio.shield(self._in_flight.get(digest) or self._start(digest, text))
        return known

    async def close(self) -> None:
        """Drop the work that is not done and close the file; closing twice is harmless."""
        unfinished = list(self._in_flight.values())
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        self._threads.shutdown(wait=False)
        if self._opened is not None:
            self._opened.close()

    @property
    def _records(self) -> _Records:
        if self._opened is None:
            self._opened = _Records(self._path, self.encoder.dimension)
        return self._opened

    def _start(self, digest: bytes, text: str) -> asyncio.Task[Encoded]:
        task = asyncio.create_task(self._make(digest, text))
        self._in_flight[digest] = task
        task.add_done_callback(lambda done: self._finish(digest, done))
        return task

    async def _make(self, digest: bytes, text: str) -> Encoded:
        encoded = await asyncio.get_running_loop().run_in_executor(self._threads, self.encoder.encode, text)
        return self._records.append(digest, encoded)

    def _finish(self, digest: bytes, task: asyncio.Task[Encoded]) -> None:
        del self._in_flight[digest]
        if not task.cancelled():
            task.exception()  # marks it as seen: every caller may have given up


class _Place(NamedTuple):
    path: Path
    offset: int


class _Records:
    """The records of one folder: those of every file for reading, one file for appending.

    Args:
        path: The own file. An unfinished last record (the mark of a killed process or a full disk) is cut off.
        dimension: Length of a vector.

    Raises:
        UserError: Another process has the own file open, or it cannot be written.
    """

    def __init__(self, path: Path, dimension: int) -> None:
        self._path = path
        self._size = _HEAD + 4 * dimension + _CRC.size
        self._places: dict[bytes, _Place] = {}
        self._file = _open_alone(path)
        try:
            self._length = self._whole_length()
            others = sorted(set(path.parent.glob("*.bin")) - {path})
            for file in [*others, path]:
                self._index(file)
        except BaseException:
            os.close(self._file)
            raise

    def get(self, digest: bytes) -> Encoded | None:
        """What is known of a text, ``None`` if nothing is or its record is damaged."""
        place = self._places.get(digest)
        if place is None:
            return None
        record = _read(place, self._size)
        if record.startswith(digest) and record.endswith(_crc(record[: self._size - _CRC.size])):
            return _unpack(record)
        logger.warning("%s: dropped a damaged record (byte %d)", place.path, place.offset)
        del self._places[digest]
        return None

    def append(self, digest: bytes, encoded: Encoded) -> Encoded:
        """Write one record; what a later reader will get."""
        content = digest + _TOKENS.pack(encoded.tokens) + encoded.vector.astype("<f4").tobytes()
        record = content + _crc(content)
        with writing(self._path):
            try:
                rest = record
                while rest:
                    rest = rest[os.write(self._file, rest) :]
            except OSError:
                # Behind a torn record those of other texts would be unreadable.
                os.ftruncate(self._file, self._length)
                raise
        self._places[digest] = _Place(self._path, self._length)
        self._length += len(record)
        return _unpack(record)

    def close(self) -> None:
        """Give the own file up; closing twice is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _whole_length(self) -> int:
        length = os.fstat(self._file).st_size
        torn = length % self._size
        if torn:
            logger.warning("%s: cut off an unfinished last record (%d bytes)", self._path, torn)
            with writing(self._path):
                os.ftruncate(self._file, length - torn)
        return length - torn

    def _index(self, path: Path) -> None:
        """Note the places of a file's records; a later one of the same text is the one to trust.

        Part of a record at the end of another's file is left alone: its owner may be writing it right now.
        """
        try:
            count = path.stat().st_size // self._size
            if count == 0:
                return
            rows = np.memmap(path, dtype=np.uint8, mode="r", shape=(count, self._size))
        except OSError as error:
            logger.warning("%s: passed over (%s)", path, error.strerror)
            return
        digests = rows[:, :_DIGEST].tobytes()
        for row in range(count):
            self._places[digests[row * _DIGEST : (row + 1) * _DIGEST]] = _Place(path, row * self._size)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _crc(content: bytes) -> bytes:
    return _CRC.pack(zlib.crc32(content))


def _unpack(record: bytes) -> Encoded:
    (tokens,) = _TOKENS.unpack_from(record, _DIGEST)
    return Encoded(np.frombuffer(record[_HEAD : -_CRC.size], dtype="<f4"), tokens)


def _read(place: _Place, size: int) -> bytes:
    """One record as it is on disk now; the file may have been deleted since it was indexed."""
    try:
        with place.path.open("rb", buffering=0) as file:
            return os.pread(file.fileno(), size, place.offset)
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


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

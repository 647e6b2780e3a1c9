"""Sentence embeddings by text, made once and then shared by all cells.

Below one folder each cell appends to a file of its own and reads those of the others. A record has a fixed size: the
SHA-256 of the text, its length in tokens, the vector, and a CRC over these. It is a cache: deleting it costs time and
changes nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

import numpy as np

from harness.concurrency import InFlight
from harness.errors import UserError
from harness.llm.encoder import Encoded, Encoder
from harness.shared_records import Scanned, SharedRecords

_DIGEST = hashlib.sha256().digest_size
_TOKENS = struct.Struct("<I")
_CRC = struct.Struct("<I")


class Embeddings:
    """The embeddings of texts, from the cache or made in threads beside the event loop.

    Nothing is opened before the first text, so a cell that embeds nothing leaves no file.

    Args:
        encoder: Makes what the cache lacks.
        folder: The cache of this encoder; made if absent. Vectors of another one must never lie in it.
        name: Name of the file this process appends to; no two processes may share one.

    Attributes:
        encoder: The same.
        seen: SHA-256 of every text that was asked for; may be emptied.
    """

    def __init__(self, encoder: Encoder, folder: Path, name: str) -> None:
        self.encoder = encoder
        self.seen: set[bytes] = set()
        self._path = folder / f"{name}.bin"
        self._opened: SharedRecords | None = None
        self._threads = ThreadPoolExecutor(max_workers=_processors(), thread_name_prefix="encode")
        self._in_flight: InFlight[Encoded] = InFlight()

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
        self.seen.add(digest)
        known = self._records.get(digest)
        if known is None:
            return await self._in_flight.share(digest, lambda: self._make(digest, text))
        return _unpack(known)

    async def close(self) -> None:
        """Drop the work that is not done and close the file; closing twice is harmless."""
        await self._in_flight.close()
        self._threads.shutdown(wait=False)
        if self._opened is not None:
            self._opened.close()

    @property
    def _records(self) -> SharedRecords:
        if self._opened is None:
            self._opened = SharedRecords(self._path, _FixedSize(_TOKENS.size + 4 * self.encoder.dimension))
        return self._opened

    async def _make(self, digest: bytes, text: str) -> Encoded:
        encoded = await asyncio.get_running_loop().run_in_executor(self._threads, self.encoder.encode, text)
        content = _TOKENS.pack(encoded.tokens) + encoded.vector.astype("<f4").tobytes()
        self._records.append(digest, content)
        return _unpack(content)


def records(folder: Path, texts: Iterable[str], dimension: int) -> Iterator[bytes]:
    """The records of some texts from a cache, which written one after the other are a file of such a cache.

    Args:
        folder: The cache of one encoder.
        texts: Their SHA-256 in hexadecimal.
        dimension: Length of a vector.

    Raises:
        UserError: The cache lacks one of them.
    """
    form = _FixedSize(_TOKENS.size + 4 * dimension)
    own = folder / ".reading.bin"
    cache = SharedRecords(own, form)
    try:
        for text in texts:
            digest = bytes.fromhex(text)
            content = cache.get(digest)
            if content is None:
                raise UserError(f"{folder} lacks the embedding of a text (SHA-256 {text}) that a cell looked at")
            yield form.pack(digest, content)
    finally:
        cache.close()
        own.unlink(missing_ok=True)


class _FixedSize:
    """Digest, content and CRC one after the other.

    Args:
        content: Bytes between digest and CRC.
    """

    def __init__(self, content: int) -> None:
        self._size = _DIGEST + content + _CRC.size

    def scan(self, path: Path) -> Scanned:
        count = path.stat().st_size // self._size
        rows = np.memmap(path, np.uint8, "r", shape=(count, self._size)) if count else np.empty((0, self._size), "u1")
        digests = np.frombuffer(rows[:, :_DIGEST].tobytes(), f"S{_DIGEST}")
        return Scanned(digests, np.arange(count) * self._size, count * self._size)

    def read(self, file: int, offset: int) -> bytes:
        return os.pread(file, self._size, offset)

    def pack(self, digest: bytes, content: bytes) -> bytes:
        return digest + content + _crc(digest + content)

    def unpack(self, digest: bytes, record: bytes) -> bytes | None:
        if record.startswith(digest) and record.endswith(_crc(record[: -_CRC.size])):
            return record[_DIGEST : -_CRC.size]
        return None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _crc(content: bytes) -> bytes:
    return _CRC.pack(zlib.crc32(content))


def _unpack(content: bytes) -> Encoded:
    (tokens,) = _TOKENS.unpack_from(content)
    return Encoded(np.frombuffer(content[_TOKENS.size :], dtype="<f4"), tokens)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

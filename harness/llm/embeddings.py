"""Embeddings of texts: looked up in recordings, in the cell's own file and in the machine's cache, else computed."""

import asyncio
import functools
import hashlib
import struct
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import numpy as np

from harness.concurrency import InFlight, processors
from harness.database import Cache, connect
from harness.llm.encoder import EMBEDDING, Encoded, SentenceEncoder

_TOKENS = struct.Struct("<I")
# Size of a stored embedding: tokens of the text, vector.
VECTOR_BYTES = _TOKENS.size + 4 * EMBEDDING


class Embeddings(AbstractAsyncContextManager["Embeddings"]):
    """Embeddings of texts, looked up in recordings, the cell's own file and the machine's cache, else computed.

    The cell's file is keyed by weights and text alone, so that a cell resumed or replayed on another CPU or with other
    library versions gets the same vectors and makes the same calls.
    """

    def __init__(
        self,
        encoder: SentenceEncoder,
        cache: Cache,
        recorded: Cache | None = None,
        others: Callable[[bytes], bytes | None] = lambda key: None,  # look-up in recordings
    ) -> None:
        self.encoder = encoder
        self._cache, self._recorded, self._others = cache, recorded, others
        self._threads = ThreadPoolExecutor(max_workers=processors(), thread_name_prefix="encode")
        self._in_flight: InFlight[Encoded] = InFlight()

    async def embed(self, text: str) -> Encoded:
        """Embed a text. The vector is read-only. Concurrent callers share one computation."""
        key = hashlib.sha256(f"{self.encoder.weights}\0{text}".encode()).digest()
        stored = self._others(key)
        if stored is None and self._recorded is not None:
            stored = self._recorded.get("embeddings", key)
        if stored is None:
            work = functools.partial(
                asyncio.get_running_loop().run_in_executor, self._threads, self._compute, key, text
            )
            return await self._in_flight.run_once(key, work)
        return _unpack(stored)

    async def __aexit__(self, *_: object) -> None:
        await self._in_flight.close()
        self._threads.shutdown(cancel_futures=True)

    def _compute(self, key: bytes, text: str) -> Encoded:
        cached = hashlib.sha256(f"{self.encoder.identity}\0{text}".encode()).digest()
        if (content := self._cache.get("embeddings", cached)) is None:
            encoded = self.encoder.encode(text)
            content = _TOKENS.pack(encoded.tokens) + encoded.vector.astype("<f4").tobytes()
            self._cache.put("embeddings", cached, content)
        if self._recorded is not None:
            self._recorded.put("embeddings", key, content)
        return _unpack(content)


def _unpack(content: bytes) -> Encoded:
    (tokens,) = _TOKENS.unpack_from(content)
    return Encoded(np.frombuffer(content[_TOKENS.size :], dtype="<f4"), tokens)


def merge_vectors(recorded: Iterable[Path], to: Path) -> int:
    """Merge the vector files of several cells into one, sorted by key, without duplicates. Return their number."""
    with closing(connect(to, writes=True)) as database:
        database.execute("CREATE TEMP TABLE found (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
        for path in recorded:
            with closing(connect(path, writes=False)) as cell:
                rows = cell.execute("SELECT key, value FROM embeddings")
                database.executemany("INSERT OR IGNORE INTO found VALUES (?, ?)", rows)
        database.execute("CREATE TABLE embeddings (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
        return database.execute("INSERT INTO embeddings SELECT key, value FROM found ORDER BY key").rowcount

"""Embeddings of texts: looked up in recordings, in the cell's own file and in the machine's cache, else computed."""

import asyncio
import hashlib
import logging
import struct
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

import numpy as np

from harness.concurrency import InFlight, processors
from harness.database import Cache, connect
from harness.errors import UserError
from harness.llm.encoder import EMBEDDING, Encoded, SentenceEncoder

logger = logging.getLogger(__name__)

_TOKENS = struct.Struct("<I")
_SHOWN = 60  # characters of a text in a message
# Size of a stored embedding: tokens of the text, vector.
VECTOR_BYTES = _TOKENS.size + 4 * EMBEDDING
# Maximum distance of a recorded vector from the encoder's: a cosine of 0.9999995. Other processors change the sixth
# digit. A cosine of 0.999 would leave room for a coordinate that tells the right model.
_NEAR = 1e-3


@dataclass
class VectorCheck:
    """How many recorded vectors in use are computed again, and what came out. Cells of a replay share one."""

    most: float = 64  # sample of a cell; inf: all
    used: int = 0
    passed: set[bytes] = field(default_factory=set)  # keys
    problem: str = ""  # why none could be computed

    def __str__(self) -> str:
        if self.problem:
            return f"vectors not checked: {self.problem}"
        return f"{len(self.passed)} of {self.used} recorded vectors are the encoder's"


class Embeddings(AbstractAsyncContextManager["Embeddings"]):
    """Embeddings of texts, from the first place that has them.

    The cell's file is keyed by weights and text alone, so that a cell resumed or replayed on another CPU or with other
    library versions gets the same vectors and makes the same calls.
    """

    def __init__(
        self,
        encoder: SentenceEncoder,
        cache: Cache,
        recorded: Cache | None = None,
        others: Callable[[bytes], bytes | None] = lambda key: None,  # look-up in recordings
        check: VectorCheck | None = None,
        keeps: bool = False,  # also writes vectors from recordings to the cell's file, which is then whole
    ) -> None:
        self.encoder, self.check, self._keeps = encoder, check or VectorCheck(), keeps
        self._cache, self._recorded, self._others = cache, recorded, others
        self._used: dict[bytes, tuple[str, bytes]] = {}  # texts and recorded vectors
        self._threads = ThreadPoolExecutor(max_workers=processors(), thread_name_prefix="encode")
        self._in_flight: InFlight[Encoded] = InFlight()

    async def embed(self, text: str) -> Encoded:
        """Embed a text. The vector is read-only. Concurrent callers share one computation."""
        key = hashlib.sha256(f"{self.encoder.weights}\0{text}".encode()).digest()
        if (stored := self._others(key)) is not None:
            self._used[key] = text, stored
            if self._keeps and self._recorded is not None:
                self._recorded.put("embeddings", key, stored)
        elif self._recorded is not None:
            stored = self._recorded.get("embeddings", key)
        if stored is None:
            executor, loop = self._threads, asyncio.get_running_loop()
            return await self._in_flight.run_once(key, lambda: loop.run_in_executor(executor, self._compute, key, text))
        return _unpack(stored)

    async def check_recorded(self) -> None:
        """Compute a random sample of the recorded vectors again. Raises UserError if one is not the encoder's."""
        unchecked = [key for key in self._used if key not in self.check.passed]
        if not unchecked or self.check.problem:
            return
        self.check.used += len(unchecked)
        # Nobody can foresee it.
        sample = SystemRandom().sample(unchecked, int(min(self.check.most, len(unchecked))))
        loop = asyncio.get_running_loop()
        work = [loop.run_in_executor(self._threads, self.encoder.encode, self._used[key][0]) for key in sample]
        try:
            encoded = await asyncio.gather(*work)
        except UserError as error:
            self.check.problem = str(error)
            logger.warning("%s", self.check)
            return
        for key, computed in zip(sample, encoded, strict=True):
            text, recorded = self._used[key][0], _unpack(self._used[key][1])
            distance = float(np.linalg.norm(recorded.vector - computed.vector))
            if not distance <= _NEAR or recorded.tokens != computed.tokens:
                start = " ".join(text.split())[:_SHOWN]
                raise UserError(
                    f"the recorded vector of {start!r} is not the encoder's (distance {distance:.3g}), so it may tell "
                    "more than the text",
                    "use another recording, or delete the vectors.sqlite of a folder of your own, which are made again",
                )
            self.check.passed.add(key)
        logger.info("%s", self.check)

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

"""Sentence embeddings by text, made once and then shared by all cells of a machine."""

from __future__ import annotations

import asyncio
import hashlib
import os
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from harness.concurrency import InFlight
from harness.llm.database import Cache
from harness.llm.encoder import Encoded, SentenceEncoder

_TOKENS = struct.Struct("<I")


class Embeddings:
    """The embeddings of texts, from the cache of this machine or computed in threads."""

    def __init__(self, encoder: SentenceEncoder, cache: Cache) -> None:
        self.encoder = encoder
        self._cache = cache
        self._threads = ThreadPoolExecutor(max_workers=_processors(), thread_name_prefix="encode")
        self._in_flight: InFlight[Encoded] = InFlight()

    async def __aenter__(self) -> Embeddings:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def embed(self, text: str) -> Encoded:
        """The embedding of a text, read-only; callers that ask for one text at the same time share the work."""
        key = hashlib.sha256(f"{self.encoder.identity}\0{text}".encode()).digest()
        known = self._cache.get("embeddings", key)
        if known is None:
            return await self._in_flight.share(key, lambda: self._in_thread(key, text))
        return _unpack(known)

    async def close(self) -> None:
        """Drop the work that is not done; closing twice is harmless."""
        await self._in_flight.close()
        self._threads.shutdown(wait=False)

    async def _in_thread(self, key: bytes, text: str) -> Encoded:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._make, key, text)

    def _make(self, key: bytes, text: str) -> Encoded:
        encoded = self.encoder.encode(text)
        content = _TOKENS.pack(encoded.tokens) + encoded.vector.astype("<f4").tobytes()
        self._cache.put("embeddings", key, content)
        return _unpack(content)


def _unpack(content: bytes) -> Encoded:
    (tokens,) = _TOKENS.unpack_from(content)
    return Encoded(np.frombuffer(content[_TOKENS.size :], dtype="<f4"), tokens)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

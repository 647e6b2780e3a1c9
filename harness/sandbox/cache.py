"""Verdicts that are found once: outcomes of programs and equality of answers, kept for all cells of a machine.

At ``full`` programs cannot reach the file. At ``rlimit`` they can read it, and where the suite is no root, so that they
are the same user, write it like every other result: this level is for programs that are faulty, not for hostile ones.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import hashlib
from collections.abc import Callable, Coroutine
from typing import Any, Literal, Protocol

import orjson

from harness.concurrency import InFlight


class Cache(Protocol):
    """The cache of this machine, for verdicts."""

    def get(self, table: Literal["verdicts"], key: bytes) -> bytes | None:
        """Return what is stored under a key, or None."""

    def put(self, table: Literal["verdicts"], key: bytes, value: bytes) -> None:
        """Store bytes under a key; called from other threads too."""


class Reach(enum.Enum):
    """Whom a verdict holds for: the one who asked, this process, or all cells of the machine."""

    ASKER, PROCESS, MACHINE = range(3)


class Verdicts:
    """JSON values by question and ground; without a cache, only this process shares them.

    The ground is all that decides besides the question. The cache is closed by its opener.
    """

    def __init__(self, cache: Cache | None, ground: Callable[[], tuple[str, ...]]) -> None:
        self._cache = cache
        self._ground = functools.cache(ground)
        self._in_this_process: dict[bytes, Any] = {}
        self._in_flight: InFlight[Any] = InFlight()

    async def of(self, question: tuple[str, ...], find: Callable[[], Coroutine[Any, Any, tuple[Any, Reach]]]) -> Any:
        """Return the verdict, as remembered or found now; raises UserError where the cache is broken.

        Callers that ask the same at the same time share the finding.
        """
        # Quotes are escaped in it, so no two questions share a text.
        key = hashlib.sha256(repr((question, self._ground())).encode()).digest()
        if key in self._in_this_process:
            return self._in_this_process[key]
        if self._cache is not None and (stored := self._cache.get("verdicts", key)):
            return orjson.loads(stored)
        return await self._in_flight.share(key, lambda: self._found(key, find))

    async def close(self) -> None:
        """Drop what is being found out."""
        await self._in_flight.close()

    async def _found(self, key: bytes, find: Callable[[], Coroutine[Any, Any, tuple[Any, Reach]]]) -> Any:
        verdict, reach = await find()
        if reach is Reach.MACHINE and self._cache is not None:
            await asyncio.to_thread(self._cache.put, "verdicts", key, orjson.dumps(verdict))
        elif reach is not Reach.ASKER:
            self._in_this_process[key] = verdict
        return verdict

"""Verdicts that are found once: outcomes of programs and equality of answers, kept for all cells of a machine.

At ``full`` programs cannot scope the file. At ``rlimit`` they can read it, and where the suite is no root, so that they
are the same user, write it like every other result: this level is for programs that are faulty, not for hostile ones.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import hashlib
from collections.abc import Callable, Coroutine
from typing import Any

import orjson

from harness.concurrency import InFlight
from harness.database import Cache


class Scope(enum.Enum):
    """Where a verdict may be reused: nowhere, in this process, or by all cells of the machine."""

    NONE, PROCESS, MACHINE = range(3)


class Verdicts:
    """JSON values by question and ground, all that decides besides; without a cache only this process shares them."""

    def __init__(self, cache: Cache | None, ground: Callable[[], tuple[str, ...]]) -> None:
        self._cache = cache
        self._ground = functools.cache(ground)
        self._in_this_process: dict[bytes, Any] = {}
        self._in_flight: InFlight[Any] = InFlight()

    async def of(self, question: tuple[str, ...], find: Callable[[], Coroutine[Any, Any, tuple[Any, Scope]]]) -> Any:
        """Return the verdict, remembered or found now, once for all who ask; UserError where the cache is broken."""
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

    async def _found(self, key: bytes, find: Callable[[], Coroutine[Any, Any, tuple[Any, Scope]]]) -> Any:
        verdict, scope = await find()
        if scope is Scope.MACHINE and self._cache is not None:
            await asyncio.to_thread(self._cache.put, "verdicts", key, orjson.dumps(verdict))
        elif scope is not Scope.NONE:
            self._in_this_process[key] = verdict
        return verdict

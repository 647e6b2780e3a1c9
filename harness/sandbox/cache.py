"""Cache of verdicts for all cells of a machine: executions of programs, and equality of mathematical answers.

At level ``full`` programs cannot reach the file. At ``rlimit`` they can read it and, unless the suite runs as root,
write it, as every other result: this level is for faulty programs, not for hostile ones.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Callable, Coroutine
from typing import Any

import orjson

from harness.concurrency import InFlight
from harness.database import Cache


class VerdictCache:
    """Verdicts as JSON values, keyed by input and execution environment; without a file, for this process only."""

    def __init__(self, cache: Cache | None, environment: Callable[[], tuple[str, ...]]) -> None:
        self._cache = cache
        self._environment = functools.cache(environment)
        self._in_this_process: dict[bytes, Any] = {}
        self._in_flight: InFlight[Any] = InFlight()

    async def get(self, key: tuple[str, ...], decide: Callable[[], Coroutine[Any, Any, tuple[Any, bool]]]) -> Any:
        """Return the cached verdict or decide it, once for all callers that wait; UserError if the file is broken.

        ``decide`` returns the verdict, and whether other cells may use it.
        """
        # ``repr`` escapes quotes, so no two keys have the same text.
        digest = hashlib.sha256(repr((key, self._environment())).encode()).digest()
        if digest in self._in_this_process:
            return self._in_this_process[digest]
        if self._cache is not None and (stored := self._cache.get("verdicts", digest)):
            return orjson.loads(stored)

        async def decide_and_store() -> Any:
            verdict, is_shared = await decide()
            if is_shared and self._cache is not None:
                await asyncio.to_thread(self._cache.put, "verdicts", digest, orjson.dumps(verdict))
            else:
                self._in_this_process[digest] = verdict
            return verdict

        return await self._in_flight.run_once(digest, decide_and_store)

    async def close(self) -> None:
        """Cancel pending decisions."""
        await self._in_flight.close()

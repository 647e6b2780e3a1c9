"""Symbolic equality of mathematical answers, decided by Math-Verify in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Self

from harness.database import Cache
from harness.errors import UserError
from harness.files import ROOT
from harness.fingerprint import fingerprint
from harness.sandbox.cache import VerdictCache
from harness.sandbox.process import Child

WORKER = (sys.executable, "-m", "harness.benchmarks.math_worker")
# More than the worker's own limit for one pair; importing its libraries takes seconds on a cold disk.
REPLY_LIMIT_S = 180.0
LONGEST_ANSWER = 1000
INHERITED = ("HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH")

_LIBRARIES = ("math-verify", "latex2sympy2_extended", "sympy", "antlr4-python3-runtime")

logger = logging.getLogger(__name__)


class MathVerifier:
    """Client of a worker process that decides one pair at a time; started when needed, replaced if it ends."""

    def __init__(
        self, worker: Sequence[str] = WORKER, reply_limit_s: float = REPLY_LIMIT_S, cache: Cache | None = None
    ) -> None:
        self._command = worker
        self._reply_limit_s = reply_limit_s
        self._lock = asyncio.Lock()
        self._worker: Child | None = None
        self._verdicts = VerdictCache(cache, _environment)

    async def equal(self, gold: str, answer: str) -> bool | None:
        """Return whether the answer equals the gold one, None if it is too long or too costly to decide."""
        if len(answer) > LONGEST_ANSWER:
            return None
        verdict: bool | None = await self._verdicts.get((gold, answer), lambda: self._decide(gold, answer))
        return verdict

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._verdicts.close()
        self._end()

    async def _decide(self, gold: str, answer: str) -> tuple[bool | None, bool]:
        async with self._lock:
            reply = b""
            try:
                worker = self._worker or await self._start()
                with contextlib.suppress(OSError):
                    reply = await worker.ask(json.dumps([gold, answer]).encode(), self._reply_limit_s)
            finally:
                # A late reply must never be read as the reply to the next pair.
                if not reply:
                    self._end()
        if not reply:
            logger.warning("the Math-Verify worker gave no verdict on %.80r and was replaced", answer)
        verdict: bool | None = json.loads(reply or b"null")
        # Another machine may decide a pair that this one did not.
        return verdict, verdict is not None

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker:
            worker.process.kill()
            worker.close()

    async def _start(self) -> Child:
        # No key or token reaches it; with a fixed hash seed, sets of symbols are always in the same order.
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        try:
            self._worker = Child(self._command, {**inherited, "PYTHONHASHSEED": "0"}, ROOT)
            if await self._worker.ask(b'["1", "1"]', REPLY_LIMIT_S):
                return self._worker
            reason = self._worker.last_error_line()
        except OSError as error:
            reason = str(error) or "it kept silent"
        raise UserError(f"the Math-Verify worker did not start ({reason}); is math-verify installed?")


def _environment() -> tuple[str, ...]:
    code = fingerprint([ROOT / "harness" / "benchmarks" / "math_worker.py"])
    return "math-verify", code, sys.version, *map(version, _LIBRARIES)

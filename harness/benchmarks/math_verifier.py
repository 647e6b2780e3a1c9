"""Symbolic equality of mathematical answers, decided by Math-Verify in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from types import TracebackType
from typing import Self

from harness.errors import UserError
from harness.files import ROOT, fingerprint
from harness.sandbox.cache import Cache, Reach, Verdicts
from harness.sandbox.process import Child

WORKER = (sys.executable, "-m", "harness.benchmarks.math_worker")
# Above that of the worker for one pair; the imports of its start take seconds on a cold disk.
REPLY_LIMIT_S = 180.0
LONGEST_ANSWER = 1000
# On an idle core a pair takes 25 ms and a worker 1.7 s to start, so another one is worth it where so many pairs, five
# seconds' work, wait for each.
MOST_WORKERS = 4
WORTH_ANOTHER = 200
INHERITED = ("HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH")

_LIBRARIES = ("math-verify", "latex2sympy2_extended", "sympy", "antlr4-python3-runtime")

logger = logging.getLogger(__name__)


class MathVerifier:
    """Asks worker processes, started when they are first needed, each about one pair at a time.

    Processor time decides inside a worker (:mod:`harness.benchmarks.math_worker`), so a busy machine does not change
    a verdict, and neither does the company: every pair is decided in a child of its own. The limit here is far above it
    and starts when the pair reaches the worker, not while it queues; no text of a model can make a worker pass it. One
    that does, or dies, is replaced. A verdict is remembered, and all cells that share a cache share it; that there is
    none is remembered by this process alone, since another machine may decide the pair.
    """

    def __init__(
        self,
        worker: Sequence[str] = WORKER,
        reply_limit_s: float = REPLY_LIMIT_S,
        workers: int = MOST_WORKERS,
        cache: Cache | None = None,
    ) -> None:
        self._command = worker
        self._reply_limit_s = reply_limit_s
        self._most = workers
        # The last one to finish comes first, so that as few as keep up are busy; None for one that is to be started.
        self._idle: asyncio.LifoQueue[Child | None] = asyncio.LifoQueue()
        self._workers = self._waiting = 0
        self._verdicts = Verdicts(cache, _ground)

    async def equal(self, gold: str, answer: str) -> bool | None:
        """Whether the answer equals the gold one.

        ``None`` where that is not decided: the answer is longer than any value, its parser fails on it, or the limits
        of time and memory pass. That is not the same as unequal, and counts as no verdict.
        """
        if len(answer) > LONGEST_ANSWER:
            return None
        verdict: bool | None = await self._verdicts.of((gold, answer), lambda: self._decided(gold, answer))
        return verdict

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._verdicts.close()
        while not self._idle.empty():
            if worker := self._idle.get_nowait():
                worker.close()
        self._workers = 0

    async def _decided(self, gold: str, answer: str) -> tuple[bool | None, Reach]:
        worker, reply = await self._next_worker(), b""
        try:
            worker = worker or await self._started()
            with contextlib.suppress(OSError):
                reply = await worker.ask(json.dumps([gold, answer]).encode(), self._reply_limit_s)
        finally:
            # The reply to an abandoned question must never be read as the answer to the next one.
            if worker and not reply:
                worker.process.kill()
                worker.close()
            self._idle.put_nowait(worker if reply else None)
        if not reply:
            logger.warning("the Math-Verify worker gave no verdict on %.80r and was replaced", answer)
            return None, Reach.PROCESS
        verdict: bool | None = json.loads(reply)
        return verdict, Reach.PROCESS if verdict is None else Reach.MACHINE

    async def _next_worker(self) -> Child | None:
        """The next idle one, or the place of a new one where many pairs wait."""
        if not self._workers or (self._workers < self._most and self._waiting >= WORTH_ANOTHER * self._workers):
            self._workers += 1
            self._idle.put_nowait(None)
        self._waiting += 1
        try:
            return await self._idle.get()
        finally:
            self._waiting -= 1

    async def _started(self) -> Child:
        with contextlib.ExitStack() as undo:
            try:
                worker = Child(self._command, _environment(), ROOT)
                undo.callback(worker.close)
                undo.callback(worker.process.kill)
                if await worker.ask(b'["1", "1"]', REPLY_LIMIT_S):
                    undo.pop_all()
                    return worker
                reason = worker.last_words()
            except OSError as error:
                reason = str(error) or "it kept silent"
        raise UserError(f"the Math-Verify worker did not start ({reason}); is math-verify installed?")


def _ground() -> tuple[str, ...]:
    """All that decides besides the pair."""
    code = fingerprint([ROOT / "harness" / "benchmarks" / "math_worker.py"])
    return "math-verify", code, sys.version, *map(version, _LIBRARIES)


def _environment() -> dict[str, str]:
    """No key or token of ours reaches the worker, and sets of symbols are always walked in the same order."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, "PYTHONHASHSEED": "0"}

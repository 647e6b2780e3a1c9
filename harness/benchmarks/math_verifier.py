"""Symbolic equality of mathematical answers, decided by Math-Verify in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
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
from harness.sandbox.cache import Cache

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
    that does, or dies, is replaced. A verdict is remembered, and all cells of a machine share it; that there is none is
    remembered by this process alone, since another machine may decide the pair.

    Args:
        worker: Command line of the worker.
        reply_limit_s: Seconds after which a worker that does not reply is killed.
        workers: How many there are at most.
        cache: Of this machine, closed by its opener; without one nothing is shared.
    """

    def __init__(
        self,
        worker: Sequence[str] = WORKER,
        reply_limit_s: float = REPLY_LIMIT_S,
        workers: int = MOST_WORKERS,
        cache: Cache | None = None,
    ) -> None:
        self._cache = cache
        self._command = worker
        self._reply_limit_s = reply_limit_s
        self._most = workers
        self._workers: list[_Worker] = []
        # The last one to finish comes first, so that as few as keep up are busy.
        self._idle: asyncio.LifoQueue[_Worker] = asyncio.LifoQueue()
        self._waiting = 0
        self._known: dict[tuple[str, str], bool | None] = {}

    async def equal(self, gold: str, answer: str) -> bool | None:
        """Whether the answer equals the gold one.

        ``None`` where that is not decided: the answer is longer than any value, its parser fails on it, or the limits
        of time and memory pass. That is not the same as unequal, and counts as no verdict.
        """
        if len(answer) > LONGEST_ANSWER:
            return None
        pair = (gold, answer)
        if pair not in self._known and (stored := self._stored(pair)) is not None:
            self._known[pair] = stored
        if pair not in self._known:
            worker = await self._worker()
            try:
                # Somebody else may have asked meanwhile.
                if pair not in self._known:
                    self._known[pair] = await worker.ask(gold, answer)
                    await self._store(pair)
            finally:
                self._idle.put_nowait(worker)
        return self._known[pair]

    async def close(self) -> None:
        """End the workers; a later question starts new ones."""
        for worker in self._workers:
            await worker.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _stored(self, pair: tuple[str, str]) -> bool | None:
        content = None if self._cache is None else self._cache.get("verdicts", self._key(pair))
        return None if content is None else bool(json.loads(content))

    async def _store(self, pair: tuple[str, str]) -> None:
        verdict = self._known[pair]
        if self._cache is not None and verdict is not None:
            await asyncio.to_thread(self._cache.put, "verdicts", self._key(pair), json.dumps(verdict).encode())

    def _key(self, pair: tuple[str, str]) -> bytes:
        return hashlib.sha256(json.dumps([*self._ground, *pair]).encode()).digest()

    @functools.cached_property
    def _ground(self) -> tuple[str, ...]:
        """All that decides besides the pair."""
        code = fingerprint([ROOT / "harness" / "benchmarks" / "math_worker.py"])
        return "math-verify", code, sys.version, *map(version, _LIBRARIES)

    async def _worker(self) -> _Worker:
        """The next idle one, or a new one where many pairs wait."""
        count = len(self._workers)
        if not count or (count < self._most and self._waiting >= WORTH_ANOTHER * count):
            self._workers.append(_Worker(self._command, self._reply_limit_s))
            self._idle.put_nowait(self._workers[-1])
        self._waiting += 1
        try:
            return await self._idle.get()
        finally:
            self._waiting -= 1


class _Worker:
    """One worker process, asked about one pair after the other; it starts with the first."""

    def __init__(self, command: Sequence[str], reply_limit_s: float) -> None:
        self._command = command
        self._reply_limit_s = reply_limit_s
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, gold: str, answer: str) -> bool | None:
        try:
            process = await self._started()
            reply = await _exchange(process, {"gold": gold, "answer": answer}, self._reply_limit_s)
        except (TimeoutError, OSError):
            reply = b""
        except BaseException:
            # The reply of an abandoned question must never be read as the answer to the next one.
            await self.close()
            raise
        if not reply:
            logger.warning("the Math-Verify worker gave no verdict on %.80r and was replaced", answer)
            await self.close()
            return None
        verdict: bool | None = json.loads(reply)["equal"]
        return verdict

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _started(self) -> asyncio.subprocess.Process:
        process = self._process
        if process is None or process.returncode is not None:
            try:
                process = self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    cwd=ROOT,
                    env=_environment(),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                )
                ready = await _exchange(process, {"gold": "1", "answer": "1"}, REPLY_LIMIT_S)
            except (TimeoutError, OSError) as error:
                raise _silent(self._command) from error
            if not ready:
                raise _silent(self._command)
        return process


def _silent(command: Sequence[str]) -> UserError:
    return UserError(
        f"the Math-Verify worker did not reply at its start; run `{' '.join(command)}` in {ROOT} to see why (is "
        "math-verify installed?)"
    )


async def _exchange(process: asyncio.subprocess.Process, request: dict[str, str], limit_s: float) -> bytes:
    """Send one request and wait for its reply; nothing is returned where the worker ended before all of it."""
    if process.stdin is None or process.stdout is None:
        raise OSError("the worker has no pipes")
    process.stdin.write(json.dumps(request).encode() + b"\n")
    await process.stdin.drain()
    line = await asyncio.wait_for(process.stdout.readline(), limit_s)
    return line if line.endswith(b"\n") else b""


def _environment() -> dict[str, str]:
    """No key or token of ours reaches the worker, and sets of symbols are always walked in the same order."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**inherited, "PYTHONHASHSEED": "0"}

"""Symbolic equality of mathematical answers, decided by Math-Verify in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from harness.errors import UserError
from harness.files import ROOT

WORKER = (sys.executable, "-m", "harness.benchmarks.math_worker")
# Above that of the worker for one pair; the imports of its start take seconds on a cold disk.
REPLY_LIMIT_S = 180.0
LONGEST_ANSWER = 1000
INHERITED = ("HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH")

logger = logging.getLogger(__name__)


class MathVerifier:
    """Asks one worker process, started when the first pair comes, about one pair at a time.

    Processor time decides inside the worker (:mod:`harness.benchmarks.math_worker`), so a busy machine does not change
    a verdict. The limit here is far above it and starts when the pair reaches the worker, not while it queues; no text
    of a model can make a worker pass it. One that does, or dies, is replaced. Every pair is asked once.

    Args:
        worker: Command line of the worker.
        reply_limit_s: Seconds after which a worker that does not reply is killed.
    """

    def __init__(self, worker: Sequence[str] = WORKER, reply_limit_s: float = REPLY_LIMIT_S) -> None:
        self._command = worker
        self._reply_limit_s = reply_limit_s
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._known: dict[tuple[str, str], bool | None] = {}

    async def equal(self, gold: str, answer: str) -> bool | None:
        """Whether the answer equals the gold one.

        ``None`` where that is not decided: the answer is longer than any value, its parser fails on it, or the limits
        of time and memory pass. That is not the same as unequal, and counts as no verdict.
        """
        if len(answer) > LONGEST_ANSWER:
            return None
        pair = (gold, answer)
        async with self._lock:
            if pair not in self._known:
                self._known[pair] = await self._ask(gold, answer)
        return self._known[pair]

    async def close(self) -> None:
        """End the worker; a later question starts a new one."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(self, gold: str, answer: str) -> bool | None:
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

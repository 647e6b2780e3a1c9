"""A cache of sandbox outcomes, shared by all cells of a machine.

At ``full`` programs cannot reach the file. At ``rlimit`` they can read it, and where the suite is no root, so that they
are the same user, write it like every other result: this level is for programs that are faulty, not for hostile ones.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import re
import sys
import sysconfig
from dataclasses import astuple, replace
from types import TracebackType
from typing import Literal, Protocol

import orjson

from harness.concurrency import InFlight
from harness.files import ROOT, fingerprint
from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.pool import Sandbox

# Enough for what a tool reads, which is printed last; grading reads no output.
_KEPT_OUTPUT = 1000
# Another machine, or this one on another day, may end the same program otherwise. A limit of memory is among them: with
# more processors, more of it is set aside for threads. A limit of output is not: the program's own bytes are counted.
MACHINES_OWN = frozenset(
    {Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.MEMORY_LIMIT, Outcome.KILLED, Outcome.SANDBOX_ERROR}
)
# How chance, the clock and the machine get into a program; a word too many costs no more than executing again.
_DOORS = (
    "random secrets uuid time timeit datetime tempfile os io pathlib glob shutil platform socket http urllib resource "
    "signal gc threading _thread concurrent asyncio multiprocessing subprocess "
    "gzip zipfile tarfile email ssl statistics logging importlib __import__"
)
_OPEN_DOOR = re.compile(rf"\b(?:{'|'.join(_DOORS.split())})\b|\b(?:id|open)\(")


class Cache(Protocol):
    """The cache of this machine, for verdicts."""

    def get(self, table: Literal["verdicts"], key: bytes) -> bytes | None:
        """Return what is stored under a key, or None."""

    def put(self, table: Literal["verdicts"], key: bytes, value: bytes) -> None:
        """Store bytes under a key; called from other threads too."""


class CachedSandbox(Sandbox):
    """A sandbox that executes a program only if no cell has yet.

    A program that may end otherwise the next time, as far as its outcome and its text tell, is executed once in every
    process. Of what a program prints, the last 1000 characters are returned, remembered or not. The cache is closed by
    its opener; the rest, errors too, is as for :class:`Sandbox`.
    """

    def __init__(self, cache: Cache, limits: Limits | None = None, level: str | None = None) -> None:
        super().__init__(limits, level=level)
        self._cache = cache
        self._in_this_process: dict[bytes, Execution] = {}
        self._in_flight: InFlight[Execution] = InFlight()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._in_flight.close()
        await super().__aexit__(kind, error, trace)

    async def run(self, program: Program) -> Execution:
        """Return how a program ends, as remembered or found out now; raises UserError where the cache is broken.

        Callers that ask for one program at the same time share the execution.
        """
        # Quotes are escaped in it, so no two programs share a text.
        digest = hashlib.sha256(repr((astuple(program), self._ground)).encode()).digest()
        if digest in self._in_this_process:
            return self._in_this_process[digest]
        if record := self._cache.get("verdicts", digest):
            outcome, *rest = orjson.loads(record)
            return Execution(Outcome(outcome), *rest)
        return await self._in_flight.share(digest, lambda: self._execute(digest, program))

    async def _execute(self, digest: bytes, program: Program) -> Execution:
        whole = await super().run(program)
        execution = replace(whole, stdout=whole.stdout[-_KEPT_OUTPUT:])
        # Whether the text alone decides how it ends, as far as the text tells.
        own = not any(_OPEN_DOOR.search(part) for part in (program.source, program.setup, program.checks))
        if own and execution.outcome not in MACHINES_OWN:
            await asyncio.to_thread(self._cache.put, "verdicts", digest, orjson.dumps(astuple(execution)))
        elif execution.outcome is not Outcome.SANDBOX_ERROR:
            self._in_this_process[digest] = execution
        return execution

    @functools.cached_property
    def _ground(self) -> tuple[str, ...]:
        """All that decides besides the program."""
        code = fingerprint([ROOT / "harness" / "sandbox"])
        return repr(self.limits), self.level, sys.version, sysconfig.get_platform(), code

"""How programs ended in the sandbox, found out once and then shared by all cells of a machine.

The cache opens no door to programs. At ``full`` they cannot reach its file. At ``rlimit`` they run as an unprivileged
user where the suite runs as root, and can read it but not write it; where the suite runs as an ordinary user they are
that user, and could write here as in every other result: this level is for programs that are faulty, not for hostile
ones (:mod:`harness.sandbox.pool`).
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
# Another machine, or this one on another day, may end the same program otherwise. A limit of memory is among them: a
# machine that has none left, or one with more processors and so more memory set aside for threads, raises the same
# error. A limit of output is not: how much is too much, and what is kept of it, are counted in the program's own bytes.
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
    """What verdicts are kept in: the cache of this machine."""

    def get(self, table: Literal["verdicts"], key: bytes) -> bytes | None:
        """Return what is stored under a key, or None."""

    def put(self, table: Literal["verdicts"], key: bytes, value: bytes) -> None:
        """Store bytes under a key; called from other threads too."""


class CachedSandbox(Sandbox):
    """A sandbox that executes a program only if no cell has yet.

    A program that may end otherwise the next time, as far as its outcome and its text tell, is executed once in every
    process. Of what a program prints, the last 1000 characters are returned, remembered or not.

    Args:
        cache: Of this machine; closed by whoever opened it.
        limits: What each program may use.
        level: The level to use instead of the best.

    Raises:
        UserError: The machine offers no level, or not the one asked for.
    """

    def __init__(self, cache: Cache, limits: Limits | None = None, level: str | None = None) -> None:
        super().__init__(limits, level=level)
        self._cache = cache
        self._in_this_process: dict[bytes, Execution] = {}
        self._in_flight: InFlight[Execution] = InFlight()

    async def __aenter__(self) -> CachedSandbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._in_flight.close()
        await super().__aexit__(kind, error, trace)

    async def run(self, program: Program) -> Execution:
        """How a program ends, as remembered or found out now.

        Callers that ask for one program at the same time share the execution.

        Raises:
            UserError: The cache cannot be written.
        """
        digest = _digest(*astuple(program), *self._ground)
        known = self._in_this_process.get(digest) or _unpacked(self._cache.get("verdicts", digest))
        return known or await self._in_flight.share(digest, lambda: self._execute(digest, program))

    async def _execute(self, digest: bytes, program: Program) -> Execution:
        whole = await super().run(program)
        execution = replace(whole, stdout=whole.stdout[-_KEPT_OUTPUT:])
        if execution.outcome not in MACHINES_OWN and _is_its_own(program):
            _, *rest, _ = astuple(execution)
            record = orjson.dumps([execution.outcome, *rest])
            await asyncio.to_thread(self._cache.put, "verdicts", digest, record)
        elif execution.outcome is not Outcome.SANDBOX_ERROR:
            self._in_this_process[digest] = execution
        return execution

    @functools.cached_property
    def _ground(self) -> tuple[str, ...]:
        """All that decides beside the program."""
        code = fingerprint([ROOT / "harness" / "sandbox"])
        return repr(self.limits), self.level, sys.version, sysconfig.get_platform(), code


def _unpacked(content: bytes | None) -> Execution | None:
    if content is None:
        return None
    outcome, *rest = orjson.loads(content)
    return Execution(Outcome(outcome), *rest)


def _is_its_own(program: Program) -> bool:
    """Whether the text alone decides how a program ends, as far as the text tells."""
    return not any(_OPEN_DOOR.search(part) for part in (program.source, program.setup, program.checks))


def _digest(*parts: str) -> bytes:
    """SHA-256 over texts; their lengths are in it, so that no other division of the same characters has it."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.digest()

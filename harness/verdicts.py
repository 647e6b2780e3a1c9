"""How programs ended in the sandbox, found out once and then shared by all cells.

Below one folder each cell appends to a file of its own and reads those of the others. A record is a line: the SHA-256
of everything that decides how the program ends, the CRC-32 of what follows, both in hexadecimal, and outcome, detail,
output and the text that was asked for as JSON. It is a cache: deleting it costs time and changes nothing else.

It opens no door to programs. At the levels ``full`` and ``no-namespaces`` they cannot reach the folder. At ``rlimit``
they run as an unprivileged user where the suite runs as root, and can read the records but not write them; where the
suite runs as an ordinary user they are that user, and could write here as in every other result: this level is for
programs that are faulty, not for hostile ones (:mod:`harness.sandbox.levels`).
"""

from __future__ import annotations

import functools
import hashlib
import logging
import re
import sys
import sysconfig
import zlib
from array import array
from dataclasses import astuple, replace
from pathlib import Path
from types import TracebackType

import numpy as np
import orjson

from harness.concurrency import InFlight
from harness.files import ROOT, fingerprint
from harness.places import as_digests, line_at
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox
from harness.shared_records import Scanned, SharedRecords

logger = logging.getLogger(__name__)

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
# Where they stand in a line; the check sum is between them.
_DIGEST, _CONTENT = slice(0, 64), slice(74, -1)


class RememberingSandbox(Sandbox):
    """A sandbox that executes a program only if no cell has yet.

    A program that may end otherwise the next time, as far as its outcome and its text tell, is executed once in every
    process. Of what a program prints, the last 1000 characters are returned, remembered or not. Nothing is opened
    before the first program, so a cell that runs none leaves no file.

    Args:
        folder: The cache; made if absent.
        name: Name of the file this process appends to; no two processes may share one.
        limits: What each program may use.
        level: The level to use instead of the best.

    Raises:
        UserError: The machine offers no level, or not the one asked for.
    """

    def __init__(self, folder: Path, name: str, limits: Limits | None = None, level: str | None = None) -> None:
        super().__init__(limits, level=level)
        self._path = folder / f"{name}.jsonl"
        self._opened: SharedRecords | None = None
        self._in_this_process: dict[bytes, Execution] = {}
        self._in_flight: InFlight[Execution] = InFlight()

    async def __aenter__(self) -> RememberingSandbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._in_flight.close()
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        await super().__aexit__(kind, error, trace)

    async def run(self, program: Program) -> Execution:
        """How a program ends, as remembered or found out now.

        Callers that ask for one program at the same time share the execution.

        Raises:
            UserError: The cache cannot be written, or another process writes the same file.
        """
        digest = _digest(*astuple(program), *self._ground)
        known = self._in_this_process.get(digest) or _unpacked(self._records.get(digest))
        return known or await self._in_flight.share(digest, lambda: self._execute(digest, program))

    async def _execute(self, digest: bytes, program: Program) -> Execution:
        whole = await super().run(program)
        execution = replace(whole, stdout=whole.stdout[-_KEPT_OUTPUT:])
        if execution.outcome not in MACHINES_OWN and _is_its_own(program):
            _, *rest, _ = astuple(execution)
            self._records.append(digest, orjson.dumps([execution.outcome, *rest]))
        elif execution.outcome is not Outcome.SANDBOX_ERROR:
            self._in_this_process[digest] = execution
        return execution

    @property
    def _records(self) -> SharedRecords:
        if self._opened is None:
            self._opened = SharedRecords(self._path, _Lines())
        return self._opened

    @functools.cached_property
    def _ground(self) -> tuple[str, ...]:
        """All that decides beside the program."""
        code = fingerprint([ROOT / "harness" / "sandbox", Path(__file__)])
        return repr(self.limits), self.level, sys.version, sysconfig.get_platform(), code


class _Lines:
    """Digest, CRC and content, a line each; a damaged one leaves the others readable."""

    def scan(self, path: Path) -> Scanned:
        digests, offsets, damaged, end = bytearray(), array("q"), 0, 0
        with path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                digest = self._digest_of(line)
                if digest is None:
                    damaged += 1
                else:
                    digests += digest
                    offsets.append(end)
                end += len(line)
        if damaged:
            logger.warning("%s: dropped %d damaged records", path, damaged)
        return Scanned(as_digests([bytes(digests)]), np.array(offsets, np.int64), end)

    def read(self, file: int, offset: int) -> bytes:
        return line_at(file, offset)

    def pack(self, digest: bytes, content: bytes) -> bytes:
        crc = zlib.crc32(content, zlib.crc32(digest))
        return b"%s %08x %s\n" % (digest.hex().encode(), crc, content)

    def unpack(self, digest: bytes, record: bytes) -> bytes | None:
        content = record[_CONTENT]
        return content if record == self.pack(digest, content) else None

    def _digest_of(self, line: bytes) -> bytes | None:
        """Whose record a line is; ``None`` if it is damaged, by the same measure as when it is read."""
        try:
            digest = bytes.fromhex(line[_DIGEST].decode())
        except ValueError:
            return None
        return None if self.unpack(digest, line) is None else digest


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

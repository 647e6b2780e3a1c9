"""One warm worker: a process of checks, the nursery that belongs to it, and their programs, seen from here."""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import select
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from harness.sandbox.interpreter import ENVIRONMENT, OPTIONS, interpreter
from harness.sandbox.jail.channel import LONGEST_ORDER
from harness.sandbox.model import Execution, Limits, Program
from harness.sandbox.orders import Box, order, policy
from harness.sandbox.verdict import judge, out_of_time, too_long

# A worker that has not replied by then, beyond the wall limit of the program, is broken.
_PATIENCE_S = 60.0
# What checks leave behind in the process they share does not pile up.
_LIFETIME = 1000
_JAIL_HOME = str(Path(__file__).parent)
_BOOT = "import sys; sys.path.append(sys.argv[1]); from jail.launcher import {0}; sys.path.pop(); {0}()"
_HEAD = 4
_FAREWELL_S = 5.0


class Worker:
    """Runs one program at a time; whoever started it has to close it.

    Args:
        level: How it confines programs.
        limits: What each of them may use.
        processor: The one to run on, ``None`` for any: its processes take turns, and a turn that stays on one
            processor is cheaper than one that wakes another.

    Attributes:
        is_spent: Whether it has to be replaced: broken, with files in its work directory, or old.

    Raises:
        OSError: It cannot be started.
        UserError: The level needs a program that is not installed.
    """

    def __init__(self, level: str, limits: Limits, processor: int | None = None) -> None:
        self.is_spent = False
        self._programs = 0
        self._limits = limits
        self._box = Box(level)
        self._connection, theirs = socket.socketpair()
        try:
            told = [policy(level, limits, self._box.path, processor), command("serve_nursery")]
            self._process = subprocess.Popen(  # noqa: S603  our own launcher
                command("main"),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            self._connection.close()
            self._box.remove()
            raise
        finally:
            theirs.close()
        self._connection.sendall(_framed(told))

    def start(self) -> None:
        """Waits until it is ready.

        Raises:
            OSError: It is not, and why.
        """
        self._connection.settimeout(_PATIENCE_S)
        self._read(_received(self._connection))
        self._connection.setblocking(False)

    def ask(self, program: Program) -> Execution:
        """Executes a program, and blocks meanwhile; as :meth:`run`."""
        sent = _framed(order(program))
        if len(sent) > LONGEST_ORDER:
            return too_long(program)
        self._connection.settimeout(self._deadline_s)
        self._connection.sendall(sent)
        return self._judged(_received(self._connection))

    async def run(self, program: Program) -> Execution:
        """Executes a program.

        Raises:
            OSError: The worker has failed.
        """
        sent = _framed(order(program))
        if len(sent) > LONGEST_ORDER:
            return too_long(program)
        self.is_spent = True
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._deadline_s):
            await loop.sock_sendall(self._connection, sent)
            head = await self._exactly(_HEAD)
            content = await self._exactly(int.from_bytes(head, "little"))
        return self._judged(content)

    @property
    def _deadline_s(self) -> float:
        """Until then even a crowded machine lets the program reach its limits, and then the checks theirs."""
        return self._limits.wall_s + 10 * self._limits.cpu_s + _PATIENCE_S

    def _judged(self, content: bytes) -> Execution:
        if not content and self._ended() == -signal.SIGXCPU:
            return out_of_time(self._limits)
        found = self._read(content)
        self._programs += 1
        self.is_spent = found["soiled"] or self._programs >= _LIFETIME
        return judge(found, self._limits)

    def _ended(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_FAREWELL_S)
        return None

    def close(self) -> None:
        """Ends it and all that belongs to it."""
        self._connection.close()
        try:
            # The end of the connection is its end, and that of its programs before it.
            self._process.wait(_FAREWELL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            # All but the programs hold the other end.
            select.select([self._process.stderr], [], [], _FAREWELL_S)
            self._process.stderr.close()
        self._box.remove()

    async def _exactly(self, length: int) -> bytes:
        loop = asyncio.get_running_loop()
        content = b""
        while len(content) < length:
            piece = await loop.sock_recv(self._connection, length - len(content))
            if not piece:
                return b""
            content += piece
        return content

    def _read(self, content: bytes) -> dict[str, Any]:
        if not content:
            raise OSError(f"the worker ended: {self._last_words()}")
        # The process of the checks wrote it; no program can write to this connection.
        reply: dict[str, Any] = marshal.loads(content)  # noqa: S302
        if "failure" in reply:
            raise OSError(reply["failure"])
        return reply

    def _last_words(self) -> str:
        if self._process.stderr is None:
            return ""
        os.set_blocking(self._process.stderr.fileno(), False)
        words = (self._process.stderr.read() or b"").decode("utf-8", "replace").strip()
        return words.splitlines()[-1] if words else "it said nothing"


def command(entry: str) -> list[str]:
    """The command line of a launcher; it is the same for all programs, for others can read it."""
    return [interpreter().executable, *OPTIONS, "-c", _BOOT.format(entry), _JAIL_HOME]


def _framed(message: Any) -> bytes:
    content = marshal.dumps(message)
    return len(content).to_bytes(_HEAD, "little") + content


def _received(connection: socket.socket) -> bytes:
    content = b""
    # One that ended with something unread resets the connection: then its last words say more.
    with contextlib.suppress(ConnectionResetError), connection.makefile("rb") as stream:
        head = stream.read(_HEAD)
        content = stream.read(int.from_bytes(head, "little")) if len(head) == _HEAD else b""
    return content

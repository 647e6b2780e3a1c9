"""One warm worker, seen from here: a process of checks, its fork server, their programs; and what a report means."""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import re
import select
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from typing import Any

from harness.sandbox.jail import fork_server, grader
from harness.sandbox.jail.fork_server import BOX_BYTES, BOX_ENTRIES
from harness.sandbox.jail.values import LONGEST_ORDER
from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.policy import Box, policy

# A worker that has not replied by then, beyond the wall limit of the program, is broken.
_PATIENCE_S = 60.0
# What checks leave behind in the process they share does not pile up.
_LIFETIME = 1000
_HEAD = 4
_FAREWELL_S = 5.0
# Not -I, which would ignore PYTHONHASHSEED: everything else it does is done by -P, -s and the environment.
_OPTIONS = ("-P", "-S", "-s")
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC"}
# The same for all programs, for others can read it.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from jail.fork_server import main; sys.path.pop(); main()"
# Ends at a moment that differs between runs, and with it the amount of output.
_CUT_ANYWHERE = {Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.KILLED, Outcome.SANDBOX_ERROR}
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_LONGEST_DETAIL = 300


class Worker:
    """Runs one program at a time, on one event loop; whoever made it has to close it."""

    def __init__(self, level: str, limits: Limits) -> None:
        # Whether it is of no use: not started, broken, with files in its work directory, or old.
        self.is_spent = True
        self._programs = 0
        self._limits = limits
        self._box = Box(level)
        self._connection, theirs = socket.socketpair()
        command = [os.path.realpath(sys.executable), *_OPTIONS, "-c", _BOOT, os.path.dirname(__file__)]
        silent: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  our own launcher
                command, stdin=theirs.fileno(), env=_ENVIRONMENT, cwd="/", start_new_session=True, **silent
            )
        self._errors: Any = self._process.stderr
        self._connection.sendall(_framed(policy(level, limits, self._box.path)))
        self._connection.setblocking(False)

    async def run(self, program: Program) -> Execution:
        """Execute a program; raises OSError where the worker has failed, or could not be started."""
        if not self._programs:
            async with asyncio.timeout(_PATIENCE_S):
                self._read(await self._received())
        order = _framed(asdict(program))
        if len(order) > LONGEST_ORDER:
            told = f"more than {LONGEST_ORDER >> 20} MiB of source, {len(program.source)} characters of it the program"
            return Execution(Outcome.NOT_EXECUTABLE, told, "")
        self.is_spent = True
        # Until then even a crowded machine lets the program reach its limits, and then the checks theirs.
        async with asyncio.timeout(self._limits.wall_s + 10 * self._limits.cpu_s + _PATIENCE_S):
            await asyncio.get_running_loop().sock_sendall(self._connection, order)
            content = await self._received()
        if not content and self._ended() == -signal.SIGXCPU:
            # Only with what a program returns can checks take so long.
            told = f"more than {self._limits.cpu_s} s of processor time in the checks"
            return Execution(Outcome.CPU_LIMIT, told, "")
        found = self._read(content)
        self._programs += 1
        self.is_spent = found["soiled"] or self._programs >= _LIFETIME
        return verdict(found, self._limits)

    def close(self) -> None:
        """End it and all that belongs to it."""
        self._connection.close()
        # The end of the connection is its end, and that of its programs before it.
        if self._ended() is None:
            self._process.kill()
            self._process.wait()
        # All but the programs hold the other end.
        select.select([self._errors], [], [], _FAREWELL_S)
        self._errors.close()
        self._box.remove()

    def _ended(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_FAREWELL_S)
        return None

    async def _received(self) -> bytes:
        """The next message, empty where the worker has ended."""
        head = await self._exactly(_HEAD)
        return await self._exactly(int.from_bytes(head, "little"))

    async def _exactly(self, length: int) -> bytes:
        loop = asyncio.get_running_loop()
        content = b""
        # One that ended with something unread resets the connection: then its last words say more.
        with contextlib.suppress(ConnectionResetError):
            while len(content) < length:
                piece = await loop.sock_recv(self._connection, length - len(content))
                if not piece:
                    return b""
                content += piece
        return content

    def _read(self, content: bytes) -> dict[str, Any]:
        if not content:
            os.set_blocking(self._errors.fileno(), False)
            words = (self._errors.read() or b"").decode("utf-8", "replace").strip().splitlines()
            raise OSError(f"the worker ended: {words[-1] if words else 'it said nothing'}")
        # The process of the checks wrote it; no program can write to this connection.
        reply: dict[str, Any] = marshal.loads(content)  # noqa: S302
        if "failure" in reply:
            raise OSError(reply["failure"])
        return reply


def verdict(found: dict[str, Any], limits: Limits) -> Execution:
    """Return the execution that a report of the grader amounts to, with nothing that differs between two runs."""
    outcome, detail = _ended(found, limits)
    stdout = "" if outcome in _CUT_ANYWHERE else found["stdout"].decode("utf-8", "replace")
    shown = found["shown"] if outcome is Outcome.PASSED else None
    return Execution(outcome, _line(detail), stdout, shown and _writable(shown), found["assertions"])


def failed(reason: object) -> Execution:
    """Return the execution that did not take place because the sandbox failed."""
    return Execution(Outcome.SANDBOX_ERROR, _line(str(reason)), "")


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _line(detail: str) -> str:
    """One line for people; a program may have worded it."""
    return _writable(_ADDRESS.sub("0x...", _CONTROL.sub(" ", detail))[:_LONGEST_DETAIL])


def _ended(found: dict[str, Any], limits: Limits) -> tuple[Outcome, str]:
    if found["cut"] == fork_server.WALL:
        return Outcome.WALL_LIMIT, f"more than {limits.wall_s:g} s of wall time"
    if found["cut"] == fork_server.CROWDED:
        return Outcome.OUTPUT_LIMIT, f"more than {BOX_ENTRIES} files or {BOX_BYTES >> 20} MiB of them"
    if found["outcome"] == grader.FAILURE:
        return Outcome.SANDBOX_ERROR, found["detail"]
    if found["outcome"] != grader.GONE:
        return Outcome(found["outcome"]), found["detail"]
    status = found["status"]
    if not os.WIFSIGNALED(status):
        return Outcome.EXCEPTION, f"exit with status {os.WEXITSTATUS(status)} before the last check"
    number = os.WTERMSIG(status)
    # A program that ignores the first signal at the limit is killed by the second one.
    if number == signal.SIGXCPU or (number == signal.SIGKILL and found["cpu_s"] >= limits.cpu_s):
        return Outcome.CPU_LIMIT, f"more than {limits.cpu_s} s of processor time"
    names = {known.value: known.name for known in signal.Signals}
    return Outcome.KILLED, names.get(number, f"signal {number}")


def _framed(message: Any) -> bytes:
    content = marshal.dumps(message)
    return len(content).to_bytes(_HEAD, "little") + content

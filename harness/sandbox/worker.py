"""Programs, limits and outcomes; a worker, which runs one program at a time; and the policy that confines it."""

import asyncio
import contextlib
import enum
import functools
import json
import marshal
import os
import re
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import PositiveFloat, PositiveInt

from harness.files import Declaration, read
from harness.sandbox.jail import protocol
from harness.sandbox.jail.confinement import FULL, RLIMIT

# The work directory at ``full``: in a root in memory, outside every directory that may hold an interpreter.
_PRIVATE_WORK_DIR = "/box"
_PATIENCE_S = 60.0  # a worker that has not replied by this time after all limits is broken
_LIFETIME = 1000  # programs after which a worker is replaced, since checks may leave traces in their process
# Not -I, which would ignore PYTHONHASHSEED: -P, -s and the environment do the rest of what it does.
_OPTIONS = ("-P", "-S", "-s")
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC"}
# The command line is the same for all programs, since other processes can read it.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from jail.fork_server import main; sys.path.pop(); main()"
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_LONGEST_DETAIL = 300
_HEAD, _PIECE = 4, 1 << 20
_CLOSING_S = 5.0
# The user ``nobody``, which owns no files, and the user id before it.
PROGRAM_USER, CHECKS_USER = 65534, 65533


@dataclass(frozen=True, slots=True)
class Program:
    """A program, which runs as a module named ``solution``, and the checks that use its names from another process."""

    source: str
    setup: str = ""  # trusted; runs before the program, and before the checks
    checks: str = ""  # trusted; an AssertionError means a wrong answer; the standard library needs no import
    entry_point: str = ""  # the function under test; a built-in of that name does not stand in for it
    show: str = ""  # a variable of the program to return as text


class Limits(Declaration):
    """Limits of one program, explained in ``limits.yaml``."""

    cpu_s: PositiveInt
    wall_s: PositiveFloat
    memory_mib: PositiveInt
    file_mib: PositiveInt
    open_files: PositiveInt
    threads: PositiveInt


LIMITS: Limits = read(Path(__file__).with_name("limits.yaml"), Limits)


class Outcome(enum.StrEnum):
    """How an execution ended. ``SANDBOX_ERROR`` says nothing about the program."""

    PASSED = "passed"
    WRONG_ANSWER = "wrong_answer"
    EXCEPTION = "exception"
    NOT_PLAIN = "not_plain"
    CPU_LIMIT = "cpu_limit"
    WALL_LIMIT = "wall_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    KILLED = "killed"
    NOT_EXECUTABLE = "not_executable"
    SANDBOX_ERROR = "sandbox_error"


@dataclass(frozen=True, slots=True)
class Execution:
    """Result of one execution. It has no times or addresses, so that it is deterministic."""

    outcome: Outcome
    detail: str  # one line, such as the exception and the line that raised it
    shown: str | None = None  # the first 4096 characters of the variable ``Program.show``
    is_loaded: bool = True  # whether the program reached the end of its top level
    was_idle: bool = False  # whether it hardly used the processor before the wall limit


class Child:
    """A process with a socket of framed messages as standard input. Raises OSError if it cannot start."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._connection, childs_end = socket.socketpair()
        streams: Any = {"stdin": childs_end.fileno(), "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        try:
            with childs_end:
                self.process = subprocess.Popen(  # noqa: S603  our own launchers
                    command, env=environment, cwd=folder, start_new_session=True, **streams
                )
        except BaseException:
            self._connection.close()
            raise
        self._errors: Any = self.process.stderr
        self._connection.setblocking(False)

    async def ask(self, message: bytes, limit_s: float) -> bytes:
        """Send a message and return the reply (empty if the process has ended). Kill it at the limit (TimeoutError)."""
        framed = len(message).to_bytes(_HEAD, "little") + message
        async with asyncio.timeout(limit_s):
            try:
                # A process that has failed may have sent the reason before it ended.
                with contextlib.suppress(BrokenPipeError):
                    await asyncio.get_running_loop().sock_sendall(self._connection, framed)
                # One that ended before it read everything resets the connection; its last error line says more.
                with contextlib.suppress(ConnectionResetError):
                    return await self._take(int.from_bytes(await self._take(_HEAD), "little"))
                return b""
            except BaseException:
                # The process would notice the end of the connection only after its current task.
                self.process.kill()
                raise

    def last_error_line(self) -> str:
        os.set_blocking(self._errors.fileno(), False)
        lines = (self._errors.read() or b"").decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "no message; it may have been killed (out of memory?)"

    def close(self) -> None:
        """Wait until the process and all that it started have ended."""
        self._connection.close()
        self.process.wait()
        # If it was killed, processes that it started may still hold the other end of the pipe.
        errors = select.poll()  # not select.select, which supports only descriptors below 1,024
        errors.register(self._errors, 0)  # POLLHUP alone: an error message may arrive first
        errors.poll(1000 * _CLOSING_S)
        self._errors.close()

    async def _take(self, length: int) -> bytes:
        content = b""
        while len(content) < length:
            piece = await asyncio.get_running_loop().sock_recv(self._connection, min(length - len(content), _PIECE))
            if not piece:
                raise ConnectionResetError
            content += piece
        return content


class WorkerLostError(OSError):
    """The worker ended without a report, perhaps killed. This does not mean that the machine refuses the level."""


class Worker:
    """Process that runs one program at a time, on one event loop. Must be closed after use."""

    def __init__(self, level: str, limits: Limits) -> None:
        # Whether to replace it: not started, broken, old, or with files left in its work directory.
        self.is_spent = True
        self._programs = 0
        self._limits = limits
        work_dir = _PRIVATE_WORK_DIR
        with contextlib.ExitStack() as stack:
            if level == RLIMIT:
                home = tempfile.mkdtemp(prefix="sandbox-")
                stack.callback(_delete, home)
                # Other users may pass through it, but not list it.
                os.chmod(home, 0o711)  # noqa: S103
                work_dir = f"{home}/box"
                os.mkdir(work_dir, 0o700)
                try:
                    if os.geteuid() == 0:
                        os.chown(work_dir, PROGRAM_USER, PROGRAM_USER)
                except OSError as error:
                    raise OSError(
                        f"root here cannot act for the unprivileged user {PROGRAM_USER} ({error}): run as an ordinary "
                        "user, or in a container with the capabilities CHOWN, SETUID and SETGID"
                    ) from error
            told = json.dumps(policy(level, limits, work_dir))
            command = [os.path.realpath(sys.executable), *_OPTIONS, "-c", _BOOT, os.path.dirname(__file__), told]
            self.child = Child(command, _ENVIRONMENT, Path("/"))
            stack.callback(self.child.close)
            self._opened = stack.pop_all()

    async def run(self, program: Program) -> Execution:
        """Run a program. Raises OSError if the worker has failed, is lost or cannot start."""
        job = marshal.dumps(asdict(program))
        if len(job) > protocol.LONGEST_JOB:
            size = f"more than {protocol.LONGEST_JOB >> 20} MiB of source, {len(program.source)} characters of it"
            return Execution(Outcome.NOT_EXECUTABLE, f"{size} the program")
        self.is_spent = True
        # Enough for a worker to start on a crowded machine, and for program and checks to reach their limits.
        content = await self.child.ask(job, self._limits.wall_s + 10 * self._limits.cpu_s + _PATIENCE_S)
        if not content and await asyncio.to_thread(self.child.process.wait) == -signal.SIGXCPU:
            # Checks take so long only because of a value that the program returned.
            return Execution(Outcome.CPU_LIMIT, f"more than {self._limits.cpu_s} s of processor time in the checks")
        if not content:
            raise WorkerLostError(f"the worker ended: {self.child.last_error_line()}")
        # Written by the process of the checks; no program can write to this connection.
        report: dict[str, Any] = marshal.loads(content)  # noqa: S302
        if "failure" in report:
            raise OSError(report["failure"])
        self._programs += 1
        self.is_spent = report["is_dirty"] or self._programs >= _LIFETIME
        outcome = Outcome(report["outcome"])
        shown = report["shown"] if outcome is Outcome.PASSED else None
        detail, shown = printable_line(report["detail"]), shown and _encodable(shown)
        return Execution(outcome, detail, shown, report["is_loaded"], report["was_idle"])

    def close(self) -> None:
        """End the process and all that it started, and delete its work directory."""
        self._opened.close()


def _delete(folder: str) -> None:
    # Unlike ``shutil.rmtree``, these remove very deep trees and directories without any rights.
    for tool in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        subprocess.run([*tool, folder], stderr=subprocess.DEVNULL, check=False)  # noqa: S603


def printable_line(detail: str) -> str:
    return _encodable(_ADDRESS.sub("0x...", _CONTROL.sub(" ", detail))[:_LONGEST_DETAIL])


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def policy(level: str, limits: Limits, work_dir: str) -> dict[str, Any]:
    """Build the policy of a worker as JSON values. Programs may write only to ``work_dir``."""
    # The kernel counts threads per user, and only in its own user namespace is a program the only process of its user.
    # Elsewhere the user's other processes count too, so the only safe limit is to allow no further thread.
    limits = limits if level == FULL else limits.model_copy(update={"threads": 1})
    # Two users, so that neither process can touch the other. None keeps the current user.
    program_user, checks_user = (PROGRAM_USER, CHECKS_USER) if os.geteuid() == 0 else (None, None)
    told = {"level": level, "limits": limits.model_dump(), "work_dir": work_dir, "parent": os.getpid()}
    return {**told, "program_user": program_user, "checks_user": checks_user, **_library()}


@functools.cache
def _library() -> dict[str, Any]:
    """Return the paths of the Python installation that programs need: the standard library, no site packages."""
    prefix = os.path.realpath(sys.base_prefix)
    library = sysconfig.get_path("stdlib", vars={"installed_base": prefix})
    stdlib = _directories(library, os.path.join(library, "lib-dynload"))
    # Extension modules of the standard library find the shared libraries they need here.
    triplet = sysconfig.get_config_var("MULTIARCH")
    system = ["/lib64", "/usr/lib64", *([f"/lib/{triplet}", f"/usr/lib/{triplet}"] if triplet else [])]
    libraries, zones = _directories(*system, os.path.dirname(library)), _directories("/usr/share/zoneinfo")
    mounts = [path for path in (*libraries, *zones) if not any(path.startswith(f"{outer}/") for outer in libraries)]
    readable = [(os.devnull, "device"), (library, "list"), *((path, "tree") for path in zones)]
    for directory in libraries:
        if library.startswith(f"{directory}/"):
            readable += [(str(path), "file") for path in Path(directory).glob("*.so*") if path.is_file()]
        else:
            readable.append((directory, "tree"))
    # Without installed packages, which most installations put inside the library, some next to it.
    inside = f"{os.path.realpath(library)}/"
    for path in Path(library).iterdir():
        if path.name not in ("site-packages", "dist-packages") and os.path.realpath(path).startswith(inside):
            readable.append((str(path), "tree" if path.is_dir() else "file"))
    return {"prefix": prefix, "stdlib": stdlib, "mounts": mounts, "readable": readable}


def _directories(*paths: str) -> list[str]:
    return [path for path in dict.fromkeys(paths) if os.path.isdir(path)]

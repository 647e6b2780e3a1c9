"""Server processes: started detached, found again by what they left in a file, ended with all their children."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from harness.errors import UserError
from harness.files import write_atomically, writing

_PROC = Path("/proc")
PATIENCE_S = 30.0
_LOOK_EVERY_S = 0.1
# Places in /proc/PID/stat, counted from the state, which follows the name in brackets.
_STATE, _SESSION, _STARTED = 0, 3, 19
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Process:
    """A server process that was started.

    Attributes:
        pid: Its number, which is also that of its session.
        ticks: When the kernel started it, since it is up; tells it from a later process with the same number.
        began: The same by the clock, in seconds since 1970.
        url: Where it listens.
        models: Names under which it serves.
        command: How it was started.
    """

    pid: int
    ticks: int
    began: float
    url: str
    models: tuple[str, ...]
    command: tuple[str, ...]

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        stat = _stat(self.pid)
        return stat is not None and int(stat[_STARTED]) == self.ticks and stat[_STATE] not in "ZX"

    def members(self) -> list[int]:
        """The processes of its session: itself while it runs, and what it has started."""
        leader = _stat(self.pid)
        if leader is not None and int(leader[_STARTED]) != self.ticks:
            return []
        everyone = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())
        stats = ((pid, _stat(pid)) for pid in everyone)
        return [
            pid
            for pid, stat in stats
            if stat is not None and int(stat[_SESSION]) == self.pid and stat[_STATE] not in "ZX"
        ]

    def memory_gib(self) -> float:
        """Main memory of the session; what is shared counts in each of its processes."""
        return sum(_resident(pid) for pid in self.members()) / 1024**3


def check_system() -> None:
    """Refuse a system whose processes cannot be found again.

    Raises:
        UserError: It has no ``/proc``.
    """
    if not (_PROC / "self" / "stat").exists():
        raise UserError(
            "servers are kept by what Linux says in /proc; start yours by hand with the lines of `gmr serve plan`"
        )


def check_port(host: str, port: int) -> None:
    """Refuse a port that another program has.

    Raises:
        UserError: Names it.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(
                f"cannot listen on {host}:{port} ({error.strerror}); end what listens there, or change first_port in "
                "config/serving/"
            ) from error


def start(command: Sequence[str], variables: Mapping[str, str], log: Path, url: str, models: Sequence[str]) -> Process:
    """Start a server in a session of its own, so that it outlives this process.

    Raises:
        UserError: The log cannot be written, or the command cannot be executed.
    """
    with writing(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("wb")
    with output:
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, output.fileno(), 2),
        ]
        try:
            pid = os.posix_spawn(command[0], list(command), variables, file_actions=files, setsid=True)
        except OSError as error:
            raise UserError(f"cannot start {command[0]} ({error.strerror}); is it the vLLM you mean?") from error
    stat = _stat(pid)
    return Process(pid, int(stat[_STARTED]) if stat is not None else 0, time.time(), url, tuple(models), tuple(command))


def stop(process: Process, patience_s: float = PATIENCE_S) -> bool:
    """End a server and all it has started: asked first, killed after a while.

    Returns:
        Whether it ended when it was asked.
    """
    # The first of them is asked alone, for it ends the others in the order it needs; what it leaves is asked then.
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + patience_s
        told: set[int] = set()
        while (members := set(process.members())) and time.monotonic() < deadline:
            asked = {process.pid} & members if number == signal.SIGTERM else members
            for pid in (asked or members) - told:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            told |= asked or members
            time.sleep(_LOOK_EVERY_S)
        if not members:
            return number == signal.SIGTERM
    return False


def write(path: Path, process: Process) -> None:
    """Leave word of a process.

    Raises:
        UserError: The folder cannot be written.
    """
    write_atomically(path, orjson.dumps(asdict(process), option=orjson.OPT_INDENT_2))


def read(path: Path) -> Process | None:
    """The process that a file tells of, running or not; ``None`` where there is no such file.

    Raises:
        UserError: It is none of ours.
    """
    try:
        fields = orjson.loads(path.read_bytes())
        return Process(**{**fields, "models": tuple(fields["models"]), "command": tuple(fields["command"])})
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path} does not tell of a server ({error}); if none runs (`ps aux | grep vllm`), remove the file"
        ) from error


def _stat(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _resident(pid: int) -> int:
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0

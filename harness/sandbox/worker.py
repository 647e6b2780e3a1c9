"""One warm worker, seen from here: its policy, its work directory, and what its reports mean."""

from __future__ import annotations

import asyncio
import functools
import json
import marshal
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.sandbox.jail import protocol
from harness.sandbox.jail.confinement import FULL, RLIMIT
from harness.sandbox.jail.protocol import BOX_BYTES, BOX_ENTRIES, LONGEST_ORDER
from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.process import Child

# The customary user that owns nothing (``nobody``), and the number before it.
PROGRAM_USER, CHECKS_USER = 65534, 65533
# At ``full``: in a root directory in memory, below no directory that may hold an interpreter.
_PRIVATE_BOX = "/box"
_INSTALLED_PACKAGES = ("site-packages", "dist-packages")
# A worker that has not replied so long after all limits have passed is broken.
_PATIENCE_S = 60.0
# Programs a worker serves, so that what checks leave behind in their process does not pile up.
_LIFETIME = 1000
# Not -I, which would ignore PYTHONHASHSEED: everything else it does is done by -P, -s and the environment.
_OPTIONS = ("-P", "-S", "-s")
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC"}
# The same for all programs, as other processes can read it.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from jail.main import main; sys.path.pop(); main()"
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_LONGEST_DETAIL = 300
# A program that has used less than this share of its processor time was waiting.
_IDLE = 0.1


class WorkerLostError(OSError):
    """The worker ended without a report: killed, perhaps, which says nothing about what this machine offers."""


class Worker:
    """Process that runs one program at a time, on one event loop; to be closed after use."""

    def __init__(self, level: str, limits: Limits) -> None:
        # Whether to replace it: not started, broken, old, or with files left in its work directory.
        self.is_spent = True
        self._programs = 0
        self._limits = limits
        self._home = _make_home() if level == RLIMIT else None
        text = json.dumps(policy(level, limits, f"{self._home}/box" if self._home else _PRIVATE_BOX))
        command = [os.path.realpath(sys.executable), *_OPTIONS, "-c", _BOOT, os.path.dirname(__file__), text]
        try:
            self.child = Child(command, _ENVIRONMENT, Path("/"))
        except BaseException:
            self._delete_home()
            raise

    async def run(self, program: Program) -> Execution:
        """Execute a program; raise OSError if the worker has failed or was lost, or could not be started."""
        order = marshal.dumps(asdict(program))
        if len(order) > LONGEST_ORDER:
            size = f"more than {LONGEST_ORDER >> 20} MiB of source, {len(program.source)} characters of it the program"
            return Execution(Outcome.NOT_EXECUTABLE, size)
        self.is_spent = True
        # Enough for a worker to start on a crowded machine, and for program and checks to reach their limits.
        content = await self.child.ask(order, self._limits.wall_s + 10 * self._limits.cpu_s + _PATIENCE_S)
        if not content and await asyncio.to_thread(self.child.process.wait) == -signal.SIGXCPU:
            # Checks take so long only over a value that the program returned.
            return Execution(Outcome.CPU_LIMIT, f"more than {self._limits.cpu_s} s of processor time in the checks")
        if not content:
            raise WorkerLostError(f"the worker ended: {self.child.last_error_line()}")
        # Written by the process of the checks; no program can write to this connection.
        report: dict[str, Any] = marshal.loads(content)  # noqa: S302
        if "failure" in report:
            raise OSError(report["failure"])
        self._programs += 1
        self.is_spent = report["soiled"] or self._programs >= _LIFETIME
        return _execution(report, self._limits)

    def close(self) -> None:
        """End the process and all that it started, and delete its work directory."""
        self.child.close()
        self._delete_home()

    def _delete_home(self) -> None:
        # Unlike ``shutil.rmtree``, these remove very deep trees and directories without any rights.
        for tool in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            if self._home is not None:
                subprocess.run([*tool, self._home], stderr=subprocess.DEVNULL, check=False)  # noqa: S603


def failed_execution(reason: object) -> Execution:
    """Return an execution that did not take place because the sandbox failed."""
    return Execution(Outcome.SANDBOX_ERROR, _line(str(reason)))


def policy(level: str, limits: Limits, box: str) -> dict[str, Any]:
    """Return how a worker confines programs, what each may use, and their work directory (``box``)."""
    # The system counts threads per user, which is only this program in a user namespace of its own; with the user's
    # other processes in the count, the one certain limit is "no more".
    limits = limits if level == FULL else replace(limits, threads=1)
    # Two users, so that neither process can touch the other; None to stay the present user.
    program_user, checks_user = (PROGRAM_USER, CHECKS_USER) if os.geteuid() == 0 else (None, None)
    users = {"program_user": program_user, "checks_user": checks_user}
    return {"level": level, "limits": asdict(limits), "box": box, "parent": os.getpid(), **users, **_library()}


def _execution(report: dict[str, Any], limits: Limits) -> Execution:
    outcome, detail = _outcome(report, limits)
    shown = report["shown"] if outcome is Outcome.PASSED else None
    # A program that waited for a free processor, or whose checks did, has used some time of it.
    used_s = report["cpu_s"] + report["checks_cpu_s"]
    was_idle = outcome is Outcome.WALL_LIMIT and used_s < _IDLE * min(limits.cpu_s, limits.wall_s)
    return Execution(outcome, _line(detail), shown and _encodable(shown), report["is_loaded"], was_idle)


def _outcome(report: dict[str, Any], limits: Limits) -> tuple[Outcome, str]:
    if report["cut"] == protocol.WALL:
        return Outcome.WALL_LIMIT, f"more than {limits.wall_s:g} s of wall time"
    if report["cut"] == protocol.CROWDED:
        return Outcome.OUTPUT_LIMIT, f"more than {BOX_ENTRIES} files or {BOX_BYTES >> 20} MiB of them"
    if report["outcome"] == protocol.FAILURE:
        return Outcome.SANDBOX_ERROR, report["detail"]
    if report["outcome"] != protocol.GONE:
        return Outcome(report["outcome"]), report["detail"]
    status = report["status"]
    if not os.WIFSIGNALED(status):
        return Outcome.EXCEPTION, f"exit with status {os.WEXITSTATUS(status)} before the last check"
    number = os.WTERMSIG(status)
    # A program that ignores the first signal at the limit is killed by the second one.
    if number == signal.SIGXCPU or (number == signal.SIGKILL and report["cpu_s"] >= limits.cpu_s):
        return Outcome.CPU_LIMIT, f"more than {limits.cpu_s} s of processor time"
    names = {known.value: known.name for known in signal.Signals}
    return Outcome.KILLED, names.get(number, f"signal {number}")


def _line(detail: str) -> str:
    return _encodable(_ADDRESS.sub("0x...", _CONTROL.sub(" ", detail))[:_LONGEST_DETAIL])


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _make_home() -> str:
    """Make a directory with the work directory in it; a private root, in memory, needs none."""
    home = tempfile.mkdtemp(prefix="sandbox-")
    # Other users may pass through it, but not list it.
    os.chmod(home, 0o711)  # noqa: S103
    os.mkdir(f"{home}/box", 0o700)
    try:
        if os.geteuid() == 0:
            os.chown(f"{home}/box", PROGRAM_USER, PROGRAM_USER)
    except OSError as error:
        shutil.rmtree(home)
        raise UserError(
            f"root here cannot act for the unprivileged user {PROGRAM_USER} ({error}), and no program may run as root: "
            "run as an ordinary user, or in a container with the capabilities CHOWN, SETUID and SETGID"
        ) from error
    return home


@functools.cache
def _library() -> dict[str, Any]:
    """Return what a program needs of the Python installation: the standard library, no site packages."""
    prefix = os.path.realpath(sys.base_prefix)
    library = sysconfig.get_path("stdlib", vars={"installed_base": prefix})
    stdlib = _directories(library, os.path.join(library, "lib-dynload"))
    # Where extension modules of the standard library find the shared libraries they need.
    triplet = sysconfig.get_config_var("MULTIARCH")
    system = ["/lib64", "/usr/lib64", *([f"/lib/{triplet}", f"/usr/lib/{triplet}"] if triplet else [])]
    libraries, zones = _directories(*system, os.path.dirname(library)), _directories("/usr/share/zoneinfo")
    shown = [path for path in (*libraries, *zones) if not any(path.startswith(f"{outer}/") for outer in libraries)]
    readable = [(os.devnull, "device"), (library, "list"), *((path, "tree") for path in zones)]
    for directory in libraries:
        if library.startswith(f"{directory}/"):
            readable += [(str(path), "file") for path in Path(directory).glob("*.so*") if path.is_file()]
        else:
            readable.append((directory, "tree"))
    # Everything but installed packages: most installations put them inside the library, some next to it.
    for path in Path(library).iterdir():
        if path.name not in _INSTALLED_PACKAGES and os.path.realpath(path).startswith(f"{os.path.realpath(library)}/"):
            readable.append((str(path), "tree" if path.is_dir() else "file"))
    return {"prefix": prefix, "stdlib": stdlib, "mounts": shown, "readable": readable}


def _directories(*paths: str) -> list[str]:
    return [path for path in dict.fromkeys(paths) if os.path.isdir(path)]

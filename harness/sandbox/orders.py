"""What a worker is told: before any program how to confine, then program after program."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.sandbox.interpreter import Interpreter, interpreter
from harness.sandbox.jail.confinement import BUBBLEWRAP, FULL, RLIMIT
from harness.sandbox.jail.namespaces import HOST_NAME
from harness.sandbox.model import Limits, Program

# The customary user that owns nothing, also what the kernel shows for users it cannot name; and a neighbour of it.
PROGRAM_USER, CHECKS_USER = 65534, 65533
BOX_ENTRIES, BOX_BYTES = 1000, 16 << 20
# In a root directory of its own that lives in memory; below no directory where an interpreter may lie.
_PRIVATE_BOX = "/box"
_IN_MEMORY = (FULL, BUBBLEWRAP)
# Our own code, to start from; a program's file rules do not open it.
_JAIL = str(Path(__file__).parent / "jail")
# That of the environment, where the C library does not bring it along.
_LOCALE = "/usr/lib/locale/C.utf8"
_RIGHTS_OF_ROOT = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_DAC_READ_SEARCH")


def policy(level: str, limits: Limits, box: str, processor: int | None) -> dict[str, Any]:
    """The fields of a :class:`harness.sandbox.jail.policy.Policy`.

    Args:
        level: How programs are confined.
        limits: What each of them may use.
        box: Their work directory, from :class:`Box`.
        processor: The one to run on, ``None`` for any.

    Raises:
        UserError: The level needs a program that is not installed.
    """
    python = interpreter()
    root = os.geteuid() == 0
    return {
        "level": level,
        "program_user": PROGRAM_USER if root else None,
        "checks_user": CHECKS_USER if root else None,
        "limits": _resource_limits(limits, level),
        "wall_s": limits.wall_s,
        "output_bytes": limits.output_kib << 10,
        "box": box,
        "box_entries": BOX_ENTRIES,
        "box_bytes": BOX_BYTES,
        "prefix": python.prefix,
        "stdlib": list(python.stdlib),
        "mounts": list(python.mounts),
        "readable": list(python.readable),
        "processor": processor,
        "shell": _bubblewrap(python, box) if level == BUBBLEWRAP else [],
    }


def order(program: Program) -> dict[str, str]:
    """What :meth:`harness.sandbox.jail.grader.Grader.grade` takes."""
    return {field.name: getattr(program, field.name) for field in fields(program)}


class Box:
    """The work directory of one worker's programs; below a private root it lives in memory and needs no care.

    Attributes:
        path: The directory.
    """

    def __init__(self, level: str) -> None:
        self._home = None if level in _IN_MEMORY else tempfile.mkdtemp(prefix="sandbox-")
        self.path = _PRIVATE_BOX
        if self._home is not None:
            # Others may pass through the home, but not look into it.
            os.chmod(self._home, 0o711)  # noqa: S103
            self.path = os.path.join(self._home, "box")
            os.mkdir(self.path, 0o700)
            if os.geteuid() == 0:
                _hand_over(self.path)

    def remove(self) -> None:
        """Deletes the directory and whatever programs left in it."""
        if self._home is not None:
            # Trees deeper than the interpreter can follow, and directories whose owner took all rights away.
            for tool in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
                subprocess.run([*tool, self._home], stderr=subprocess.DEVNULL, check=False)  # noqa: S603
            self._home = None


def _hand_over(path: str) -> None:
    try:
        os.chown(path, PROGRAM_USER, PROGRAM_USER)
    except OSError as error:
        raise UserError(
            f"root here cannot act for the unprivileged user {PROGRAM_USER} ({error}), and no program may run as root: "
            "run as an ordinary user, or in a container with the capabilities CHOWN, SETUID and SETGID"
        ) from error


@functools.cache
def _bubblewrap(python: Interpreter, box: str) -> list[str]:
    """The command line that puts a process into namespaces and a root directory like those of level ``full``."""
    found = shutil.which("bwrap")
    if found is None:
        raise UserError("bubblewrap is not installed: no program bwrap on the PATH")
    rights = [
        "--unshare-cgroup-try",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--hostname",
        HOST_NAME,
    ]
    if os.geteuid() == 0:
        # Without a user namespace: root that can become another user, end its processes and count its files.
        kept = [word for name in _RIGHTS_OF_ROOT for word in ("--cap-add", name)]
        rights += ["--cap-drop", "ALL", *kept]
    else:
        rights += ["--unshare-user"]
    shown = [python.executable, *python.mounts, _JAIL, *filter(os.path.isdir, [_LOCALE])]
    # Made here, or they would be as closed to others as the ones they stand for.
    above = dict.fromkeys(
        str(parent) for path in [*shown, os.devnull] for parent in reversed(Path(path).parents) if parent.name
    )
    folders = [word for path in above for word in ("--perms", "0755", "--dir", path)]
    binds = [word for path in shown for word in ("--ro-bind", path, path)]
    memory = ["--perms", "1777", "--size", str(BOX_BYTES), "--tmpfs", box]
    session = ["--die-with-parent", "--new-session", "--dev-bind", os.devnull, os.devnull]
    return [found, *rights, *folders, *binds, *memory, *session, "--"]


def _resource_limits(limits: Limits, level: str) -> dict[str, int]:
    values = {
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_mib << 20,
        "file_bytes": limits.file_mib << 20,
        "open_files": limits.open_files,
    }
    # The system counts per user, which is only this program in a user namespace of its own; with the user's other
    # processes in the count, the one certain limit is "no more".
    if level == FULL:
        values["processes"] = limits.threads
    elif level == RLIMIT:
        values["processes"] = 1
    return values

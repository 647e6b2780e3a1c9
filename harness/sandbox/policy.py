"""What a worker is told before any program: which limits, which users, which work directory, which files."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.sandbox.jail.confinement import FULL, RLIMIT
from harness.sandbox.model import Limits

# The customary user that owns nothing, also what the kernel shows for users it cannot name; and a neighbour of it.
PROGRAM_USER, CHECKS_USER = 65534, 65533
_PRESENT_USER = {"program_user": None, "checks_user": None}
# In a root directory of its own that lives in memory; below no directory where an interpreter may lie.
_PRIVATE_BOX = "/box"
_INSTALLED_PACKAGES = ("site-packages", "dist-packages")


def policy(level: str, limits: Limits, box: str) -> dict[str, Any]:
    """Return what a worker is told: how to confine programs, what each may use, and their work directory."""
    # The system counts threads per user, which is only this program in a user namespace of its own; with the user's
    # other processes in the count, the one certain limit is "no more".
    used = asdict(limits if level == FULL else replace(limits, threads=1))
    # None to stay the present user; where there are two, neither can touch the other.
    users = {"program_user": PROGRAM_USER, "checks_user": CHECKS_USER} if os.geteuid() == 0 else _PRESENT_USER
    return {"level": level, "limits": used, "box": box, **users, **_library()}


class Box:
    """The work directory of one worker's programs; in a private root it lives in memory and needs no care."""

    def __init__(self, level: str) -> None:
        self._home = tempfile.mkdtemp(prefix="sandbox-") if level == RLIMIT else None
        self.path = os.path.join(self._home, "box") if self._home else _PRIVATE_BOX
        if self._home is None:
            return
        # Others may pass through the home, but not look into it.
        os.chmod(self._home, 0o711)  # noqa: S103
        os.mkdir(self.path, 0o700)
        try:
            if os.geteuid() == 0:
                os.chown(self.path, PROGRAM_USER, PROGRAM_USER)
        except OSError as error:
            self.remove()
            raise UserError(
                f"root here cannot act for the unprivileged user {PROGRAM_USER} ({error}), and no program may run as "
                "root: run as an ordinary user, or in a container with the capabilities CHOWN, SETUID and SETGID"
            ) from error

    def remove(self) -> None:
        """Delete the directory and whatever programs left in it."""
        if self._home is not None:
            # Trees deeper than the interpreter can follow, and directories whose owner took all rights away.
            for tool in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
                subprocess.run([*tool, self._home], stderr=subprocess.DEVNULL, check=False)  # noqa: S603
            self._home = None


@functools.cache
def _library() -> dict[str, Any]:
    """What a program needs of the Python installation: the standard library and its libraries, no site packages.

    Where it is installed, ``sys.path`` of the bare interpreter, what a private root shows, what may be read.
    """
    prefix = os.path.realpath(sys.base_prefix)
    library = sysconfig.get_path("stdlib", vars={"installed_base": prefix})
    stdlib = _existing([library, os.path.join(library, "lib-dynload")])
    # Where extension modules of the standard library find the shared libraries they need.
    triplet = sysconfig.get_config_var("MULTIARCH")
    system = ["/lib64", "/usr/lib64", *([f"/lib/{triplet}", f"/usr/lib/{triplet}"] if triplet else [])]
    libraries, zones = _existing([*system, os.path.dirname(library)]), _existing(["/usr/share/zoneinfo"])
    shown = [path for path in (*libraries, *zones) if not any(path.startswith(outer + "/") for outer in libraries)]
    rules = [*_library_rules(libraries, library), (os.devnull, "device"), *((path, "tree") for path in zones)]
    return {"prefix": prefix, "stdlib": stdlib, "mounts": shown, "readable": rules}


def _existing(paths: Iterable[str]) -> list[str]:
    return [path for path in dict.fromkeys(paths) if os.path.isdir(path)]


def _library_rules(libraries: list[str], stdlib: str) -> Iterator[tuple[str, str]]:
    """Everything but installed packages: most installations put them inside the library, some beside it."""
    for directory in libraries:
        if stdlib.startswith(directory + "/"):
            yield from ((str(path), "file") for path in sorted(Path(directory).glob("*.so*")) if path.is_file())
        else:
            yield directory, "tree"
    yield stdlib, "list"
    for path in sorted(Path(stdlib).iterdir()):
        inside = os.path.realpath(path).startswith(os.path.realpath(stdlib) + "/")
        if inside and path.name not in _INSTALLED_PACKAGES:
            yield str(path), "tree" if path.is_dir() else "file"

"""Policy of a worker: level of confinement, limits, and files that programs may read."""

import functools
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.sandbox.jail.confinement import FULL
from harness.sandbox.model import Limits

# The user ``nobody``, which owns no files, and the user id before it.
PROGRAM_USER, CHECKS_USER = 65534, 65533


def policy(level: str, limits: Limits, work_dir: str) -> dict[str, Any]:
    """Build the policy of a worker as JSON values. Programs may write only to ``work_dir``."""
    # The kernel counts threads per user, and only in its own user namespace is a program the only process of its user.
    # Elsewhere the user's other processes count too, so the only safe limit is to allow no further thread.
    limits = limits if level == FULL else limits.model_copy(update={"threads": 1})
    # Two users, so that neither process can touch the other. None keeps the current user.
    program_user, checks_user = (PROGRAM_USER, CHECKS_USER) if os.geteuid() == 0 else (None, None)
    told = {"level": level, "limits": limits.model_dump(), "work_dir": work_dir, "parent": os.getpid()}
    return {**told, "program_user": program_user, "checks_user": checks_user, **_library()}


def make_home() -> str:
    """Create the home folder of a worker at level ``rlimit``, with its work directory. A private root needs none."""
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

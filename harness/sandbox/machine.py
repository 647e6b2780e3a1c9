"""What of this machine decides how well programs can be confined, and how fast; :mod:`.levels` finds out by trying."""

from __future__ import annotations

import enum
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.sandbox.jail import landlock
from harness.sandbox.jail.confinement import RLIMIT
from harness.sandbox.model import Limits, Program
from harness.sandbox.orders import CHECKS_USER, PROGRAM_USER
from harness.sandbox.worker import Worker

_HONEST = Program("def double(x):\n    return 2 * x\n", checks="assert double(2) == 4\n", entry_point="double")
_MEASURED = 20
_MIB = 1 << 20
# From capability.h: the bit of each right that root needs to hand programs and their files to another user.
_RIGHTS = {"CAP_CHOWN": 0, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}
# What the container engines leave in the root directory of their containers.
_MARKS = (".dockerenv", "run/.containerenv", "run/systemd/container")
# Version 1 of control groups has no word for "no limit", but a number near the largest one.
_NO_LIMIT = 1 << 60


class Hindrance(enum.StrEnum):
    """Why an unprivileged user gets no namespaces."""

    NOT_BUILT = "the kernel has no user namespaces"
    NONE_ALLOWED = "user.max_user_namespaces = 0"
    ROOT_ONLY = "kernel.unprivileged_userns_clone = 0"
    APPARMOR = "kernel.apparmor_restrict_unprivileged_userns = 1"
    FILTERED = "a system call filter lies on this process, as containers have it"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, as far as its files tell; where there is no ``/proc``, nothing is known.

    Attributes:
        kernel: Release of the Linux kernel; empty on other systems.
        container: The file that marks it as a container; empty where there is none.
        missing_rights: Rights that root lacks here to execute programs as another user; none for ordinary users.
        is_alone: Whether this process is root where there are no other users to become: in a user namespace that has
            one user only.
        filters: Whether the kernel offers system call filters.
        hindrances: What may keep an unprivileged user from namespaces.
        cgroup: Version of the control groups this process is in, ``None`` without.
        memory_mib: What they let it use, with all that it starts, in MiB; ``None`` without a limit.
        processes: The same for processes and threads.
    """

    kernel: str
    container: str
    missing_rights: tuple[str, ...]
    is_alone: bool
    filters: bool
    hindrances: tuple[Hindrance, ...]
    cgroup: int | None
    memory_mib: int | None
    processes: int | None


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds: until a worker is ready, and for an honest program with a check on that worker (median)."""

    start_s: float
    program_s: float


def is_fit(level: str) -> bool:
    """Whether a level holds programs that real models write, which nobody has read before they run."""
    return level != RLIMIT


def read(root: Path = Path("/")) -> Machine:
    """Reads the files that tell.

    Args:
        root: The root directory of the machine.
    """
    status = dict(line.split(":", 1) for line in _text(root / "proc/self/status").splitlines() if ":" in line)
    is_root = status.get("Uid", "").split()[1:2] == ["0"]
    rights = int(status.get("CapEff", "0"), 16)
    memory, processes = _limit(root, "memory", "memory.max", "memory.limit_in_bytes"), _limit(root, "pids", "pids.max")
    return Machine(
        kernel=_text(root / "proc/sys/kernel/osrelease").strip(),
        container=next((f"/{mark}" for mark in _MARKS if (root / mark).exists()), ""),
        missing_rights=tuple(name for name, bit in _RIGHTS.items() if is_root and not rights >> bit & 1),
        is_alone=is_root and not all(_is_mapped(root, user) for user in (PROGRAM_USER, CHECKS_USER)),
        filters=(root / "proc/sys/kernel/seccomp/actions_avail").exists(),
        hindrances=tuple(_hindrances(root, status.get("Seccomp", "").strip())) if status else (),
        cgroup=_cgroup_version(root),
        memory_mib=None if memory is None else memory // _MIB,
        processes=processes,
    )


def landlock_version() -> int | None:
    """Version of the file rules that the kernel offers, ``None`` where it has none or a filter hides them."""
    try:
        return landlock.version() if sys.platform == "linux" else None
    except OSError:
        return None


def bubblewrap() -> str | None:
    """Path and version of bubblewrap, ``None`` where it is not installed."""
    found = shutil.which("bwrap")
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    return f"{found}, {said.split()[-1]}" if said.split() else found


def measure(level: str) -> Speed:
    """Starts a worker and has it execute an honest program a few times.

    Raises:
        OSError: The worker does not work.
        UserError: The level needs a program that is not installed.
    """
    started = time.perf_counter()
    worker = Worker(level, Limits())
    try:
        worker.start()
        ready = time.perf_counter()
        return Speed(ready - started, statistics.median(_seconds(worker) for _ in range(_MEASURED)))
    finally:
        worker.close()


def _seconds(worker: Worker) -> float:
    started = time.perf_counter()
    worker.ask(_HONEST)
    return time.perf_counter() - started


def _is_mapped(root: Path, user: int) -> bool:
    """Whether a user exists in the user namespace of this process."""
    ranges = [tuple(map(int, line.split())) for line in _text(root / "proc/self/uid_map").splitlines()]
    return any(first <= user < first + count for first, _, count in ranges)


def _hindrances(root: Path, filtered: str) -> Iterator[Hindrance]:
    settings = root / "proc/sys"
    if not (root / "proc/self/ns/user").exists():
        yield Hindrance.NOT_BUILT
    if _text(settings / "user/max_user_namespaces").strip() == "0":
        yield Hindrance.NONE_ALLOWED
    if _text(settings / "kernel/unprivileged_userns_clone").strip() == "0":
        yield Hindrance.ROOT_ONLY
    if _text(settings / "kernel/apparmor_restrict_unprivileged_userns").strip() == "1":
        yield Hindrance.APPARMOR
    if filtered == "2":
        yield Hindrance.FILTERED


def _cgroup_version(root: Path) -> int | None:
    if (root / "sys/fs/cgroup/cgroup.controllers").exists():
        return 2
    return 1 if _groups(root) else None


def _limit(root: Path, controller: str, name: str, old_name: str = "") -> int | None:
    """The lowest limit on the way from this process's group up to the root of all groups.

    Args:
        root: The root directory of the machine.
        controller: What is limited.
        name: The file that has the limit.
        old_name: Its name in version 1, where that is another.
    """
    groups = _groups(root)
    top = root / "sys/fs/cgroup"
    if (top / "cgroup.controllers").exists():
        own = groups.get("", "/")
    else:
        own, top, name = groups.get(controller, "/"), top / controller, old_name or name
    group = top / own.lstrip("/")
    places = [group, *(above for above in group.parents if above.is_relative_to(top))]
    found = [int(text) for place in places if (text := _text(place / name).strip()).isdecimal()]
    return min((limit for limit in found if limit < _NO_LIMIT), default=None)


def _groups(root: Path) -> dict[str, str]:
    """The group this process is in, by controller; the empty one stands for all of version 2."""
    lines = (line.split(":", 2) for line in _text(root / "proc/self/cgroup").splitlines())
    return {controller: path for _, controllers, path in lines for controller in controllers.split(",")}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

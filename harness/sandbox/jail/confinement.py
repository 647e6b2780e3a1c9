"""Confinement of a worker's processes: each gives up its rights in a fixed order."""

import os
import resource
import sys
from collections.abc import Iterable, Mapping
from types import SimpleNamespace

from . import linux
from .protocol import CHECKS_MIB

FULL, RLIMIT = "full", "rlimit"
_RLIMITS = {
    "cpu_s": (resource.RLIMIT_CPU, 1),
    # macOS refuses any limit below the hundreds of GiB that a process has reserved there.
    **({} if sys.platform == "darwin" else {"memory_mib": (resource.RLIMIT_AS, 1 << 20)}),
    "file_mib": (resource.RLIMIT_FSIZE, 1 << 20),
    "open_files": (resource.RLIMIT_NOFILE, 1),
    "threads": (resource.RLIMIT_NPROC, 1),
}
_MOST_FILES = 1 << 12  # if the system has no limit
Policy = SimpleNamespace  # fields: harness.sandbox.worker.policy (``dataclasses`` is slow to import)


def isolate(policy: Policy) -> None:
    """Enter new namespaces (level ``full``). The next child is the first process in them."""
    os.chdir(policy.prefix)
    _become(policy, policy.program_user)
    linux.enter_namespaces(policy.prefix, policy.mounts, policy.work_dir)


def prepare_file_access(policy: Policy, work_dir: str | None) -> tuple[int | None, list[int]]:
    """Return the Landlock ruleset (None at ``rlimit``) and descriptors to keep open, so that imports work for root."""
    pinned = []
    if policy.program_user is not None and os.geteuid() == 0 and sys.platform == "linux":
        # Another user cannot reach an interpreter in root's home directory, although the library itself is readable;
        # descriptors opened before the change of user still lead there. In a private root no process is root any more.
        pinned = [os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in policy.stdlib]
        sys.path[:] = [f"/proc/self/fd/{descriptor}" for descriptor in pinned]
        for module in list(sys.modules.values()):
            if search := getattr(module, "__path__", None):
                # The directory of extension modules is inside the first one.
                module.__path__ = [path.replace(policy.stdlib[0], sys.path[0], 1) for path in search]
        sys.path_importer_cache.clear()
    return None if policy.level == RLIMIT else linux.landlock_rules(policy.readable, work_dir), pinned


def confine_fork_server(policy: Policy) -> None:
    """Confine the fork server and its children (``full``). At ``rlimit`` it keeps the right to kill their processes."""
    if policy.level != RLIMIT:
        linux.drop_capabilities()
        # Not the limit on processor time, which has to count from the start of each child.
        set_rlimits({name: value for name, value in policy.limits.items() if name != "cpu_s"})
        linux.forbid_new_privileges()


def confine_program(policy: Policy, rules: int | None, parent: int) -> None:
    """Confine a program's process. ``rules`` is None at ``rlimit``. At ``full`` the process ends with ``parent``."""
    if rules is None:
        _become(policy, policy.program_user)
        set_rlimits(policy.limits)
    else:
        set_rlimits({"cpu_s": policy.limits["cpu_s"]})
        linux.die_with_parent(parent)
        linux.apply_landlock(rules)
        linux.filter_calls()
    _refuse_root()


def confine_checks(policy: Policy, rules: int | None) -> None:
    """Confine the process of the checks. Raises OSError if that is not possible."""
    _become(policy, policy.checks_user)
    set_rlimits({"memory_mib": max(policy.limits["memory_mib"], CHECKS_MIB), "file_mib": 0})
    if linux.KNOWN:
        linux.die_with_parent(policy.parent)
    if rules is not None:
        linux.forbid_new_privileges()
        linux.apply_landlock(rules)
        linux.drop_capabilities()
        linux.filter_calls()
    _refuse_root()


def set_rlimits(limits: Mapping[str, float]) -> None:
    """Set the limits that the kernel supports, unless lower limits are in force. Turn core dumps off."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in _RLIMITS.keys() & limits.keys():
        resource_, unit = _RLIMITS[name]
        soft = int(limits[name]) * unit
        # A program may catch SIGXCPU at the soft limit, but not SIGKILL at the hard limit.
        hard = soft + 1 if name == "cpu_s" else soft
        _, ceiling = resource.getrlimit(resource_)
        if ceiling == resource.RLIM_INFINITY:
            ceiling = hard
        resource.setrlimit(resource_, (min(soft, ceiling), min(hard, ceiling)))


def keep_only(descriptors: Iterable[int]) -> None:
    """Close all file descriptors except the first three and the given ones."""
    start = 3
    for descriptor in sorted(descriptor for descriptor in descriptors if descriptor >= start):
        os.closerange(start, descriptor)
        start = descriptor + 1
    most = os.sysconf("SC_OPEN_MAX")
    os.closerange(start, most if most > 0 else _MOST_FILES)


def _become(policy: Policy, user: int | None) -> None:
    if user is not None and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        if policy.level != RLIMIT:
            # PR_SET_DUMPABLE, so that ``/proc/self`` belongs to this user again.
            linux.call("prctl", 4, 1, 0, 0, 0)


def _refuse_root() -> None:
    if 0 in (os.getuid(), os.geteuid()):
        raise PermissionError("the program would run as root")

"""The order in which a process gives up its rights; each level is a subset of the one above it."""

from __future__ import annotations

import os
import sys

from . import identity, imports, landlock, linux, namespaces, rlimits, seccomp
from .policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Counted from the start of a process, while the others bound the whole of what it may hold.
_PER_PROCESS = "cpu_s"
FULL, BUBBLEWRAP, NO_NAMESPACES, RLIMIT = "full", "full/bubblewrap", "no-namespaces", "rlimit"


def isolate(policy: Policy) -> None:
    """Moves the calling process to where programs run: its next child is the first process there (``full`` only).

    Raises:
        OSError: The machine does not allow it.
    """
    os.chdir(policy.prefix)
    _become(policy, policy.program_user)
    namespaces.enter(policy.prefix, policy.mounts, policy.box)


def file_rules(policy: Policy, box: str | None) -> tuple[int | None, list[int]]:
    """What a warm process prepares while paths are still reachable.

    Args:
        policy: How programs are confined.
        box: The directory that may be written, if any.

    Returns:
        The descriptor of the file rules, if the level has any, and further descriptors that have to stay open.
    """
    in_private_root = policy.level in (FULL, BUBBLEWRAP) and box is not None
    closed = os.geteuid() == 0 and policy.program_user is not None and sys.platform == "linux" and not in_private_root
    pinned = imports.pin(policy.stdlib) if closed else []
    if policy.level == NO_NAMESPACES and landlock.version() < landlock.TRUNCATION_SINCE:
        raise OSError(
            f"Landlock {landlock.version()} lets files be emptied; {landlock.TRUNCATION_SINCE} does not (Linux 6.2)"
        )
    rules = None if policy.level == RLIMIT else landlock.ruleset(policy.readable, box)
    return rules, pinned


def confine_nursery(policy: Policy, rules: int | None) -> Callable[[int], None]:
    """What the warm process does to itself for all programs that it is going to start.

    As much as possible happens here: what a process does after the fork is done again for every program.

    Args:
        policy: How programs are confined.
        rules: The descriptor :func:`file_rules` gave.

    Returns:
        What the process of a program does to itself, last of all; it is given the process id of the warm process, as
        the other sees it, and raises ``OSError`` where it would not be confined. Nothing of it can be undone.

    Raises:
        OSError: The machine does not allow it.
    """
    if rules is None:
        return lambda parent: _confine_weakly(policy)
    if os.geteuid() != 0:
        linux.drop_capabilities()
    rlimits.apply({name: value for name, value in policy.limits.items() if name != _PER_PROCESS})
    linux.forbid_new_privileges()
    # Elsewhere a private root shows no file whose owner the program could be.
    seccomp.install_first_part(*(seccomp.FILE_ATTRIBUTES if policy.level == NO_NAMESPACES else ()))
    die_with, restrict, filter_calls = linux.dying_with_parent(), landlock.restricting(rules), seccomp.second_part()
    time = {_PER_PROCESS: policy.limits[_PER_PROCESS]}

    def confine(parent: int) -> None:
        _become(policy, policy.program_user)
        rlimits.apply(time)
        die_with(parent)
        restrict()
        filter_calls()
        identity.refuse_root()

    return confine


def _confine_weakly(policy: Policy) -> None:
    _become(policy, policy.program_user)
    rlimits.apply(policy.limits)
    identity.refuse_root()


def confine_checks(policy: Policy, rules: int | None, limits: dict[str, int]) -> None:
    """What the process of the checks does to itself; it serves many programs.

    Args:
        policy: How programs are confined.
        rules: The descriptor :func:`file_rules` gave.
        limits: By name as in :mod:`.rlimits`.

    Raises:
        OSError: The machine does not allow it, or the process would still be root.
    """
    _become(policy, policy.checks_user)
    rlimits.apply(limits)
    if rules is not None:
        linux.forbid_new_privileges()
        landlock.restrict(rules)
        linux.drop_capabilities()
        seccomp.install()
    identity.refuse_root()


def keep_only(descriptors: Iterable[int]) -> None:
    """Closes all descriptors but the first three and these."""
    start = 3
    for descriptor in sorted(descriptor for descriptor in descriptors if descriptor >= start):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _become(policy: Policy, user: int | None) -> None:
    if user is not None and os.geteuid() == 0:
        identity.become(user)
        if policy.level != RLIMIT:
            linux.own_proc_entry()

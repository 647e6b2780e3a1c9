"""How well this machine can confine programs, found by trying.

=============== ===========================================================================================
level           what holds a program
=============== ===========================================================================================
full            own user, mount, process, network, IPC and host name namespaces with a root directory in memory
                that shows the standard library and nothing else; and all of ``no-namespaces``
full/bubblewrap the same, with namespaces made by the program bubblewrap, where we may not make them ourselves
no-namespaces   file rules (Landlock), a system call filter (seccomp: no network, no process, no signal to others),
                resource limits; existence and size of files can be seen
rlimit          resource limits and an unprivileged user; the program can read what that user can read, use the
                network, and signal that user's processes: for programs that are faulty, not for hostile ones
=============== ===========================================================================================
"""

from __future__ import annotations

import functools

from harness.errors import UserError
from harness.sandbox.jail.confinement import BUBBLEWRAP, FULL, NO_NAMESPACES, RLIMIT
from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.verdict import failed
from harness.sandbox.worker import Worker

LEVELS = (FULL, BUBBLEWRAP, NO_NAMESPACES, RLIMIT)
_LIMITS = Limits(cpu_s=5, wall_s=20.0)

# Loads from disk after confinement, both Python and shared objects; root must be gone.
_IMPORTS = "import os, decimal, json, random, statistics, zoneinfo\nassert os.getuid() != 0 != os.geteuid()\n"
_DENIALS = """
import socket
def denied(action):
    try:
        action()
    except OSError:
        return True
    return False
assert denied(lambda: open("/etc/passwd"))
assert denied(lambda: os.listdir("/"))
assert denied(socket.socket)
assert denied(os.fork)
assert denied(lambda: os.kill(os.getppid(), 0))
"""


@functools.cache
def best_level() -> str:
    """The best level this machine offers, tried once a process.

    Raises:
        UserError: None works.
    """
    found: dict[str, str] = {}
    for level in LEVELS:
        execution = probe(level)
        if execution.outcome is Outcome.PASSED:
            return level
        found[level] = execution.detail
    reasons = "; ".join(f"{level}: {detail}" for level, detail in found.items())
    raise UserError(
        f"no way to execute programs safely on this machine ({reasons}); expected at least plain resource limits "
        "under an unprivileged user: run as such a user, with a Python it can read"
    )


def require_level(level: str) -> str:
    """The level itself if this machine offers it.

    Raises:
        UserError: It does not, or there is no such level.
    """
    if level not in LEVELS:
        raise UserError(f"unknown sandbox level {level!r}; expected one of {', '.join(LEVELS)}")
    execution = probe(level)
    if execution.outcome is not Outcome.PASSED:
        raise UserError(
            f"sandbox level {level!r} does not work here ({execution.detail}); this machine offers {best_level()!r}"
        )
    return level


@functools.cache
def probe(level: str) -> Execution:
    """Runs a program that fails unless it is confined as the level promises; ``PASSED`` means available."""
    program = Program(source=_IMPORTS if level == RLIMIT else _IMPORTS + _DENIALS)
    worker: Worker | None = None
    try:
        worker = Worker(level, _LIMITS)
        worker.start()
        return worker.ask(program)
    except (OSError, ValueError, UserError) as error:
        return failed(f"{type(error).__name__}: {error}")
    finally:
        if worker is not None:
            worker.close()

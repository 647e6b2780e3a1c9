"""What an entry of the battery is, and the pieces its programs are made of."""

from __future__ import annotations

import os
from dataclasses import dataclass

from harness.sandbox import Limits, Outcome
from harness.sandbox.jail import linux

PASSED, WRONG, RAISED = Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.EXCEPTION
CPU, WALL, MEMORY, OUTPUT = Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT
KILLED, UNREADABLE = Outcome.KILLED, Outcome.NOT_EXECUTABLE

QUICK = Limits(cpu_s=2, wall_s=20.0, memory_mib=256)
# For programs that never end by themselves, busy or waiting.
BUSY = Limits(cpu_s=1, wall_s=20.0, memory_mib=256)
WAITING = Limits(cpu_s=1, wall_s=0.5, memory_mib=256)

ARCHITECTURES = ("x86_64", "aarch64")

CHECKS = "assert f(20) == 42"
RIGHT_PROGRAM = "def f(x):\n    return 2 * x + 2\n"
WRONG_PROGRAM = "def f(x):\n    return 41\n"

# An honest program that looks at its work directory and writes there.
WRITER = """
import os
open("own", "w").close()
found = [os.listdir("."), os.listxattr("."), os.stat(".").st_mode & 0o7777]
"""
ONLY_ITS_OWN = "assert found[0] == ['own'] and found[1] == []"

# Whatever the programs create outside their process bears this name, or listens here, so that it can be looked for.
NAME, PORT = "wombat", 47851

# Why an entry says nothing about the level "rlimit".
OPEN_FILES = "the program reads and writes what its user may"
OPEN_NETWORK = "the network is open"
OPEN_PROCESSES = "the user's other processes and the kernel's interfaces are open"


@dataclass(frozen=True, slots=True)
class Entry:
    """A hostile program and how it has to end.

    Attributes:
        name: Unique.
        source: The program.
        ends: The outcomes it may have at every level that promises one; several where the interpreter's version, or
            which of two limits is reached first, decides.
        checks: What it is checked with.
        setup: What runs before the program and before the checks.
        right: A program that passes the same checks; may be empty where ``ends`` is ``PASSED``.
        fools: Whether a judge that runs program and checks in one process lets it pass.
        rlimit: Outcomes at level ``rlimit`` where they are others, or why nothing is promised there.
        limits: What it runs under.
        lasts: Whether it takes as long as a limit; shown at the best level only.
        machines: Architectures it is written for, empty for all.
    """

    name: str
    source: str
    ends: tuple[Outcome, ...]
    checks: str = CHECKS
    setup: str = ""
    right: str = RIGHT_PROGRAM
    fools: bool = False
    rlimit: tuple[Outcome, ...] | str = ()
    limits: Limits = QUICK
    lasts: bool = False
    machines: tuple[str, ...] = ()

    def expected(self, level: str) -> tuple[Outcome, ...]:
        """The outcomes at a level, empty where nothing is promised there."""
        if level != "rlimit" or not self.rlimit:
            return self.ends
        return () if isinstance(self.rlimit, str) else self.rlimit


# A program that tries what must not work and returns what did.
NOTHING = "assert f(0) == [], f(0)"
_PROBE = """
import ctypes, errno, os

libc = ctypes.CDLL(None, use_errno=True)

def raw(number, *arguments):
    # Through, as soon as the kernel itself looks at the arguments.
    words = [ctypes.c_ulong(word) if isinstance(word, int) else word for word in arguments]
    if libc.syscall(ctypes.c_long(number), *words) == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise PermissionError(number)

def worked(action):
    try:
        action()
    except (OSError, ValueError):
        return False
    return True

def f(x):
    global tried
    if tried is None:
        tried = [name for name, action in ACTIONS.items() if worked(action)]
    return tried

tried = None
"""


def probe(actions: dict[str, str], before: str = "") -> str:
    """The source of a program that returns the names of those actions that worked.

    Args:
        actions: Expressions by name; one works unless it raises an ``OSError`` or ``ValueError``.
        before: Source that the expressions need.
    """
    lines = "".join(f"    {name!r}: lambda: {action},\n" for name, action in actions.items())
    return f"{_PROBE}{before}\nACTIONS = {{\n{lines}}}\n"


def system_calls(*calls: str) -> str:
    """A probe that makes system calls directly.

    Args:
        *calls: Name and arguments, such as ``"mount 0 0 0 0 0"``; those this architecture lacks are left out.
    """
    actions = {}
    for call in calls if os.uname().machine in ARCHITECTURES else ():
        name, *arguments = call.split()
        number = linux.number(name)
        if number is not None:
            actions[call] = f"raw({', '.join([str(number), *arguments])})"
    return probe(actions)


# A program that has found its end of the connection, and the form of what it says there.
CONNECTION = """
import json, os, stat

def connections():
    found = []
    for descriptor in range(3, 1024):
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:
            continue
        if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
            found.append(descriptor)
    return found

def framed(message):
    return len(message).to_bytes(4, "little") + message

def say(content):
    for descriptor in connections():
        try:
            os.write(descriptor, content)
        except OSError:
            pass

def reply(*parts):
    say(framed(json.dumps(parts).encode()))
"""

"""Programs, limits and outcomes of the sandbox."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """A program that runs as a module named ``solution``, and checks that run in another process and see its names."""

    source: str
    # Trusted source that runs before the program, and before the checks, such as imports the task grants.
    setup: str = ""
    # Trusted source; an AssertionError it raises means a wrong answer. The standard library needs no import there.
    checks: str = ""
    # The function the checks are about: it comes from the program even where a built-in has its name.
    entry_point: str = ""
    # A variable of the program whose text is wanted.
    show: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one program."""

    # Processor time of all threads together; it decides, because it does not depend on what else the machine does.
    cpu_s: int = 10
    # From start to forced end, for programs that wait: a generous multiple of the processor time.
    wall_s: float = 120.0
    # Address space.
    memory_mib: int = 1024
    # Standard output that is kept.
    output_kib: int = 64
    # The largest file.
    file_mib: int = 1
    open_files: int = 64
    # Alive at once; at ``rlimit`` no second one where the system counts threads as processes.
    threads: int = 64


class Outcome(enum.StrEnum):
    """The end of an execution; only :attr:`SANDBOX_ERROR` says nothing about the program."""

    PASSED = "passed"
    WRONG_ANSWER = "wrong_answer"
    EXCEPTION = "exception"
    CPU_LIMIT = "cpu_limit"
    WALL_LIMIT = "wall_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    KILLED = "killed"
    NOT_EXECUTABLE = "not_executable"
    SANDBOX_ERROR = "sandbox_error"


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of one execution; the same program gives the same bytes, so no time and no address is in it."""

    outcome: Outcome
    # One line for people, such as the exception and the line that raised it.
    detail: str
    # What the program printed, invalid UTF-8 replaced, cut at the limit; empty where the moment of a forced end would
    # decide how much there is.
    stdout: str
    # The first 4096 characters of the variable that was asked for.
    shown: str | None = None

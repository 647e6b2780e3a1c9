"""Programs, limits and outcomes of the sandbox."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """A program that runs as a module named ``solution``, and checks that run in another process and see its names."""

    source: str
    setup: str = ""  # trusted source, executed before the program and before the checks
    checks: str = ""  # trusted; an AssertionError means a wrong answer, and the standard library needs no import
    entry_point: str = ""  # the function that the checks test; never a built-in of that name
    show: str = ""  # a variable of the program whose text is returned


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one program."""

    cpu_s: int = 10  # of all threads together; independent of the load of the machine, so it is the limit that decides
    wall_s: float = 120.0  # for programs that wait
    memory_mib: int = 1024  # address space
    file_mib: int = 1  # of the largest file
    open_files: int = 64
    threads: int = 64  # at once; one at ``rlimit`` on Linux, which counts threads as processes


class Outcome(enum.StrEnum):
    """The end of an execution; only :attr:`SANDBOX_ERROR` says nothing about the program."""

    PASSED = "passed"
    WRONG_ANSWER = "wrong_answer"
    EXCEPTION = "exception"
    NOT_PLAIN = "not_plain"
    CPU_LIMIT = "cpu_limit"
    WALL_LIMIT = "wall_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    KILLED = "killed"
    NOT_EXECUTABLE = "not_executable"
    SANDBOX_ERROR = "sandbox_error"


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of one execution; the same program gives the same text, so no time and no address is in it."""

    outcome: Outcome
    detail: str  # one line for people, such as the exception and the line that raised it
    shown: str | None = None  # the first 4096 characters of the variable ``Program.show``
    is_loaded: bool = True  # whether the program came to the end of its top level
    was_idle: bool = False  # whether it hardly used the processor before a limit of wall time

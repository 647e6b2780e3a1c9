"""Programs, limits and outcomes of the sandbox."""

import enum
from dataclasses import dataclass
from pathlib import Path

from pydantic import PositiveFloat, PositiveInt

from harness.files import Declaration, read


@dataclass(frozen=True, slots=True)
class Program:
    """A program, which runs as a module named ``solution``, and the checks that use its names from another process."""

    source: str
    setup: str = ""  # trusted; runs before the program, and before the checks
    checks: str = ""  # trusted; an AssertionError means a wrong answer; the standard library needs no import
    entry_point: str = ""  # the function under test; a built-in of that name does not stand in for it
    show: str = ""  # a variable of the program to return as text


class Limits(Declaration):
    """Limits of one program, explained in ``limits.yaml``."""

    cpu_s: PositiveInt
    wall_s: PositiveFloat
    memory_mib: PositiveInt
    file_mib: PositiveInt
    open_files: PositiveInt
    threads: PositiveInt


LIMITS: Limits = read(Path(__file__).with_name("limits.yaml"), Limits)


class Outcome(enum.StrEnum):
    """How an execution ended. ``SANDBOX_ERROR`` says nothing about the program."""

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
    """Result of one execution. It has no times or addresses, so that it is deterministic."""

    outcome: Outcome
    detail: str  # one line, such as the exception and the line that raised it
    shown: str | None = None  # the first 4096 characters of the variable ``Program.show``
    is_loaded: bool = True  # whether the program reached the end of its top level
    was_idle: bool = False  # whether it hardly used the processor before the wall limit

"""What goes into the sandbox and what comes out of it."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass

from harness.errors import UserError


@dataclass(frozen=True, slots=True)
class Program:
    """A program under test, and what says how it did.

    The program runs in a process of its own, in the namespace of a module named ``solution``: a block guarded by
    ``__name__ == "__main__"`` does not run. The checks run in another process. Names they use and nobody binds come
    from the program: plain values as such, everything else as a stand-in that asks the program.

    Attributes:
        source: The program under test.
        setup: Trusted source that runs before it, and before the checks, such as imports the task grants.
        checks: Trusted source; an ``AssertionError`` it raises means a wrong answer. Modules of the standard library
            need no import there.
        entry_point: The function the checks are about: it comes from the program even where a built-in has its name.
        show: A variable of the program whose text is wanted (:attr:`Execution.shown`).
    """

    source: str
    setup: str = ""
    checks: str = ""
    entry_point: str = ""
    show: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use.

    Processor time decides, because it does not depend on what else the machine does; the wall clock only ends
    programs that wait.

    Attributes:
        cpu_s: Processor time in whole seconds, all threads together.
        wall_s: Seconds from start to forced end; keep it a generous multiple of ``cpu_s``.
        memory_mib: Address space in MiB.
        output_kib: Standard output that is kept, in KiB.
        file_mib: Size of the largest file in MiB.
        open_files: Descriptors open at once.
        threads: Threads alive at once; new processes are never allowed. Level ``full`` enforces the number,
            ``no-namespaces`` only through the address space of their stacks, ``rlimit`` allows no second thread
            where the system counts threads as processes.
    """

    cpu_s: int = 10
    wall_s: float = 120.0
    memory_mib: int = 1024
    output_kib: int = 64
    file_mib: int = 1
    open_files: int = 64
    threads: int = 64

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value <= 0:
                raise UserError(f"sandbox limit {name} is {value}; expected a number above 0, such as the default")


class Outcome(enum.StrEnum):
    """How an execution ended; only :attr:`SANDBOX_ERROR` says nothing about the program."""

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
    """The result of one execution; the same program gives the same bytes, so no time and no address is in it.

    Attributes:
        outcome: How it ended.
        detail: One line for people, such as the exception and the line that raised it.
        stdout: What the program printed (invalid UTF-8 replaced). Empty where the moment of a forced end would
            decide how much there is; cut at the limit.
        shown: Text of the variable that :attr:`Program.show` names, its first 4096 characters; ``None`` without one.
        assertions: How many assertions of the checks held.
        first: How the first execution ended, where a time limit made a second one necessary.
    """

    outcome: Outcome
    detail: str
    stdout: str
    shown: str | None = None
    assertions: int = 0
    first: Outcome | None = None

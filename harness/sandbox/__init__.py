"""Run programs that models wrote, each in a fresh, confined process, and their checks in another process.

Covered, by :class:`Sandbox` at level ``full`` (Linux with namespaces, Landlock and seccomp):

- A program cannot forge a verdict. It never holds its checks or an expected value; all it sends is plain data.
- It can read the standard library alone, write to its work directory alone, and reach no network and no other process.
- Time, memory, threads, files and output are limited (``limits.yaml``), and nothing of a program outlives it.

At level ``rlimit`` only verdicts and limits are covered, so programs of real models are refused.

Not covered: faults of the kernel, measuring what else uses the processor, and programs that recognise a published
question and return its answer. Set-up and checks are trusted. ``docs/sandbox.md`` has the details.

One worker a processor, and its messages (``jail/`` has the code of its three processes, the standard library alone)::

    Sandbox            source, setup, checks, entry_point
    (this process)  -------------------------------------->  grader: runs the checks, gives the verdict
                    <--------------------------------------    |     ^                         |    ^
                           outcome, detail, times              |     | the program's           |    |
                                                      "start", |     | connection;  source, then    | plain values,
                                                      "end"    |     | how it ended  calls     |    | references
                                                               v     |                         v    |
                                                             fork server  --- forks --->  program: confined
"""

from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.pool import Sandbox

__all__ = ["Execution", "Limits", "Outcome", "Program", "Sandbox"]

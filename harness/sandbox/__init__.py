"""Run programs that models wrote, each in a fresh, confined process, and their checks in another process.

A program never holds its checks or an expected value; all it sends is plain data. Set-up and checks are trusted.
``docs/sandbox.md`` says what each level of confinement covers, and what it does not.

Messages between this process and the three processes of a worker (code in ``jail/``), with one worker per processor::

    Sandbox --- source, setup, checks --->  grader: runs the checks  --- source, then calls --->  program: confined
            <--- outcome, detail ---------    |  ^                   <--- values, references ---     ^
                               "start", "end" |  | connection of a new program, how it ended         | fork
                                              v  |                                                   |
                                            fork server: holds no program, no checks ----------------+
"""

from harness.sandbox.jail.confinement import FULL
from harness.sandbox.pool import Sandbox
from harness.sandbox.worker import Execution, Limits, Outcome, Program

__all__ = ["FULL", "Execution", "Limits", "Outcome", "Program", "Sandbox"]

"""Programs that want to pass without being right, to see what is not theirs, to take what they may not, or to stay.

The programs are grouped by what they attack; :data:`KINDS` is the usual list of hostile programs, and every one on it
has entries here or, as :data:`ELSEWHERE` says, in the neighbouring tests. What those try when a program starts is tried
here from inside a call that the checks make.
"""

from __future__ import annotations

import os
from types import ModuleType

from tests.harness.sandbox.battery import connection, disk, ends, exhaustion, kernel, spying, streams, texts, values
from tests.harness.sandbox.battery.entry import Entry

THEMES: tuple[ModuleType, ...] = (exhaustion, ends, streams, values, connection, spying, kernel, disk, texts)

KINDS = {
    1: "fork bomb",
    2: "thread bomb",
    3: "list doubled until memory ends",
    4: "one huge allocation",
    5: "arithmetic on huge integers",
    6: "pattern that backtracks while it holds the interpreter's lock",
    7: "busy loop",
    8: "sleep past the limit",
    9: "signals ignored or blocked",
    10: "loop that catches everything",
    11: "immediate exit before the checks",
    12: "SystemExit, at the top or in a call",
    13: "exit in an exit handler or a finaliser",
    14: "daemon that outlives its parents",
    15: "new session or process group",
    16: "fault in foreign memory",
    17: "recursion beyond the stack",
    18: "recursion in text or comparison",
    19: "endless output",
    20: "one huge line",
    21: "bytes that are no text, escape sequences",
    22: "false markers of success in the output",
    23: "writing to every descriptor",
    24: "closed descriptors",
    25: "reading standard input",
    26: "object equal to everything",
    27: "subclass of a built-in type that lies",
    28: "not-a-number",
    29: "replaced built-in functions",
    30: "replacing the checks by tracing, hooks or garbage collection",
    31: "walking frames up to the expected values",
    32: "reading the source of the checks",
    33: "reading data, arguments and environments of others",
    34: "attacking other processes",
    35: "writing outside the work directory, into the library",
    36: "links out of the work directory",
    37: "filling the disk, with bytes or with files",
    38: "the network",
    39: "reading the environment",
    40: "dependence on time, seeds and hashes",
    41: "imports beyond the standard library",
    42: "main block, command line arguments",
    43: "fences, prose, byte order marks, null bytes",
    44: "class, coroutine, generator or print instead of an answer",
    45: "changed arguments",
    46: "replaced random numbers or clock",
    47: "flood of warnings",
    48: "slow but right, while the machine is busy",
}

# Kinds that tests.harness.sandbox.test_sandbox_outcomes.SLOW_CASES covers.
ELSEWHERE = {5: "big power", 6: "regex", 10: "caught"}

BATTERY: tuple[Entry, ...] = tuple(
    entry for theme in THEMES for entry in theme.PROGRAMS if not entry.machines or os.uname().machine in entry.machines
)

"""The battery: hostile programs and a few honest ones that look hostile, with how each has to end (``battery.txt``).

A program starts with ``## name | outcomes | options``; several outcomes where the interpreter, or which of two limits
comes first, decides. Its checks start with ``-- ``, its set-up with ``-- setup``. ``@ name`` stands for a piece, which
starts with ``## name | piece``; ``@ calls`` for a program that makes system calls, the rest of its lines. Options are
``waiting`` and ``busy`` (limits), ``lasts`` (as long as a limit, shown at the best level only), ``daily`` (a part of
every run), an architecture, and ``rlimit`` with other outcomes at that level, or ``nothing`` where none is promised.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from harness.files import ROOT
from harness.sandbox import Limits, Outcome, Program
from harness.sandbox.jail import linux

QUICK = Limits(cpu_s=2, wall_s=20.0, memory_mib=256)
# For programs that never end by themselves, busy or waiting.
LIMITS = {"busy": Limits(cpu_s=1, wall_s=20.0, memory_mib=256), "waiting": Limits(cpu_s=1, wall_s=0.5, memory_mib=256)}
CHECKS = "assert f(20) == 42"
RIGHT_PROGRAM = "def f(x):\n    return 2 * x + 2\n"
PIECES = {"right": RIGHT_PROGRAM, "wrong": "def f(x):\n    return 41\n"}
# Of a program that tries what must not work and returns what did.
NOTHING = "assert f(0) == [], f(0)"
# An honest program that looks at its work directory and writes there.
WRITER = """
import os
open("own", "w").close()
found = [os.listdir("."), os.listxattr("."), os.stat(".").st_mode & 0o7777]
"""
ONLY_ITS_OWN = "assert found[0] == ['own'] and found[1] == []"
# Whatever the programs create outside their process bears this name, or listens here, so that it can be looked for.
NAME, PORT = "wombat", 47851


@dataclass(frozen=True, slots=True)
class HostileProgram:
    """A hostile program, or an honest one that looks hostile, and how it has to end."""

    name: str
    program: Program
    # By level, empty where nothing is promised.
    ends: dict[str, tuple[Outcome, ...]]
    limits: Limits = QUICK
    lasts: bool = False
    daily: bool = False


def probe(actions: dict[str, str]) -> str:
    """Return a program that returns the names of those expressions that raised neither OSError nor ValueError."""
    lines = "".join(f"    {name!r}: lambda: {action},\n" for name, action in actions.items())
    return f"{PIECES['probe']}ACTIONS = {{\n{lines}}}\n"


def _read() -> list[HostileProgram]:
    """Read the programs that are written for this machine."""
    entries = []
    text = Path(__file__).with_name("battery.txt").read_text()
    for block in text.removeprefix("## ").split("\n## "):
        head, _, body = block.partition("\n")
        name, ends, *more = head.split(" | ")
        source, _, rest = f"{body}\n".partition("\n-- ")
        if ends == "piece":
            PIECES[name] = source
            continue
        checks, _, setup = rest.partition("\n-- setup\n")
        if source.startswith("@ calls"):
            calls = [call.split() for call in source.removeprefix("@ calls").split(",")]
            numbers = {" ".join(call): linux.number(call[0]) for call in calls} if linux.KNOWN else {}
            known = [(call, number) for call, number in numbers.items() if number is not None]
            source = probe({call: f"raw({', '.join([str(number), *call.split()[1:]])})" for call, number in known})
        source = re.sub(r"(?m)^@ (\w+)$", lambda match: PIECES[match[1]], source)
        options, _, other = "".join(more).partition("rlimit ")
        words = [word.strip(",") for word in options.split()]
        if not {"x86_64", "aarch64"} & {*words} - {os.uname().machine}:
            expected = tuple(map(Outcome, ends.split()))
            at_rlimit = () if other == "nothing" else tuple(map(Outcome, other.split())) or expected
            limits = next((LIMITS[word] for word in words if word in LIMITS), QUICK)
            program = Program(source, setup, checks or CHECKS, "f")
            ends_by_level = {"full": expected, "rlimit": at_rlimit}
            entries.append(HostileProgram(name, program, ends_by_level, limits, "lasts" in words, "daily" in words))
    return entries


# Every marker starts like this and goes on with eight hexadecimal digits; the searching program holds the start alone.
MARKER = "wombat-"
IN_ENVIRONMENT, IN_EARLIER_PROGRAM, IN_EARLIER_CHECKS = (
    f"{MARKER}{digits}" for digits in ("1badcafe", "2badcafe", "3badcafe")
)


def _special() -> list[HostileProgram]:
    """Make the programs that are too long to write down, or name this checkout."""
    files = {str(path.relative_to(ROOT)): f"open({str(path)!r})" for path in (ROOT / "pyproject.toml", ROOT / "tests")}
    unreadable = (Outcome.NOT_EXECUTABLE,)
    too_deep = (*unreadable, Outcome.KILLED, Outcome.MEMORY_LIMIT)

    rows = [
        ("files of the project", probe(files), NOTHING, (Outcome.PASSED,), (), True),
        ("null byte in a comment", f"# \0\n{RIGHT_PROGRAM}", CHECKS, unreadable, unreadable, True),
        ("sum of a hundred thousand terms", f"x = {'+'.join(['1'] * 100_000)}", CHECKS, too_deep, too_deep, False),
        ("number of a million digits", f"x = {'9' * 1_000_000}", CHECKS, unreadable, unreadable, False),
    ]
    return [
        HostileProgram(name, Program(source, "", checks, "f"), {"full": at_full, "rlimit": at_rlimit}, daily=daily)
        for name, source, checks, at_full, at_rlimit, daily in rows
    ]


BATTERY = [*_read(), *_special()]

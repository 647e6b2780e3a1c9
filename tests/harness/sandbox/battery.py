"""The battery: hostile programs and a few honest ones that look hostile, with how each has to end (``battery.txt``).

A program starts with ``## name | outcomes | options``; several outcomes where the interpreter, or which of two limits
comes first, decides. Its checks start with ``-- ``, its set-up with ``-- setup``. ``@ name`` stands for a piece, which
starts with ``## name | piece``; ``@ calls`` for a program that makes system calls, the rest of its lines; ``= `` for
the value of an expression. Options are ``waiting`` and ``busy`` (limits), ``lasts`` (as long as a limit, shown at the
best level only), ``daily`` (a part of every run), an architecture, and ``rlimit`` with other outcomes at that level, or
``nothing`` where none is promised.
"""

import os
import re
import sysconfig
from pathlib import Path
from typing import NamedTuple

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
# Of the honest writer.
ONLY_ITS_OWN = "assert found[0] == ['own'] and found[1] == []"
# Whatever the programs create outside their process bears this name, or listens here, so that it can be looked for.
NAME, PORT = "wombat", 47851
# Every marker starts like this and goes on with eight hexadecimal digits; the searching program holds the start alone.
MARKER = "wombat-"
IN_ENVIRONMENT, IN_EARLIER_PROGRAM, IN_EARLIER_CHECKS = (f"{MARKER}{number}badcafe" for number in (1, 2, 3))


class HostileProgram(NamedTuple):
    """A hostile program, or an honest one that looks hostile, and how it has to end."""

    name: str
    program: Program
    ends: dict[str, tuple[Outcome, ...]]  # by level, empty where nothing is promised
    limits: Limits
    lasts: bool
    daily: bool


def probe(actions: dict[str, str]) -> str:
    """Return a program that returns the names of those expressions that raised neither OSError nor ValueError."""
    lines = "".join(f"    {name!r}: lambda: {action},\n" for name, action in actions.items())
    return f"{PIECES['probe']}ACTIONS = {{\n{lines}}}\n"


def _source(text: str) -> str:
    if text.startswith("= "):
        value: str = eval(text[2:], {"ROOT": ROOT, "Path": Path, "probe": probe, "sysconfig": sysconfig})  # noqa: S307  our own expressions
        return value
    if text.startswith("@ calls"):
        calls = [call.split() for call in text.removeprefix("@ calls").split(",")]
        numbers = {" ".join(call): linux.number(call[0]) for call in calls} if linux.KNOWN else {}
        known = [(call, number) for call, number in numbers.items() if number is not None]
        text = probe({call: f"raw({', '.join([str(number), *call.split()[1:]])})" for call, number in known})
    return re.sub(r"(?m)^@ (\w+)$", lambda match: PIECES[match[1]], text)


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
        options, _, other = "".join(more).partition("rlimit ")
        words = [word.strip(",") for word in options.split()]
        if {"x86_64", "aarch64"} & {*words} - {os.uname().machine}:
            continue
        expected = tuple(map(Outcome, ends.split()))
        at_rlimit = () if other == "nothing" else tuple(map(Outcome, other.split())) or expected
        limits = next((LIMITS[word] for word in words if word in LIMITS), QUICK)
        program = Program(_source(source), setup, checks or CHECKS, "f")
        levels = {"full": expected, "rlimit": at_rlimit}
        entries.append(HostileProgram(name, program, levels, limits, "lasts" in words, "daily" in words))
    return entries


BATTERY = _read()

"""The battery of hostile programs at both levels: outcomes, leftovers, and isolation from each other.

A plain run takes only programs marked ``daily``; ``pytest -m nightly tests/harness/sandbox`` takes all."""

import asyncio
import os
import re
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from harness.files import ROOT
from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox
from harness.sandbox.jail import linux
from harness.sandbox.pool import LEVELS, best_level
from tests.harness.sandbox.conftest import SMALL, need

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="most of the battery speaks to a Linux kernel")

BY_LEVEL = pytest.mark.parametrize("level", LEVELS, indirect=True)
PASSED = Execution(Outcome.PASSED, "")
QUICK = SMALL.model_copy(update={"cpu_s": 2})
# For programs that never end by themselves, busy or waiting.
LIMITS = {"busy": SMALL, "waiting": SMALL.model_copy(update={"wall_s": 0.5})}
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
    entries = []
    text = Path(__file__).with_name("battery.txt").read_text()
    for block in text.split("\n## ")[1:]:
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


@BY_LEVEL
@pytest.mark.parametrize("daily", [True, pytest.param(False, marks=pytest.mark.nightly)])
async def test_every_program_ends_as_it_should_and_leaves_nothing(
    level: str, daily: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, descendants: Callable[[], set[int]]
) -> None:
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o711)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("HF_TOKEN", IN_ENVIRONMENT)
    before, wrong = traces(tmp_path), {}
    for limits in (*LIMITS.values(), QUICK):
        # What takes as long as a limit is shown once, at the best level there is.
        entries = [entry for entry in BATTERY if entry.daily >= daily and entry.limits == limits]
        entries = [entry for entry in entries if entry.ends[level] and (not entry.lasts or level == best_level())]
        async with Sandbox(limits, workers=2, level=level) as sandbox:
            executions = await asyncio.gather(*(sandbox.run(entry.program) for entry in entries))
            honest = Program(f"{PIECES['writer']}{RIGHT_PROGRAM}", checks=f"{ONLY_ITS_OWN}\n{CHECKS}")
            assert await sandbox.run(honest) == PASSED
        for entry, execution in zip(entries, executions, strict=True):
            detail = execution.detail
            is_presentable = detail == detail.encode("utf-8", "replace").decode() and "\n" not in detail
            if execution.outcome not in entry.ends[level] or not is_presentable or len(detail) > 300:
                wrong[entry.name] = execution
    assert wrong == {}
    assert traces(tmp_path) - before == set()
    assert descendants() == set()


def traces(home: Path) -> set[str]:
    """Return descriptors, files, and whatever outlives a process under the name that all programs here use."""
    traces_left = {f"descriptor {number}" for number in range(1024) if Path(f"/proc/self/fd/{number}").is_symlink()}
    paths = [*home.glob("*"), *Path("/dev/shm").glob(f"*{NAME}*"), *Path("/dev/mqueue").glob(f"*{NAME}*")]  # noqa: S108
    traces_left |= {f"file {path}" for path in paths}
    key = int.from_bytes(NAME.encode()[:4], "big")
    for table in Path("/proc/sysvipc").glob("*"):
        traces_left |= {f"{table} {line}" for line in table.read_text().splitlines() if line.split()[0] == str(key)}
    for connection in psutil.net_connections("all"):
        if NAME in str(connection.laddr) or getattr(connection.laddr, "port", None) == PORT:
            traces_left.add(f"socket {connection.laddr}")
    return traces_left


@BY_LEVEL
async def test_what_can_be_found_is_found(level: str) -> None:
    found = {
        probe({"may": "open('x', 'w').close()", "may not": "os.setuid(0)"}): ["may"],
        probe({"getpid": "raw(172 if os.uname().machine == 'aarch64' else 39)"}): ["getpid"],
        f"{PIECES['search']}\nKEPT = '{MARKER}4badcafe'": ["4badcafe"],
    }
    async with Sandbox(QUICK, workers=1, level=level) as sandbox:
        for source, names in found.items():
            assert await sandbox.run(Program(source, checks=f"assert f(0) == {names}, f(0)", entry_point="f")) == PASSED


@BY_LEVEL
async def test_nothing_of_an_earlier_program_is_in_memory(level: str) -> None:
    source = f"{RIGHT_PROGRAM}\nMARK = '{IN_EARLIER_PROGRAM}'"
    earlier = Program(source, checks=f"MARK = '{IN_EARLIER_CHECKS}'\n{CHECKS}", entry_point="f")
    search = Program(PIECES["search"], checks=NOTHING, entry_point="f")
    async with Sandbox(QUICK, workers=1, level=level) as sandbox:
        assert [await sandbox.run(program) for program in (earlier, search, earlier, search)] == [PASSED] * 4


async def test_no_program_can_end_another_or_the_sandbox() -> None:
    need("full")
    victim = Program("import time\ndef f(x):\n    time.sleep(0.3)\n    return 42", checks=CHECKS, entry_point="f")
    attacker = Program(PIECES["signals by pipe"], checks=CHECKS, entry_point="f")
    async with Sandbox(QUICK, workers=3, level="full") as sandbox:
        assert await asyncio.gather(*map(sandbox.run, (victim, attacker, victim))) == [PASSED] * 3
        assert await sandbox.run(victim) == PASSED

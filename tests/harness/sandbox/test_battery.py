"""The battery of hostile programs at both levels: how each ends, what they leave, what they find of one another.

A plain run takes a few of every class, those marked ``daily``; ``pytest -m nightly tests/harness/sandbox`` takes all.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from harness.sandbox import Execution, Outcome, Program, Sandbox
from harness.sandbox.pool import LEVELS, best_level
from tests.harness.sandbox import battery
from tests.harness.sandbox.battery import BATTERY, CHECKS, PIECES, QUICK, RIGHT_PROGRAM, probe
from tests.harness.sandbox.conftest import need

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="most of the battery speaks to a Linux kernel")

BY_LEVEL = pytest.mark.parametrize("level", LEVELS, indirect=True)
PASSED = Execution(Outcome.PASSED, "")


@BY_LEVEL
@pytest.mark.parametrize("daily", [True, pytest.param(False, marks=pytest.mark.nightly)])
async def test_every_program_ends_as_it_should_and_leaves_nothing(
    level: str, daily: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, descendants: Callable[[], set[int]]
) -> None:
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o711)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("HF_TOKEN", battery.IN_ENVIRONMENT)
    before, wrong = traces(tmp_path), {}
    for limits in (*battery.LIMITS.values(), QUICK):
        # What takes as long as a limit is shown once, at the best level there is.
        entries = [entry for entry in BATTERY if entry.daily >= daily and entry.limits == limits]
        entries = [entry for entry in entries if entry.ends[level] and (not entry.lasts or level == best_level())]
        async with Sandbox(limits, workers=2, level=level) as sandbox:
            executions = await asyncio.gather(*(sandbox.run(entry.program) for entry in entries))
            honest = Program(f"{PIECES['writer']}{RIGHT_PROGRAM}", checks=f"{battery.ONLY_ITS_OWN}\n{CHECKS}")
            assert await sandbox.run(honest) == PASSED
        for entry, execution in zip(entries, executions, strict=True):
            if execution.outcome not in entry.ends[level] or not presentable(execution):
                wrong[entry.name] = execution
    assert wrong == {}
    assert traces(tmp_path) - before == set()
    assert descendants() == set()


def presentable(execution: Execution) -> bool:
    detail = execution.detail
    return detail == detail.encode("utf-8", "replace").decode() and "\n" not in detail and len(detail) <= 300


def traces(home: Path, name: str = battery.NAME, port: int = battery.PORT) -> set[str]:
    """Return descriptors, files, and whatever outlives a process under the name that all programs here use."""
    traces_left = {f"descriptor {number}" for number in range(1024) if Path(f"/proc/self/fd/{number}").is_symlink()}
    paths = [*home.glob("*"), *Path("/dev/shm").glob(f"*{name}*"), *Path("/dev/mqueue").glob(f"*{name}*")]  # noqa: S108
    traces_left |= {f"file {path}" for path in paths}
    key = int.from_bytes(name.encode()[:4], "big")
    for table in Path("/proc/sysvipc").glob("*"):
        traces_left |= {f"{table} {line}" for line in table.read_text().splitlines() if line.split()[0] == str(key)}
    for connection in psutil.net_connections("all"):
        if name in str(connection.laddr) or getattr(connection.laddr, "port", None) == port:
            traces_left.add(f"socket {connection.laddr}")
    return traces_left


@BY_LEVEL
@pytest.mark.parametrize(
    ("source", "found"),
    [
        (probe({"may": "open('x', 'w').close()", "may not": "os.setuid(0)"}), ["may"]),
        (probe({"getpid": "raw(172 if os.uname().machine == 'aarch64' else 39)"}), ["getpid"]),
        (f"{PIECES['search']}\nKEPT = '{battery.MARKER}4badcafe'", ["4badcafe"]),
    ],
    ids=["a probe", "a system call", "a search of memory"],
)
async def test_what_can_be_found_is_found(level: str, source: str, found: list[str]) -> None:
    async with Sandbox(QUICK, workers=1, level=level) as sandbox:
        assert await sandbox.run(Program(source, checks=f"assert f(0) == {found}, f(0)", entry_point="f")) == PASSED


@BY_LEVEL
async def test_nothing_of_an_earlier_program_is_in_memory(level: str) -> None:
    source = f"{RIGHT_PROGRAM}\nMARK = '{battery.IN_EARLIER_PROGRAM}'"
    earlier = Program(source, checks=f"MARK = '{battery.IN_EARLIER_CHECKS}'\n{CHECKS}", entry_point="f")
    search = Program(PIECES["search"], checks=battery.NOTHING, entry_point="f")
    async with Sandbox(QUICK, workers=1, level=level) as sandbox:
        assert [await sandbox.run(program) for program in (earlier, search, earlier, search)] == [PASSED] * 4


async def test_no_program_can_end_another_or_the_sandbox() -> None:
    need("full")
    victim = Program("import time\ndef f(x):\n    time.sleep(0.3)\n    return 42", checks=CHECKS, entry_point="f")
    attacker = Program(PIECES["signals by pipe"], checks=CHECKS, entry_point="f")
    async with Sandbox(QUICK, workers=3, level="full") as sandbox:
        assert await asyncio.gather(*map(sandbox.run, (victim, attacker, victim))) == [PASSED] * 3
        assert await sandbox.run(victim) == PASSED

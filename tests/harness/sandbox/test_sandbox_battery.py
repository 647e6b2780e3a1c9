"""The battery of hostile programs at both levels: how each ends, and what all of them leave.

A plain run takes a few of every class; ``pytest -m nightly tests/harness/sandbox`` takes the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from harness.sandbox import Execution, Limits, Outcome, Program, Sandbox
from harness.sandbox.pool import LEVELS, best_level
from tests.harness.sandbox.battery import BATTERY
from tests.harness.sandbox.battery.entry import (
    BUSY,
    CHECKS,
    NAME,
    ONLY_ITS_OWN,
    PORT,
    QUICK,
    RIGHT_PROGRAM,
    WAITING,
    WRITER,
    Entry,
    probe,
)
from tests.harness.sandbox.battery.search import (
    IN_ENVIRONMENT,
    MARKER,
    SEARCH,
)
from tests.harness.sandbox.conftest import PR_SET_CHILD_SUBREAPER, _descendants, need

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="most of the battery speaks to a Linux kernel")

LONGEST_DETAIL = 300
BEST = "best"
# Of a sandbox with one worker: each program comes after the one before it.
ALONE = Limits(cpu_s=2, wall_s=21.0, memory_mib=256)
BY_LEVEL = pytest.mark.parametrize("level", LEVELS, indirect=True, scope="module")
# A few of every class: what is used up, ends, streams, values, the connection, spying, the kernel, the disk, texts.
QUICK_ONES = {
    *("fork bomb in the call", "list doubling in the call", "sleep in the call", "exit between two checks"),
    *(
        "processes by every way there is",
        "class that calls itself AssertionError",
        "StopIteration in a loop of the checks",
    ),
    *("reports to every descriptor", "one endless line", "equal to everything", "plain: integer", "not a number"),
    *(
        "other built-ins",
        "reports in the call",
        "a message longer than allowed",
        "connection shut down",
        "traced frames",
    ),
    *("searching its memory for the checks", "other code in the checks", "emptied argument", "files of the project"),
    *("tracing, reading and ending other processes", "sockets by system call", "mounts, roots, namespaces"),
    *("taking the confinement back", "ways out of its directory", "endless files", "null byte in a comment"),
}
ENTRIES = [
    pytest.param(entry, id=entry.name, marks=() if entry.name in QUICK_ONES else pytest.mark.nightly)
    for entry in BATTERY
]
IN_A_LOOP = pytest.mark.asyncio(loop_scope="module")

# One process for the program and its checks: what other judges do.
PLAIN_JUDGE = "import math, sys\nspace = {'math': math}\nfor part in sys.argv[1:]:\n    exec(part, space)"


@dataclass(frozen=True)
class Everything:
    """What of the battery was chosen, run through one sandbox for each set of limits, two programs at a time.

    Attributes:
        executions: By name of the entry.
        honest: The execution of an honest program after all of them.
        left: What was there afterwards and not before.
    """

    executions: dict[str, Execution]
    honest: Execution
    left: list[str]


@pytest.fixture(scope="module")
def level(request: pytest.FixtureRequest) -> str:
    level: str = best_level() if request.param == BEST else request.param
    need(level)
    return level


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(level: str) -> AsyncIterator[Sandbox]:
    async with Sandbox(ALONE, workers=1, level=level) as sandbox:
        yield sandbox


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def everything(
    level: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Everything:
    chosen = [item.callspec.params.get("entry") for item in request.session.items if hasattr(item, "callspec")]
    home = tmp_path_factory.mktemp("home")
    for path in (home, *home.parents[:2]):
        path.chmod(0o711)
    before = traces(home)
    executions: dict[str, Execution] = {}
    with pytest.MonkeyPatch.context() as patch, orphans_come_here():
        patch.setattr("tempfile.tempdir", str(home))
        patch.setenv("HF_TOKEN", IN_ENVIRONMENT)
        for limits in (WAITING, BUSY, QUICK):
            entries = [entry for entry in shown_at(level) if entry.limits == limits and entry in chosen]
            async with Sandbox(limits, workers=2, level=level) as sandbox:
                found = await asyncio.gather(*(sandbox.run(program(entry)) for entry in entries))
                honest = await sandbox.run(Program(f"{WRITER}{RIGHT_PROGRAM}", checks=f"{ONLY_ITS_OWN}\n{CHECKS}"))
            executions |= {entry.name: execution for entry, execution in zip(entries, found, strict=True)}
        return Everything(executions, honest, sorted(traces(home) - before))


def shown_at(level: str) -> list[Entry]:
    """What takes as long as a limit is shown once, at the best level there is."""
    return [entry for entry in BATTERY if entry.expected(level) and (not entry.lasts or level == best_level())]


def program(entry: Entry) -> Program:
    return Program(entry.source, entry.setup, entry.checks, entry_point="f")


@contextlib.contextmanager
def orphans_come_here() -> Iterator[None]:
    """Makes processes whose parents have ended children of this one."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def traces(home: Path, name: str = NAME, port: int = PORT) -> set[str]:
    """Processes, descriptors, files, and whatever outlives a process under the name that all programs here use."""
    found = {f"process {number}" for number in _descendants()}
    found |= {f"descriptor {number}" for number in range(1024) if is_open(number)}
    places = [*home.glob("*"), *Path("/dev/shm").glob(f"*{name}*"), *Path("/dev/mqueue").glob(f"*{name}*")]  # noqa: S108
    found |= {f"file {path}" for path in places}
    key = int.from_bytes(name.encode()[:4], "big")
    for table in ("shm", "msg", "sem"):
        found |= {f"{table} {line}" for line in lines(f"/proc/sysvipc/{table}") if line.split()[0] == str(key)}
    found |= {f"socket {line}" for line in lines("/proc/net/unix") if name in line}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        found |= {f"{table} {line}" for line in lines(f"/proc/net/{table}") if f":{port:04X}" in line[:48]}
    return found


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def lines(table: str) -> list[str]:
    return Path(table).read_text().splitlines()[1:] if Path(table).exists() else []


def presentable(execution: Execution) -> bool:
    texts = (execution.detail, execution.stdout)
    return (
        "\n" not in execution.detail
        and len(execution.detail) <= LONGEST_DETAIL
        and all(text == text.encode("utf-8", "replace").decode() for text in texts)
    )


@IN_A_LOOP
@BY_LEVEL
@pytest.mark.parametrize("entry", ENTRIES)
async def test_every_program_ends_as_it_should(level: str, entry: Entry, everything: Everything) -> None:
    if entry not in shown_at(level):
        pytest.skip(entry.rlimit if isinstance(entry.rlimit, str) else "shown at the best level")
    execution = everything.executions[entry.name]
    assert execution.outcome in entry.expected(level), execution
    assert presentable(execution)


@IN_A_LOOP
@BY_LEVEL
async def test_they_leave_nothing_and_harm_no_other(everything: Everything) -> None:
    assert everything.left == []
    assert everything.honest == Execution(Outcome.PASSED, "", "", assertions=2)


def test_what_is_left_would_be_seen(tmp_path: Path) -> None:
    before, name = traces(tmp_path), f"trace-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as named, socket.create_server(("127.0.0.1", 0)) as server:
        named.bind(f"\0{name}")
        (tmp_path / "file").touch()
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        found = traces(tmp_path, name, server.getsockname()[1]) - before
        child.communicate()
    assert {trace.split()[0] for trace in found} == {"descriptor", "file", "process", "socket", "tcp"}


@IN_A_LOOP
@BY_LEVEL
@pytest.mark.nightly
async def test_executions_do_not_depend_on_what_else_runs(level: str, everything: Everything) -> None:
    if level != best_level():
        pytest.skip("shown at the best level")
    before = everything.executions
    entries = [entry for entry in BATTERY if len(entry.ends) == 1 and entry.limits == QUICK and entry.name in before]
    async with Sandbox(QUICK, workers=5, level=level) as sandbox:
        found = await asyncio.gather(*(sandbox.run(program(entry)) for entry in entries))
    differing = [
        (one.name, before[one.name], now) for one, now in zip(entries, found, strict=True) if now != before[one.name]
    ]
    assert differing == []


@pytest.mark.nightly
@pytest.mark.parametrize("entry", [entry for entry in BATTERY if entry.fools], ids=lambda entry: entry.name)
def test_its_trick_fools_a_judge_in_one_process(entry: Entry, tmp_path: Path) -> None:
    judge = [sys.executable, "-c", PLAIN_JUDGE, entry.setup, entry.source, entry.checks]
    assert subprocess.run(judge, cwd=tmp_path, capture_output=True, check=False, timeout=60).returncode == 0


HONEST = {
    (entry.setup, entry.checks, entry.right) for entry in BATTERY if entry.right and Outcome.PASSED not in entry.ends
}


@IN_A_LOOP
@pytest.mark.nightly
@pytest.mark.parametrize("level", [BEST], indirect=True, scope="module")
async def test_its_checks_tell_right_from_wrong(sandbox: Sandbox) -> None:
    for setup, checks, right in sorted(HONEST):
        execution = await sandbox.run(Program(right, setup, checks, "f"))
        assert execution.outcome is Outcome.PASSED, (checks, execution)
        execution = await sandbox.run(Program("def f(*_):\n    return None", setup, checks, "f"))
        assert execution.outcome in (Outcome.WRONG_ANSWER, Outcome.EXCEPTION), (checks, execution)


@IN_A_LOOP
@BY_LEVEL
@pytest.mark.parametrize(
    ("source", "found"),
    [
        (probe({"may": "open('x', 'w').close()", "may not": "os.setuid(0)"}), ["may"]),
        (probe({"getpid": "raw(172 if os.uname().machine == 'aarch64' else 39)"}), ["getpid"]),
        (f"{SEARCH}\nKEPT = '{MARKER}4badcafe'", ["4badcafe"]),
    ],
    ids=["a probe", "a system call", "a search of memory"],
)
async def test_what_can_be_found_is_found(sandbox: Sandbox, source: str, found: list[str]) -> None:
    execution = await sandbox.run(Program(source, checks=f"assert f(0) == {found}, f(0)", entry_point="f"))
    assert execution.outcome is Outcome.PASSED, execution

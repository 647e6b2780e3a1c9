"""Programs that run one after the other or side by side: none finds, changes or ends anything of another."""

from __future__ import annotations

import asyncio
import sys

import pytest

from harness.sandbox import Outcome, Program, Sandbox
from harness.sandbox.pool import LEVELS
from tests.harness.sandbox.battery.entry import CHECKS, NOTHING, ONLY_ITS_OWN, QUICK, RIGHT_PROGRAM, WRITER
from tests.harness.sandbox.battery.search import IN_EARLIER_CHECKS, IN_EARLIER_PROGRAM, SEARCH
from tests.harness.sandbox.conftest import need

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="directories and signals as Linux has them")


@pytest.mark.parametrize("level", LEVELS)
async def test_nothing_of_an_earlier_program_is_in_memory(level: str) -> None:
    need(level)
    source = f"{RIGHT_PROGRAM}\nMARK = '{IN_EARLIER_PROGRAM}'"
    earlier = Program(source, checks=f"MARK = '{IN_EARLIER_CHECKS}'\n{CHECKS}", entry_point="f")
    search = Program(SEARCH, checks=NOTHING, entry_point="f")
    async with Sandbox(QUICK, workers=1, level=level) as sandbox:
        executions = [await sandbox.run(one) for one in (earlier, search, earlier, search)]
    assert [(one.outcome, one.detail, one.stdout) for one in executions] == [(Outcome.PASSED, "", "")] * 4


VICTIM = Program("import time\ndef f(x):\n    time.sleep(0.3)\n    return 42", checks=CHECKS, entry_point="f")
# The kernel sends signals for whoever waits for a pipe, to whomever that is to be told.
SIGNALS_BY_PIPE = """
import fcntl, os, signal
def tell(process):
    fcntl.fcntl(source, fcntl.F_SETOWN, process)
    fcntl.fcntl(source, 10, signal.SIGKILL)
    fcntl.fcntl(source, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(sink, b"x")
    fcntl.fcntl(source, fcntl.F_SETFL, os.O_NONBLOCK)
    os.read(source, 1)
def f(x):
    near = {os.getppid(), *range(60), *range(max(0, os.getpid() - 60), os.getpid() + 60)}
    for process in near - {0, 1, os.getpid()}:
        try:
            tell(process)
        except OSError:
            pass
    return 42
source, sink = os.pipe()
"""


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "rlimit"])
async def test_no_program_can_end_another_or_the_sandbox(level: str) -> None:
    need(level)
    attacker = Program(SIGNALS_BY_PIPE, checks=CHECKS, entry_point="f")
    async with Sandbox(QUICK, workers=3, level=level) as sandbox:
        executions = await asyncio.gather(*map(sandbox.run, (VICTIM, attacker, VICTIM)))
        executions.append(await sandbox.run(VICTIM))
    assert [(one.outcome, one.detail, one.stdout) for one in executions] == [(Outcome.PASSED, "", "")] * 4


WAYS_TO_LEAVE_A_DIRECTORY = {
    "closed": "os.chmod('.', 0)",
    "read-only": "os.chmod('.', 0o500)",
    "open to all": "os.chmod('.', 0o777)",
    "marked": "os.setxattr('.', 'user.mark', b'1')",
    "full of what is hard to remove": "[os.mkdir('d') or os.chdir('d') for _ in range(50)] and os.chmod('..', 0)",
}


@pytest.mark.parametrize("way", WAYS_TO_LEAVE_A_DIRECTORY)
@pytest.mark.parametrize("level", LEVELS)
async def test_no_program_finds_its_directory_changed(level: str, way: str) -> None:
    need(level)
    change = Program(f"import os\ntry:\n    {WAYS_TO_LEAVE_A_DIRECTORY[way]}\nexcept OSError:\n    pass")
    writer = Program(WRITER, checks=ONLY_ITS_OWN, show="found")
    async with Sandbox(QUICK, workers=1, level=level) as sandbox:
        before, changed, after = [await sandbox.run(one) for one in (writer, change, writer)]
    assert before.outcome is Outcome.PASSED
    # What cannot be counted is too much, if anybody looks in time.
    assert changed.outcome in (Outcome.PASSED, Outcome.OUTPUT_LIMIT)
    assert after == before

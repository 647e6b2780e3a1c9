from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import pytest

from harness.sandbox import Execution, Limits, Program, Sandbox
from harness.sandbox.pool import refusal

SMALL = Limits(cpu_s=1, wall_s=6.0, memory_mib=256)

Execute = Callable[[Mapping[str, Program]], Awaitable[dict[str, Execution]]]


def need(level: str) -> None:
    if reason := refusal(level):
        pytest.skip(f"sandbox level {level!r} is not available on this machine: {reason}")


@pytest.fixture(params=["full", pytest.param("rlimit", marks=pytest.mark.nightly)])
def level(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return request.param


@pytest.fixture
async def execute(level: str) -> AsyncIterator[Execute]:
    """Runs programs and returns how each ended."""
    async with Sandbox(SMALL, workers=2, level=level) as sandbox:

        async def run(programs: Mapping[str, Program]) -> dict[str, Execution]:
            return dict(zip(programs, await asyncio.gather(*map(sandbox.run, programs.values())), strict=True))

        yield run


@pytest.fixture
def descendants() -> Iterator[Callable[[], set[int]]]:
    """Counts living descendants of this process, orphans included: they are handed up to it."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("processes are counted in /proc, which this machine does not have")
    libc = ctypes.CDLL(None)
    libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    before = _descendants()
    yield lambda: _descendants() - before
    libc.prctl(36, 0, 0, 0, 0)


def _descendants() -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                # Without memory it is past its last instruction and only waits to be cleared away.
                alive = (entry / "cmdline").read_bytes() != b""
            except (FileNotFoundError, ProcessLookupError):
                continue
            if alive:
                parents[int(entry.name)] = int(parent)
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}

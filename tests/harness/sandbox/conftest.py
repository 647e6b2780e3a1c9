import asyncio
import contextlib
import ctypes
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

import psutil
import pytest

from harness.sandbox import Execution, Program, Sandbox
from harness.sandbox.pool import refusal
from harness.sandbox.worker import LIMITS

SMALL = LIMITS.model_copy(update={"cpu_s": 1, "wall_s": 20.0, "memory_mib": 256})

Execute = Callable[[Mapping[Any, Program]], Awaitable[dict[Any, Execution]]]


def need(level: str) -> None:
    if reason := refusal(level):
        pytest.skip(f"sandbox level {level!r} is not available on this machine: {reason}")


@pytest.fixture(params=["full", pytest.param("rlimit", marks=pytest.mark.nightly)])
def level(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return request.param


@pytest.fixture
async def execute(level: str) -> AsyncIterator[Execute]:
    async with Sandbox(SMALL, workers=2, level=level) as sandbox:

        async def run(programs: Mapping[Any, Program]) -> dict[Any, Execution]:
            return dict(zip(programs, await asyncio.gather(*map(sandbox.run, programs.values())), strict=True))

        yield run


@pytest.fixture
def descendants() -> Iterator[Callable[[], set[int]]]:
    """Return living descendants of this process, including orphans, which this process adopts."""
    if sys.platform != "linux":
        pytest.skip("orphans are handed up by Linux alone")
    libc = ctypes.CDLL(None)
    libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    before = _descendants()
    yield lambda: _descendants() - before
    libc.prctl(36, 0, 0, 0, 0)


def _descendants() -> set[int]:
    living = set()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            # Without a command line it is past its last instruction and only waits to be cleared away.
            living |= {child.pid} if child.cmdline() else set()
    return living

"""Many programs, a few at once, on warm workers, at the best level of confinement that works here."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import errno
import functools
import logging
import os
import re
import sys
import sysconfig
from dataclasses import astuple, replace
from typing import Any, Self

from harness.concurrency import processors
from harness.database import Cache
from harness.errors import UserError
from harness.files import ROOT
from harness.fingerprint import fingerprint
from harness.sandbox.cache import Scope, Verdicts
from harness.sandbox.jail.confinement import FULL, RLIMIT
from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.worker import Worker, WorkerLostError, failed

# The strongest first.
LEVELS = (FULL, RLIMIT)
# What the neighbours of a program may have brought about.
_DOUBTFUL = (Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.KILLED)
# Another machine, or this one on another day, may end the same program otherwise. A limit of memory is among them: with
# more processors, more of it is set aside for threads. A limit of output is not: the program's own bytes are counted.
MACHINES_OWN = frozenset({*_DOUBTFUL, Outcome.MEMORY_LIMIT, Outcome.SANDBOX_ERROR})
# What a trial of a level ends by on a machine that may offer it all the same; and what is short there for the moment.
_DISTURBED = MACHINES_OWN - {Outcome.SANDBOX_ERROR}
_SHORTAGES = tuple(map(os.strerror, (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)))
_TRIALS = 3
# How chance, the clock and the machine get into a program; a word too many costs no more than executing again.
_DOORS = (
    "random secrets uuid time timeit datetime tempfile os io pathlib glob shutil platform socket http urllib resource "
    "signal gc threading _thread concurrent asyncio multiprocessing subprocess "
    "gzip zipfile tarfile email ssl statistics logging importlib __import__"
)
_OPEN_DOOR = re.compile(rf"\b(?:{'|'.join(_DOORS.split())})\b|\b(?:id|open)\(")
# Enough for what a tool reads, which is printed last; grading reads no output.
_KEPT_OUTPUT = 1000
# Loads from disk after confinement, both Python and shared objects.
_PROBE = Program("import decimal, json, random, statistics, zoneinfo")

logger = logging.getLogger(__name__)


@functools.cache
def why_not(level: str) -> str:
    """Return, in one line, why this machine refuses a level; empty where it works. Decided once a process.

    Raises UserError where no trial comes to its end: that says nothing about the level, and must not lower it.
    """
    refusals: list[str] = []
    disturbances: list[str] = []
    for _ in range(_TRIALS):
        # The caller may be in an event loop.
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            trial = thread.submit(asyncio.run, _try(level)).result()
        if trial.outcome is Outcome.PASSED:
            break
        is_disturbed = trial.outcome in _DISTURBED or any(reason in trial.detail for reason in _SHORTAGES)
        (disturbances if is_disturbed else refusals).append(trial.detail or trial.outcome)
    reasons = [*refusals, *disturbances]
    if reasons:
        why = "; ".join(dict.fromkeys(reasons))
        logger.warning("sandbox level %r: %d of %d trials failed: %s", level, len(reasons), _TRIALS, why)
    if len(reasons) < _TRIALS:
        return ""
    if refusals:
        return refusals[0]
    raise UserError(
        f"whether programs can run at sandbox level {level!r} could not be found out: {len(reasons)} trials were cut "
        f"short ({reasons[-1]}); the machine is overloaded, or something ends processes here, as when memory runs out: "
        "free it, then give the same command again"
    )


async def _try(level: str) -> Execution:
    try:
        with contextlib.closing(Worker(level, Limits())) as worker:
            return await worker.run(_PROBE)
    except TimeoutError:
        return Execution(Outcome.WALL_LIMIT, "the worker did not reply in time", "")
    except WorkerLostError as error:
        return Execution(Outcome.KILLED, str(error), "")
    except (OSError, ValueError, UserError) as error:
        return failed(error)


def best_level() -> str:
    """Return the best level this machine offers; raises UserError where none works, or where it cannot be found out."""
    for level in LEVELS:
        if not why_not(level):
            return level
    reasons = "; ".join(f"{level}: {why_not(level)}" for level in LEVELS)
    cure = "plain resource limits need an unprivileged user: run as such a user, with a Python it can read"
    raise UserError(f"no way to execute programs safely on this machine ({reasons}); {cure}")


class Sandbox:
    """Executes programs of unknown intent, each in a fresh, confined process; warm workers end with the context."""

    def __init__(
        self,
        limits: Limits | None = None,
        workers: int | None = None,  # alive at once, by default one a processor; with more, programs wait too long
        level: str | None = None,  # of LEVELS, by default the best; UserError where the machine does not offer it
        cache: Cache | None = None,  # remembers programs that only their text decides, and of output the end
    ) -> None:
        if level and level not in LEVELS:
            raise UserError(f"unknown sandbox level {level!r}; expected one of {', '.join(LEVELS)}")
        if level and (reason := why_not(level)):
            raise UserError(f"sandbox level {level!r} does not work here ({reason}); the best is {best_level()!r}")
        self.limits = limits or Limits()
        self.level = level or best_level()
        self._places = workers or processors()
        self._slots = asyncio.Semaphore(self._places)
        self._alone = asyncio.Lock()
        self._idle: list[Worker] = []
        self._verdicts = Verdicts(cache, self._ground) if cache else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._verdicts:
            await self._verdicts.close()
        while self._idle:
            self._idle.pop().close()

    async def run(self, program: Program) -> Execution:
        """Return how a program ends; ``SANDBOX_ERROR`` must not be scored. UserError where the cache is broken."""
        if self._verdicts is None:
            return await self._executed(program)
        outcome, *rest = await self._verdicts.of(astuple(program), lambda: self._judged(program))
        return Execution(Outcome(outcome), *rest)

    def _ground(self) -> tuple[str, ...]:
        code = fingerprint([ROOT / "harness" / "sandbox"])
        return repr(self.limits), self.level, sys.version, sysconfig.get_platform(), code

    async def _judged(self, program: Program) -> tuple[tuple[Any, ...], Scope]:
        execution = await self._executed(program)
        # Whether the text alone decides how it ends, as far as the text tells.
        own = not any(_OPEN_DOOR.search(part) for part in (program.source, program.setup, program.checks))
        scope = Scope.MACHINE if own and execution.outcome not in MACHINES_OWN else Scope.PROCESS
        if execution.outcome is Outcome.SANDBOX_ERROR:
            scope = Scope.NONE
        return astuple(replace(execution, stdout=execution.stdout[-_KEPT_OUTPUT:])), scope

    async def _executed(self, program: Program) -> Execution:
        async with self._slots:
            execution = await self._tried(program)
        if execution.outcome not in _DOUBTFUL or execution.was_idle:
            return execution
        async with self._alone, contextlib.AsyncExitStack() as all_slots:
            for _ in range(self._places):
                await all_slots.enter_async_context(self._slots)
            again = await self._tried(program)
        if again.outcome is not execution.outcome:
            logger.warning("a program ended as %s on a busy machine, and as %s alone", execution.outcome, again.outcome)
        return again

    async def _tried(self, program: Program) -> Execution:
        execution = await self._attempt(program)
        return await self._attempt(program) if execution.outcome is Outcome.SANDBOX_ERROR else execution

    async def _attempt(self, program: Program) -> Execution:
        worker: Worker | None = None
        try:
            worker = self._idle.pop() if self._idle else Worker(self.level, self.limits)
            return await worker.run(program)
        except (OSError, ValueError) as error:
            return failed(f"{type(error).__name__}: {error}")
        finally:
            if worker is not None and worker.is_spent:
                # It may take its time to end, and its files to go.
                await asyncio.to_thread(worker.close)
            elif worker is not None:
                self._idle.append(worker)

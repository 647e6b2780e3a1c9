"""The sandbox: a pool of warm workers at the best level of confinement that works here."""

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
from dataclasses import astuple
from typing import Any, Self

from harness.concurrency import processors
from harness.database import Cache
from harness.errors import UserError
from harness.files import ROOT
from harness.fingerprint import fingerprint
from harness.sandbox.cache import VerdictCache
from harness.sandbox.jail.confinement import FULL, RLIMIT
from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.worker import Worker, WorkerLostError, failed_execution

# The strongest first.
LEVELS = (FULL, RLIMIT)
# Other programs on a busy machine may have caused these.
_DOUBTFUL = (Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.KILLED)
# Another machine, or this one on another day, may end the same program otherwise. A limit of memory is among them: with
# more processors, more of it is set aside for threads. A limit of output is not: the program's own bytes are counted.
_MACHINE_DEPENDENT = frozenset({*_DOUBTFUL, Outcome.MEMORY_LIMIT, Outcome.SANDBOX_ERROR})
# A trial of a level that ends this way, or for a shortage of memory or the like, does not say that it is refused.
_DISTURBANCES = _MACHINE_DEPENDENT - {Outcome.SANDBOX_ERROR}
_SHORTAGES = tuple(map(os.strerror, (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)))
_TRIALS = 3
# By these a program may depend on chance, the clock or the machine; a name too many costs only another execution.
_NONDETERMINISTIC_NAMES = (
    "random secrets uuid time timeit datetime tempfile os io pathlib glob shutil platform socket http urllib resource "
    "signal gc threading _thread concurrent asyncio multiprocessing subprocess "
    "gzip zipfile tarfile email ssl statistics logging importlib __import__"
)
_NONDETERMINISTIC = re.compile(rf"\b(?:{'|'.join(_NONDETERMINISTIC_NAMES.split())})\b|\b(?:id|open)\(")
# Needs files of the library after confinement, both Python and shared objects.
_PROBE = Program("import decimal, json, random, statistics, zoneinfo")

logger = logging.getLogger(__name__)


@functools.cache
def refusal(level: str) -> str:
    """Return in one line why this machine refuses a level, empty if it works; tried once a process.

    Raises UserError if no trial comes to its end: that says nothing about the level, and must not lower it.
    """
    refusals: list[str] = []
    disturbances: list[str] = []
    for _ in range(_TRIALS):
        # The caller may be in an event loop.
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            trial = thread.submit(asyncio.run, _try(level)).result()
        if trial.outcome is Outcome.PASSED:
            break
        is_disturbed = trial.outcome in _DISTURBANCES or any(reason in trial.detail for reason in _SHORTAGES)
        (disturbances if is_disturbed else refusals).append(trial.detail or trial.outcome)
    reasons = [*refusals, *disturbances]
    if reasons:
        text = "; ".join(dict.fromkeys(reasons))
        logger.warning("sandbox level %r: %d of %d trials failed: %s", level, len(reasons), _TRIALS, text)
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
        return Execution(Outcome.WALL_LIMIT, "the worker did not reply in time")
    except WorkerLostError as error:
        return Execution(Outcome.KILLED, str(error))
    except (OSError, ValueError, UserError) as error:
        return failed_execution(error)


def best_level() -> str:
    """Return the best level that works on this machine; raise UserError if none does or it cannot be found out."""
    for level in LEVELS:
        if not refusal(level):
            return level
    reasons = "; ".join(f"{level}: {refusal(level)}" for level in LEVELS)
    cure = "plain resource limits need an unprivileged user: run as such a user, with a Python it can read"
    raise UserError(f"no way to execute programs safely on this machine ({reasons}); {cure}")


class Sandbox:
    """Executes programs of unknown intent, each in a fresh, confined process; warm workers end with the context."""

    def __init__(
        self,
        limits: Limits | None = None,
        workers: int | None = None,  # by default one a processor; with more, programs would wait too long
        level: str | None = None,  # of LEVELS, by default the best; UserError if the machine refuses it
        reuses: bool = True,  # a worker runs one program after another; not where checks are a stranger's
        cache: Cache | None = None,  # keeps the outcome of programs that depend on nothing but their text
    ) -> None:
        if level and level not in LEVELS:
            raise UserError(f"unknown sandbox level {level!r}; expected one of {', '.join(LEVELS)}")
        if level and (reason := refusal(level)):
            raise UserError(f"sandbox level {level!r} does not work here ({reason}); the best is {best_level()!r}")
        self.limits = limits or Limits()
        self.level = level or best_level()
        self._workers, self._reuses = workers or processors(), reuses
        self._slots = asyncio.Semaphore(self._workers)
        self._alone = asyncio.Lock()
        self._idle: list[Worker] = []
        self._verdicts = VerdictCache(cache, self._environment) if cache else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._verdicts:
            await self._verdicts.close()
        while self._idle:
            self._idle.pop().close()

    async def run(self, program: Program) -> Execution:
        """Execute a program; ``SANDBOX_ERROR`` must not be scored. Raise UserError if the cache is broken."""
        if self._verdicts is None:
            return await self._execute(program)
        outcome, *values = await self._verdicts.get(astuple(program), lambda: self._decide(program))
        return Execution(Outcome(outcome), *values)

    def _environment(self) -> tuple[str, ...]:
        code = fingerprint([ROOT / "harness" / "sandbox"])
        return repr(self.limits), self.level, sys.version, sysconfig.get_platform(), code

    async def _decide(self, program: Program) -> tuple[tuple[Any, ...], bool]:
        execution = await self._execute(program)
        is_deterministic = not any(map(_NONDETERMINISTIC.search, (program.source, program.setup, program.checks)))
        return astuple(execution), is_deterministic and execution.outcome not in _MACHINE_DEPENDENT

    async def _execute(self, program: Program) -> Execution:
        """Execute a program; once more, while no other runs, if it may have been its neighbours that ended it."""
        async with self._slots:
            execution = await self._retry(program)
        if execution.outcome not in _DOUBTFUL or execution.was_idle:
            return execution
        async with self._alone, contextlib.AsyncExitStack() as all_slots:
            for _ in range(self._workers):
                await all_slots.enter_async_context(self._slots)
            again = await self._retry(program)
        if again.outcome is not execution.outcome:
            logger.warning("a program ended as %s on a busy machine, and as %s alone", execution.outcome, again.outcome)
        return again

    async def _retry(self, program: Program) -> Execution:
        execution = await self._attempt(program)
        return await self._attempt(program) if execution.outcome is Outcome.SANDBOX_ERROR else execution

    async def _attempt(self, program: Program) -> Execution:
        worker: Worker | None = None
        try:
            worker = self._idle.pop() if self._idle else Worker(self.level, self.limits)
            return await worker.run(program)
        except (OSError, ValueError) as error:
            return failed_execution(f"{type(error).__name__}: {error}")
        finally:
            if worker is not None and (worker.is_spent or not self._reuses):
                # Ending a process and deleting its files may take a while.
                await asyncio.to_thread(worker.close)
            elif worker is not None:
                self._idle.append(worker)

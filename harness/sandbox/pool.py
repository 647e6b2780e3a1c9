"""The sandbox: a pool of warm workers at the best level of confinement that works here."""

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
from typing import Any

from harness.concurrency import processors
from harness.database import Cache, VerdictCache
from harness.errors import UserError
from harness.files import ROOT
from harness.fingerprint import fingerprint
from harness.sandbox.jail.confinement import FULL, RLIMIT
from harness.sandbox.worker import LIMITS, Execution, Limits, Outcome, Program, Worker, WorkerLostError, printable_line

LEVELS = (FULL, RLIMIT)  # the strongest first
# Outcomes that other programs on a busy machine may cause.
_DOUBTFUL = (Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.KILLED)
# Outcomes that may differ on another day. The memory limit is among these: with more processors, more memory is
# reserved for threads. The output limit is not: it counts the program's own bytes. Nor is that of processor time:
# the program has reached it twice, the second time with no other program of its cell.
_MACHINE_DEPENDENT = frozenset({Outcome.WALL_LIMIT, Outcome.KILLED, Outcome.MEMORY_LIMIT, Outcome.SANDBOX_ERROR})
# Names through which a program may depend on chance, the clock or the machine. False matches cost only executions.
_NONDETERMINISTIC = re.compile(r"""(?x) \b(?:id|open)\( | \b(?:
    random|secrets|uuid|time|timeit|datetime|tempfile|os|io|pathlib|glob|shutil|platform|socket|http|urllib|resource|signal
    |gc|threading|_thread|concurrent|asyncio|multiprocessing|subprocess|gzip|zipfile|tarfile|email|ssl|statistics|logging
    |importlib|__import__)\b""")
# Needs files of the library after confinement, both Python and shared objects.
_PROBE = Program("import decimal, json, random, statistics, zoneinfo")
_TRIALS, _ATTEMPTS = 3, 2
# Outcomes of a disturbed trial, which do not show that the machine refuses the level.
_DISTURBANCES = frozenset({*_DOUBTFUL, Outcome.MEMORY_LIMIT})
_SHORTAGES = tuple(map(os.strerror, (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)))

logger = logging.getLogger(__name__)


class Sandbox(contextlib.AbstractAsyncContextManager["Sandbox"]):
    """Runs untrusted programs, each in a fresh, confined process. Leaving the context ends the workers.

    By default there is one worker per processor, and ``level`` is the best level that works here (UserError if none
    does). If ``reuses`` is false, for untrusted checks, each worker runs only one program. ``cache`` keeps executions
    of programs that depend only on their text, ``own`` those of this cell that depend on chance, clock or machine: a
    cell that resumes must see the same outputs, or it would make other calls.
    """

    def __init__(
        self,
        limits: Limits = LIMITS,
        workers: int | None = None,
        level: str | None = None,
        reuses: bool = True,
        cache: Cache | None = None,
        own: Cache | None = None,
    ) -> None:
        self.limits, self.level = limits, level or best_level()
        self._workers, self._reuses = workers or processors(), reuses
        self._slots = asyncio.Semaphore(self._workers)
        self._alone = asyncio.Lock()
        self._idle: list[Worker] = []
        self._cache, self._own = cache, own
        self._verdicts = VerdictCache((cache, own), self._environment) if cache else None

    async def __aexit__(self, *_: object) -> None:
        if self._verdicts:
            await self._verdicts.close()
        while self._idle:
            self._idle.pop().close()

    async def run(self, program: Program) -> Execution:
        """Run a program and its checks, or return the cached execution.

        The outcome ``SANDBOX_ERROR`` must not be scored. Raises UserError if the cache is broken.
        """
        if self._verdicts is None:
            return await self._execute(program)

        async def execute() -> tuple[tuple[Any, ...], Cache | None]:
            execution = await self._execute(program)
            texts = (program.source, program.setup, program.checks)
            is_shared = execution.outcome not in _MACHINE_DEPENDENT and not any(map(_NONDETERMINISTIC.search, texts))
            has_failed = execution.outcome is Outcome.SANDBOX_ERROR
            return astuple(execution), self._cache if is_shared else None if has_failed else self._own

        outcome, *values = await self._verdicts.get(astuple(program), execute)
        return Execution(Outcome(outcome), *values)

    def _environment(self) -> tuple[str, ...]:
        code = fingerprint([ROOT / "harness" / "sandbox"])
        return repr(self.limits), self.level, sys.version, sysconfig.get_platform(), code

    async def _execute(self, program: Program) -> Execution:
        """Run a program. If other programs may have caused its outcome, run it again alone."""
        async with self._slots:
            execution = await self._attempt(program)
        if execution.outcome not in _DOUBTFUL or execution.was_idle:
            return execution
        async with self._alone, contextlib.AsyncExitStack() as all_slots:
            for _ in range(self._workers):
                await all_slots.enter_async_context(self._slots)
            again = await self._attempt(program)
        if again.outcome is not execution.outcome:
            logger.warning("a program ended as %s on a busy machine, and as %s alone", execution.outcome, again.outcome)
        return again

    async def _attempt(self, program: Program) -> Execution:
        """Run a program in an idle or a new worker. Try once more if the sandbox itself fails."""
        for _ in range(_ATTEMPTS):
            worker = None
            try:
                worker = self._idle.pop() if self._idle else Worker(self.level, self.limits)
                execution = await worker.run(program)
            except (OSError, ValueError) as error:
                execution = Execution(Outcome.SANDBOX_ERROR, printable_line(f"{type(error).__name__}: {error}"))
            finally:
                if worker is not None and (worker.is_spent or not self._reuses):
                    # Ending a process and deleting its files may take a while.
                    await asyncio.to_thread(worker.close)
                elif worker is not None:
                    self._idle.append(worker)
            if execution.outcome is not Outcome.SANDBOX_ERROR:
                break
        return execution


def best_level() -> str:
    """Find the best level that works on this machine. Raises UserError if none works or trials are disturbed."""
    for level in LEVELS:
        if not refusal(level):
            return level
    reasons = "; ".join(f"{level}: {refusal(level)}" for level in LEVELS)
    cure = "plain resource limits need an unprivileged user: run as such a user, with a Python it can read"
    raise UserError(f"no way to execute programs safely on this machine ({reasons}); {cure}")


@functools.cache
def refusal(level: str) -> str:
    """Try a level, once per process. Return one line on why this machine refuses it. Empty if it works.

    Raises UserError if all trials are disturbed: this says nothing about the level, and must not lower it.
    """
    reasons, refused = list[str](), ""
    for _ in range(_TRIALS):
        # The caller may be in an event loop.
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            trial = thread.submit(asyncio.run, _try(level)).result()
        if trial.outcome is Outcome.PASSED:
            break
        reasons.append(trial.detail or trial.outcome)
        if trial.outcome not in _DISTURBANCES and not any(reason in trial.detail for reason in _SHORTAGES):
            refused = refused or reasons[-1]
    if reasons:
        text = "; ".join(dict.fromkeys(reasons))
        logger.warning("sandbox level %r: %d of %d trials failed: %s", level, len(reasons), _TRIALS, text)
    if refused or len(reasons) < _TRIALS:
        return refused if len(reasons) == _TRIALS else ""
    raise UserError(
        f"whether programs can run at sandbox level {level!r} could not be found out: {len(reasons)} trials were cut "
        f"short ({reasons[-1]}); the machine is overloaded, or something ends processes here, as when memory runs out: "
        "free it, then give the same command again"
    )


async def _try(level: str) -> Execution:
    try:
        with contextlib.closing(Worker(level, LIMITS)) as worker:
            return await worker.run(_PROBE)
    except (OSError, ValueError) as error:
        # A worker that is late or lost says nothing about the level.
        outcome = Outcome.KILLED if isinstance(error, TimeoutError | WorkerLostError) else Outcome.SANDBOX_ERROR
        return Execution(outcome, printable_line(str(error) or "the worker did not reply in time"))

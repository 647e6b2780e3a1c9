"""The sandbox: a pool of warm workers at the best level of confinement that works here."""

import asyncio
import concurrent.futures
import contextlib
import errno
import functools
import json
import logging
import marshal
import os
import re
import signal
import subprocess
import sys
import sysconfig
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

from harness.concurrency import processors
from harness.database import Cache, VerdictCache
from harness.errors import UserError
from harness.files import ROOT
from harness.fingerprint import fingerprint
from harness.sandbox.jail import protocol
from harness.sandbox.jail.confinement import FULL, RLIMIT
from harness.sandbox.model import LIMITS, Execution, Limits, Outcome, Program
from harness.sandbox.policy import make_home, policy
from harness.sandbox.process import Child

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
# The work directory at ``full``: in a root in memory, outside every directory that may hold an interpreter.
_PRIVATE_WORK_DIR = "/box"
_PATIENCE_S = 60.0  # a worker that has not replied by this time after all limits is broken
_LIFETIME = 1000  # programs after which a worker is replaced, since checks may leave traces in their process
# Not -I, which would ignore PYTHONHASHSEED: -P, -s and the environment do the rest of what it does.
_OPTIONS = ("-P", "-S", "-s")
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC"}
# The command line is the same for all programs, since other processes can read it.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from jail.fork_server import main; sys.path.pop(); main()"
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_LONGEST_DETAIL = 300
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
                execution = Execution(Outcome.SANDBOX_ERROR, _line(f"{type(error).__name__}: {error}"))
            finally:
                if worker is not None and (worker.is_spent or not self._reuses):
                    # Ending a process and deleting its files may take a while.
                    await asyncio.to_thread(worker.close)
                elif worker is not None:
                    self._idle.append(worker)
            if execution.outcome is not Outcome.SANDBOX_ERROR:
                break
        return execution


class WorkerLostError(OSError):
    """The worker ended without a report, perhaps killed. This does not mean that the machine refuses the level."""


class Worker:
    """Process that runs one program at a time, on one event loop. Must be closed after use."""

    def __init__(self, level: str, limits: Limits) -> None:
        # Whether to replace it: not started, broken, old, or with files left in its work directory.
        self.is_spent = True
        self._programs = 0
        self._limits = limits
        self._home = make_home() if level == RLIMIT else None
        told = json.dumps(policy(level, limits, f"{self._home}/box" if self._home else _PRIVATE_WORK_DIR))
        command = [os.path.realpath(sys.executable), *_OPTIONS, "-c", _BOOT, os.path.dirname(__file__), told]
        try:
            self.child = Child(command, _ENVIRONMENT, Path("/"))
        except BaseException:
            self._delete_home()
            raise

    async def run(self, program: Program) -> Execution:
        """Run a program. Raises OSError if the worker has failed, is lost or cannot start."""
        job = marshal.dumps(asdict(program))
        if len(job) > protocol.LONGEST_JOB:
            size = f"more than {protocol.LONGEST_JOB >> 20} MiB of source, {len(program.source)} characters of it"
            return Execution(Outcome.NOT_EXECUTABLE, f"{size} the program")
        self.is_spent = True
        # Enough for a worker to start on a crowded machine, and for program and checks to reach their limits.
        content = await self.child.ask(job, self._limits.wall_s + 10 * self._limits.cpu_s + _PATIENCE_S)
        if not content and await asyncio.to_thread(self.child.process.wait) == -signal.SIGXCPU:
            # Checks take so long only because of a value that the program returned.
            return Execution(Outcome.CPU_LIMIT, f"more than {self._limits.cpu_s} s of processor time in the checks")
        if not content:
            raise WorkerLostError(f"the worker ended: {self.child.last_error_line()}")
        # Written by the process of the checks; no program can write to this connection.
        report: dict[str, Any] = marshal.loads(content)  # noqa: S302
        if "failure" in report:
            raise OSError(report["failure"])
        self._programs += 1
        self.is_spent = report["is_dirty"] or self._programs >= _LIFETIME
        outcome = Outcome(report["outcome"])
        shown = report["shown"] if outcome is Outcome.PASSED else None
        detail, shown = _line(report["detail"]), shown and _encodable(shown)
        return Execution(outcome, detail, shown, report["is_loaded"], report["was_idle"])

    def close(self) -> None:
        """End the process and all that it started, and delete its work directory."""
        self.child.close()
        self._delete_home()

    def _delete_home(self) -> None:
        # Unlike ``shutil.rmtree``, these remove very deep trees and directories without any rights.
        for tool in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            if self._home is not None:
                subprocess.run([*tool, self._home], stderr=subprocess.DEVNULL, check=False)  # noqa: S603


def _line(detail: str) -> str:
    return _encodable(_ADDRESS.sub("0x...", _CONTROL.sub(" ", detail))[:_LONGEST_DETAIL])


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


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
    reasons: list[str] = []
    refusals: list[str] = []
    for _ in range(_TRIALS):
        # The caller may be in an event loop.
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            trial = thread.submit(asyncio.run, _try(level)).result()
        if trial.outcome is Outcome.PASSED:
            break
        reasons.append(trial.detail or trial.outcome)
        if trial.outcome not in _DISTURBANCES and not any(reason in trial.detail for reason in _SHORTAGES):
            refusals.append(reasons[-1])
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
        with contextlib.closing(Worker(level, LIMITS)) as worker:
            return await worker.run(_PROBE)
    except TimeoutError:
        return Execution(Outcome.WALL_LIMIT, "the worker did not reply in time")
    except WorkerLostError as error:
        return Execution(Outcome.KILLED, str(error))
    except (OSError, ValueError, UserError) as error:
        return Execution(Outcome.SANDBOX_ERROR, _line(str(error)))

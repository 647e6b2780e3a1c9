"""Many programs, a few at once, on warm workers."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from dataclasses import replace
from types import TracebackType

from harness.errors import UserError
from harness.sandbox.levels import best_level, require_level
from harness.sandbox.model import Execution, Limits, Outcome, Program
from harness.sandbox.verdict import failed
from harness.sandbox.worker import Worker

_ATTEMPTS = 2
# What the neighbours of a program may have brought about.
_DOUBTFUL = (Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.KILLED)

logger = logging.getLogger(__name__)


class Sandbox:
    """Executes programs of unknown intent, each in a fresh, confined process.

    Use it from one event loop, as an async context manager: warm workers, started when first needed, end with it.

    Attributes:
        limits: What each program may use.
        level: How well programs are confined here, one of :data:`harness.sandbox.levels.LEVELS`; belongs in every
            result.
    """

    def __init__(self, limits: Limits | None = None, workers: int | None = None, level: str | None = None) -> None:
        """Finds out what the machine offers.

        Args:
            limits: What each program may use.
            workers: Programs alive at once; one a processor where ``None``. More do not give more, and slow
                programs reach their wall limit.
            level: The level to use instead of the best.

        Raises:
            UserError: The machine offers no level, or not the one asked for; or ``workers`` is not positive.
        """
        if workers is not None and workers < 1:
            raise UserError(f"the sandbox got {workers} workers; expected at least 1, or none for one a processor")
        self.limits = limits or Limits()
        self.level = require_level(level) if level else best_level()
        processors = _processors()
        self._places = workers or len(processors)
        self._processors = itertools.cycle(processors)
        self._slots = asyncio.Semaphore(self._places)
        self._alone = asyncio.Lock()
        self._idle: list[Worker] = []

    async def __aenter__(self) -> Sandbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._idle:
            self._idle.pop().close()

    async def run(self, program: Program) -> Execution:
        """Executes a program and says how it ended.

        A failure of the sandbox itself is tried once more and then reported as :attr:`Outcome.SANDBOX_ERROR`, which
        must not be scored. A program that passes a limit of time, or is killed, is executed once more while no other
        is, and that counts: a busy machine must not decide.
        """
        async with self._slots:
            execution = await self._certainly(program)
        if execution.outcome not in _DOUBTFUL:
            return execution
        again = await self._by_itself(program)
        if again.outcome is not execution.outcome:
            logger.warning("a program ended as %s on a busy machine, and as %s alone", execution.outcome, again.outcome)
        return replace(again, first=execution.outcome)

    async def _by_itself(self, program: Program) -> Execution:
        async with self._alone:
            taken = 0
            try:
                for _ in range(self._places):
                    await self._slots.acquire()
                    taken += 1
                return await self._certainly(program)
            finally:
                for _ in range(taken):
                    self._slots.release()

    async def _certainly(self, program: Program) -> Execution:
        for _ in range(_ATTEMPTS):
            execution = await self._attempt(program)
            if execution.outcome is not Outcome.SANDBOX_ERROR:
                break
        return execution

    async def _attempt(self, program: Program) -> Execution:
        worker: Worker | None = None
        try:
            worker = self._idle.pop() if self._idle else await _started(self.level, self.limits, next(self._processors))
            return await worker.run(program)
        except (OSError, ValueError) as error:
            return failed(f"{type(error).__name__}: {error}")
        finally:
            if worker is not None and worker.is_spent:
                # It may take its time to end, and its files to go.
                await asyncio.to_thread(worker.close)
            elif worker is not None:
                self._idle.append(worker)


async def _started(level: str, limits: Limits, processor: int | None) -> Worker:
    worker = Worker(level, limits, processor)
    try:
        await asyncio.to_thread(worker.start)
    except BaseException:
        worker.close()
        raise
    return worker


def _processors() -> list[int] | list[None]:
    """Processors this process may use: a batch system often grants fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return [None] * (os.cpu_count() or 1)

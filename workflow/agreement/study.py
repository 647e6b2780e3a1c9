"""Grades the recorded outputs of several benchmarks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from pathlib import Path

from harness.benchmarks.base import Tools
from harness.benchmarks.math_verifier import MathVerifier
from harness.errors import UserError
from workflow.agreement.comparing import Comparison, compare
from workflow.agreement.questions import Questions
from workflow.agreement.records import Record, read

INTERVAL_S = 5.0

logger = logging.getLogger(__name__)


async def study(folder: Path, files: Sequence[str]) -> list[Comparison]:
    """Grade every record of some files, in their order.

    Raises:
        UserError: A file is missing or damaged, the sandbox failed, or it is too weak for programs of real models.
    """
    from harness.sandbox import Sandbox
    from harness.sandbox.jail.confinement import FULL

    records = [record for file in files for record in read(folder, file)]
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        if sandbox.level != FULL:
            raise UserError(
                f"real models wrote the recorded programs, and the sandbox offers no more than {sandbox.level!r} here: "
                "`gmr sandbox` says what is missing"
            )
        return await grade_all(records, folder, Tools(sandbox, math_verify))


async def grade_all(records: Sequence[Record], folder: Path, tools: Tools) -> list[Comparison]:
    """Grade records, as many at once as the tools allow; a line now and then says how far it is."""
    questions, progress = Questions(folder), _Progress(len(records))

    async def one(record: Record) -> list[Comparison]:
        compared = await compare(record, questions, tools)
        progress.finished()
        return compared

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(record)) for record in records]
    return [comparison for task in tasks for comparison in task.result()]


class _Progress:
    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._last = time.monotonic()

    def finished(self) -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._last >= INTERVAL_S or self._done == self._total:
            self._last = now
            logger.info("recorded outputs: %d/%d graded", self._done, self._total)

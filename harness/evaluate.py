"""The evaluation loop: many questions in flight on one event loop, each solved, then graded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from harness.items import Item
from harness.method import Method
from harness.progress import Progress
from harness.results import Answered
from harness.together import together
from harness.workplace import Workplace


async def evaluate(
    method: Method, items: Sequence[Item], workplace: Workplace, progress: Progress, *, in_flight: int
) -> list[Answered]:
    """Answer and grade every question.

    Args:
        method: The method, trained if it learns.
        items: The questions; the result is in their order whatever finishes first.
        workplace: Gives each question a desk and grades its answer.
        progress: Told of every finished question.
        in_flight: Questions worked on at the same time.

    Raises:
        UserError: Too many questions failed, or an endpoint is gone.
    """
    slots = asyncio.Semaphore(in_flight)

    async def one(item: Item) -> Answered:
        async with slots:
            answered = await workplace.attempt(method.solve, item)
        progress.item(*answered)
        return answered

    return await together(one(item) for item in items)

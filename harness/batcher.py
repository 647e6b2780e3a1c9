"""Work for many coroutines done together: whatever is asked for when the event loop gets to it is one batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Given = TypeVar("Given")


class Batcher(Generic[Asked, Given]):
    """Collects what coroutines ask for in one turn of the event loop and computes it at once.

    Nobody waits for company: there is no timer, and one who asks alone is a batch of one. How questions fall into
    batches depends on timing, so a result may depend on its own question only.

    Args:
        compute: Results for one or more questions, in their order; it runs on the event loop.
        most: Most questions of a batch. What is left over is computed in the following turns, between which the loop
            serves others.
    """

    def __init__(self, compute: Callable[[Sequence[Asked]], Sequence[Given]], most: int) -> None:
        self._compute = compute
        self._most = most
        self._waiting: list[tuple[Asked, asyncio.Future[Given]]] = []

    async def ask(self, question: Asked) -> Given:
        """The result for a question; where its batch fails, the failure reaches everyone in it."""
        future: asyncio.Future[Given] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        if len(self._waiting) == 1:
            future.get_loop().call_soon(self._turn)
        return await future

    def _turn(self) -> None:
        batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        if self._waiting:
            self._waiting[0][1].get_loop().call_soon(self._turn)
        wanted = [(question, future) for question, future in batch if not future.cancelled()]
        if not wanted:
            return
        try:
            results = self._compute([question for question, _ in wanted])
            pairs = list(zip(wanted, results, strict=True))
        except Exception as error:
            for _, future in wanted:
                future.set_exception(error)
            return
        for (_, future), result in pairs:
            future.set_result(result)

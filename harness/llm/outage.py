"""Whether a backbone answers anything at all: a call that fails is one thing, a server that is gone another."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from harness.llm.completion import AttemptError
from harness.llm.unreachable import unreachable, with_causes

logger = logging.getLogger(__name__)

# How soon a server that is back is noticed.
PROBE_EVERY_S = 2.0
# After so long the cell gives up, and goes on from its log when it is started again.
OUTAGE_S = 600.0
_WARN_EVERY_S = 60.0


@dataclass
class Trouble:
    """Attempts that failed in a row, as all would in an outage.

    Attributes:
        calls: Keys of their calls.
        attempts: How many they are.
        is_outage: Whether a request of the watch's own failed as well.
    """

    calls: set[str] = field(default_factory=set)
    attempts: int = 0
    is_outage: bool = False

    @property
    def is_shared_outage(self) -> bool:
        """Whether it is an outage that several calls met, and so none of theirs."""
        return self.is_outage and len(self.calls) > 1


class Watch:
    """Tells an outage of a backbone from calls of it that fail.

    An outage begins when attempts have failed in a row and a request of the watch's own fails as well; it ends with the
    first answer, be it to a call still under way or to that request, which is repeated every two seconds.

    Args:
        backbone: Its key.
        urls: Where it is served.
        after: So many failed attempts in a row raise the question.
        probe: Asks for an answer; returns what came instead, ``None`` where there was one.
        on_change: Called when an outage has begun, and when it is over.
        on_loss: Called with the reason when it has lasted too long.

    Attributes:
        trouble: What has failed since the last answer.
    """

    def __init__(
        self,
        backbone: str,
        urls: str,
        after: int,
        probe: Callable[[], Awaitable[AttemptError | None]],
        on_change: Callable[[], None],
        on_loss: Callable[[BaseException], None],
    ) -> None:
        self._backbone, self._urls, self._after = backbone, urls, after
        self._probe, self._on_change, self._on_loss = probe, on_change, on_loss
        self.trouble = Trouble()
        self._answers = 0
        self._began: float | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def is_out(self) -> bool:
        """Whether there is an outage now, as far as is known."""
        return self._began is not None

    def answered(self) -> None:
        """Learn of an answer."""
        self._answers += 1
        if self.trouble.attempts:
            self.trouble = Trouble()
        if self._began is not None:
            logger.warning("%s answers again after %.0f s", self._backbone, time.monotonic() - self._began)
            self._began = None
            self._on_change()

    def unanswered(self, key: str, before: Trouble) -> Trouble:
        """Learn of an attempt that failed as all would in an outage; what it met.

        Args:
            key: Of the call.
            before: The trouble there was when the attempt began.
        """
        self.trouble.attempts += 1
        # What hung in an outage may fail when that is over.
        met = before if before.is_outage else self.trouble
        met.calls.add(key)
        if self.trouble.attempts >= self._after and not self._tasks:
            self._begin(self.is_well())
        return met

    async def is_well(self) -> bool:
        """Whether the backbone answers, asked now; if not, this is an outage."""
        before = self._answers
        error = None if self.is_out else await self._probe()
        if error is not None and self._answers == before and not self.is_out:
            self._began = time.monotonic()
            self.trouble.is_outage = True
            logger.warning(
                "%s does not answer at %s (%s): its calls wait until it does, for at most %.0f minutes",
                *(self._backbone, self._urls, with_causes(error.__cause__ or error), OUTAGE_S / 60),
            )
            self._begin(self._follow(self._began))
            self._on_change()
        elif error is None and not self.is_out:
            self.answered()
        return not self.is_out

    async def close(self) -> None:
        """Ask no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, began: float) -> None:
        """Ask until there is an answer, or it has taken too long."""
        warned = began
        while self._began == began:
            await asyncio.sleep(PROBE_EVERY_S)
            error, now = await self._probe(), time.monotonic()
            if self._began != began:
                return
            if error is None:
                self.answered()
            elif now - began >= OUTAGE_S:
                self._began, self.trouble = None, Trouble()
                self._on_loss(unreachable(self._backbone, self._urls, error.__cause__ or error))
            elif now - warned >= _WARN_EVERY_S:
                warned = now
                logger.warning("%s has not answered for %.0f s", self._backbone, now - began)

    def _begin(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Who waits would wait for ever.
            self._began = None
            self._on_loss(error)

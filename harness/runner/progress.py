"""Lines that say how far a cell is, at a steady pace however long a question, an update or a call takes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.llm.client import ChatClient

logger = logging.getLogger(__name__)

INTERVAL_S = 10.0


@contextmanager
def progress(client: ChatClient, done: Callable[[], str]) -> Iterator[None]:
    """Log every ten seconds while the block runs, and at its end, what is ``done``, with calls and tokens of the block.

    A timer of the event loop, not the end of a call, sets the pace: on a slow server one call may take minutes.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle
    started, calls, tokens = loop.time(), client.calls_answered, client.tokens_written

    def log() -> None:
        written = client.tokens_written - tokens
        rate = written / max(loop.time() - started, 1e-9)
        answered = client.calls_answered - calls
        logger.info(f"{done()}, {answered:,} calls answered, {written:,} tokens written ({rate:,.0f}/s)")

    def tick() -> None:
        nonlocal timer
        timer = loop.call_later(INTERVAL_S, tick)
        log()

    timer = loop.call_later(INTERVAL_S, tick)
    try:
        yield
        log()
    finally:
        timer.cancel()

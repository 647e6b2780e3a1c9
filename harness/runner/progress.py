"""Progress of a cell, logged at a steady pace."""

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
    """Log ``done()`` and the calls answered in the block, every ten seconds and, if there were any, at its end.

    A timer sets the pace, because a call may take minutes on a slow server.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle
    started, calls, tokens = loop.time(), client.calls_answered, client.tokens_written

    def report_progress() -> None:
        count = client.tokens_written - tokens
        rate = count / max(loop.time() - started, 1e-9)
        answered = client.calls_answered - calls
        logger.info(f"{done()}, {answered:,} calls, {count:,} tokens written ({rate:,.0f}/s)")

    def tick() -> None:
        nonlocal timer
        timer = loop.call_later(INTERVAL_S, tick)
        report_progress()

    timer = loop.call_later(INTERVAL_S, tick)
    try:
        yield
        if client.calls_answered > calls:
            report_progress()
    finally:
        timer.cancel()

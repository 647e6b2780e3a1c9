"""Ctrl-C and SIGTERM: work is called off, what is finished is kept, and one line says so.

A process that was told to stop ends with status 130 or 143. It has ten seconds to put everything away; after that, or
when it is told a second time, it ends as if it had been killed, which loses nothing either.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

from harness.errors import StoppedError

T = TypeVar("T")

GRACE_S = 10.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AGAIN = "give the same command again"


def stop_cleanly() -> None:
    """Let the signals end this process with one line, wherever it is outside :func:`run`."""
    for number in _SIGNALS:
        signal.signal(number, _end)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; where the process is told to stop, cancel it and exit.

    Raises:
        SystemExit: The process was told to stop; the line is written.
    """
    calling_off = _CallingOff(work)
    before = {number: signal.signal(number, calling_off.on_signal) for number in _SIGNALS}
    try:
        return asyncio.run(calling_off.run())
    except BaseException as error:
        if calling_off.signal is None:
            raise
        # Whatever else failed on the way out will show again, if it was more than the way out.
        _say(calling_off.signal, str(error) if isinstance(error, StoppedError) else _AGAIN)
        sys.exit(128 + calling_off.signal)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _CallingOff:
    """A coroutine that the first signal cancels; the second ends the process at once."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.signal: int | None = None
        self._work = work
        self._task: asyncio.Task[Any] | None = None

    async def run(self) -> Any:
        self._task = asyncio.current_task()
        return await self._work

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._task is None:
            _end(number, frame)
        elif self.signal is not None:
            _kill(number, "told so twice")
        else:
            self.signal = number
            patience = threading.Timer(GRACE_S, _kill, (number, f"not put away within {GRACE_S:g} s"))
            patience.daemon = True
            patience.start()
            # Cancelled from here, it would not notice before something else wakes the loop.
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)


def _end(number: int, frame: FrameType | None) -> None:
    _say(number, _AGAIN)
    sys.exit(128 + number)


def _kill(number: int, why: str) -> None:
    _say(number, f"{why}; what is finished is kept: {_AGAIN}")
    os._exit(128 + number)


def _say(number: int, what: str) -> None:
    logging.error("stopped by %s; %s", signal.Signals(number).name, what)

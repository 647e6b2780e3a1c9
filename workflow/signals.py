"""Ctrl-C and SIGTERM: work is called off and put away, the process ends, and one line says so.

A process that was told to stop ends with status 130 or 143, even if what it was at came to its end meanwhile. It has
ten seconds to put everything away; after that, or when it is told a second time, it ends as if it had been killed: what
it has written by then stays.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from harness.errors import StoppedError

if TYPE_CHECKING:
    import asyncio

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
    import asyncio

    calling_off = _CallingOff(work)
    before = {number: signal.signal(number, calling_off.on_signal) for number in _SIGNALS}
    try:
        result: T = asyncio.run(calling_off.run())
    except BaseException as error:
        if calling_off.signal is None:
            raise
        # Whatever else failed on the way out will show again, if it was more than the way out.
        _say(calling_off.signal, str(error) if isinstance(error, StoppedError) else _AGAIN)
        sys.exit(128 + calling_off.signal)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        calling_off.end_patience()
    if calling_off.signal is not None:
        # It came when there was nothing left to cancel; the caller would continue with the next piece of work.
        _end(calling_off.signal, None)
    return result


class _CallingOff:
    """A coroutine that the first signal cancels, if it is not done yet; the second ends the process at once."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.signal: int | None = None
        self._work = work
        self._task: asyncio.Task[Any] | None = None
        self._patience: threading.Timer | None = None

    async def run(self) -> Any:
        import asyncio

        self._task = asyncio.current_task()
        return await self._work

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            _kill(number, "told so twice")
        elif self._task is None or self._task.get_loop().is_closed():
            _end(number, frame)
        else:
            self.signal = number
            self._patience = threading.Timer(GRACE_S, _kill, (number, f"not put away within {GRACE_S:g} s"))
            self._patience.daemon = True
            self._patience.start()
            # Cancelled from here, it would not notice before something else wakes the loop.
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def end_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()


def _end(number: int, frame: FrameType | None) -> None:
    _say(number, _AGAIN)
    sys.exit(128 + number)


def _kill(number: int, why: str) -> None:
    _say(number, f"{why}, so ended at once; {_AGAIN}")
    os._exit(128 + number)


def _say(number: int, what: str) -> None:
    logging.error("stopped by %s; %s", signal.Signals(number).name, what)

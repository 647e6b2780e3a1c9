"""Ctrl-C, SIGTERM and a closed terminal: work is cancelled and saved, the process ends, and one line says so.

A process that was told to stop ends with status 130, 143 or 129, even if what it was at came to its end meanwhile. It
has ten seconds to save its work; after that, or when it is told a second time, it ends as if it had been killed: what
it has written by then stays.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from harness.errors import StoppedError
from harness.unfinished import exit_now

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

GRACE_S = 10.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = "give the same command again"


def stop_cleanly() -> None:
    """Let the signals end this process with one line, wherever it is outside :func:`run`."""
    for number in _heeded():
        signal.signal(number, _end)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; where the process is told to stop, cancel it, say so and raise SystemExit."""
    import asyncio

    received: list[int] = []
    task: asyncio.Task[Any] | None = None
    patience = threading.Timer(GRACE_S, lambda: _kill(received[0], f"not finished within {GRACE_S:g} s"))
    patience.daemon = True

    async def start() -> T:
        nonlocal task
        task = asyncio.current_task()
        return await work

    def cancel(number: int, frame: FrameType | None) -> None:
        if received and number == signal.SIGHUP:
            return  # The kernel and the shell of a closed terminal both send it.
        if received:
            _kill(number, "told so twice")
        if task is None or task.get_loop().is_closed():
            _end(number, frame)
        else:
            received.append(number)
            patience.start()
            # Cancelled from here, it would not notice before something else wakes the loop.
            task.get_loop().call_soon_threadsafe(task.cancel)

    before = {number: signal.signal(number, cancel) for number in _heeded()}
    try:
        result = asyncio.run(start())
    except BaseException as error:
        if not received:
            raise
        # Whatever else failed on the way out will show again, if it was more than the way out.
        _say(received[0], str(error) if isinstance(error, StoppedError) else _AGAIN)
        sys.exit(128 + received[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        patience.cancel()
    if received:
        # It came when there was nothing left to cancel; the caller would continue with the next piece of work.
        _end(received[0], None)
    return result


def _heeded() -> list[signal.Signals]:
    """Return the signals that stop a process: not that of a closed terminal where `nohup` had it ignored."""
    return [number for number in _SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]


def _end(number: int, frame: FrameType | None) -> None:
    _say(number, _AGAIN)
    sys.exit(128 + number)


def _kill(number: int, why: str) -> None:
    _say(number, f"{why}, so ended at once; {_AGAIN}")
    exit_now(128 + number)


def _say(number: int, what: str) -> None:
    logging.error("stopped by %s; %s", signal.Signals(number).name, what)

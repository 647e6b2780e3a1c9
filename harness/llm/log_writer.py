"""Threads that write calls down and wait for the disk, so that no event loop and no finished call does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple

from harness.errors import UserError
from harness.llm.log_lines import Entry

logger = logging.getLogger(__name__)

# The most a loss of power may take, beside what the disk itself loses.
_SYNC_S = 1.0


class _Waiting(NamedTuple):
    entry: Entry
    written: asyncio.Future[None]


class LogWriter:
    """Takes entries from an event loop and writes all that wait at a time in one go.

    The thread lives from the first entry on. A second one waits for the disk meanwhile.

    Args:
        name: What is written, for messages.
        write: Writes entries; says how many of them, from the first on, and why not all.
        sync: Waits for the disk. Called at most once a second, beside ``write``; no entry waits for it.
    """

    def __init__(
        self, name: str, write: Callable[[Sequence[Entry]], tuple[int, UserError | None]], sync: Callable[[], None]
    ) -> None:
        self._name = name
        self._write = write
        self._sync = sync
        self._waiting: list[_Waiting] = []
        self._queue: SimpleQueue[list[_Waiting] | None] = SimpleQueue()
        self._thread: Thread | None = None

    async def put(self, entry: Entry) -> None:
        """Have an entry written; on return it has left this process.

        A caller that gives up waiting takes nothing back.

        Raises:
            UserError: It could not be written.
        """
        if self._thread is None:
            self._thread = Thread(target=self._work, name="call log", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        self._waiting.append(_Waiting(entry, written))
        # What else comes in this turn of the loop goes along: waking the thread costs more than all else here.
        loop.call_soon(self._hand_over)
        await written

    def close(self) -> None:
        """Wait until everything is written and on the disk; closing twice is harmless."""
        if self._thread is not None:
            self._hand_over()
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _hand_over(self) -> None:
        if self._waiting:
            self._queue.put(self._waiting)
            self._waiting = []

    def _work(self) -> None:
        due: float | None = None
        last: Future[None] | None = None
        is_open = True
        with ThreadPoolExecutor(1, "call log") as disk:
            while is_open:
                portions = self._next(None if _is_running(last) else due)
                is_open = None not in portions
                if waiting := [one for portion in portions if portion is not None for one in portion]:
                    self._store(waiting)
                    due = due or time.monotonic() + _SYNC_S
                if due is not None and ((due <= time.monotonic() and not _is_running(last)) or not is_open):
                    last = disk.submit(self._wait_for_disk)
                    # What was written meanwhile may be due by then.
                    last.add_done_callback(lambda _: self._queue.put([]))
                    due = None

    def _next(self, due: float | None) -> list[list[_Waiting] | None]:
        """All that was handed over; nothing where there is nothing until the disk is due."""
        try:
            portions = [self._queue.get(timeout=None if due is None else max(0.0, due - time.monotonic()))]
        except Empty:
            return []
        while not self._queue.empty():
            portions.append(self._queue.get_nowait())
        return portions

    def _store(self, waiting: Sequence[_Waiting]) -> None:
        count: int
        error: Exception | None
        try:
            count, error = self._write([one.entry for one in waiting])
        except Exception as failure:
            count, error = 0, failure
        outcomes = defaultdict(list)
        for number, one in enumerate(waiting):
            outcomes[one.written.get_loop()].append((one.written, None if number < count else error))
        for loop, ones in outcomes.items():
            # A loop that is closed has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_tell, ones)

    def _wait_for_disk(self) -> None:
        try:
            self._sync()
        except OSError as error:
            logger.warning("%s: the disk does not confirm what was written (%s)", self._name, error.strerror)


def _is_running(sync: Future[None] | None) -> bool:
    return sync is not None and not sync.done()


def _tell(outcomes: Sequence[tuple[asyncio.Future[None], Exception | None]]) -> None:
    for written, error in outcomes:
        if written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)

"""Attempts, latencies and hosts: what may differ between two equal runs, kept apart from what may not."""

from __future__ import annotations

import asyncio
import logging
import mmap
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from harness.files import writing
from harness.llm.unreachable import with_causes

logger = logging.getLogger(__name__)

FLUSH_S = 1.0


class AttemptLog:
    """Keeps one JSON line an attempt: clock, host, endpoint, latency in seconds, and the error if it failed.

    Lines are written once a second, in a thread, and on closing; a process that is killed loses those of its last
    second, and what it wrote of a line is cut off on opening. No result depends on them.

    Args:
        path: The file; made if absent. No other process may be writing it.

    Raises:
        UserError: The file cannot be written. Of a full disk the next attempt is told, and who closes the log where
            there is still no room; no part of a line stays, and what is to be written is kept until then.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed = 0
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            self._cut_torn_line()
        self._host = socket.gethostname()
        self._records: deque[dict[str, Any]] = deque()
        self._unwritten = bytearray()
        self._one_writer = threading.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._written: asyncio.Future[None] | None = None

    @contextmanager
    def measure(self, key: str, endpoint: str, attempt: int) -> Iterator[None]:
        """Time the attempt made inside the block; an exception passes through and is noted."""
        if self._written is not None and self._written.done():
            self._written.result()
        started, clock = time.time(), time.perf_counter()
        failure: str | None = None
        try:
            yield
        except BaseException as error:
            failure = f"{type(error).__name__}: {with_causes(error)}"
            self.failed += isinstance(error, Exception)
            raise
        finally:
            record = {
                "key": key,
                "endpoint": endpoint,
                "host": self._host,
                "attempt": attempt,
                "started": started,
                "latency_s": time.perf_counter() - clock,
                "error": failure,
            }
            self._keep(record)

    def close(self) -> None:
        """Write what is left and close the file; closing twice is harmless."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            self._write()
        finally:
            with self._one_writer:
                if self._file >= 0:
                    os.close(self._file)
                self._file = -1
                self._unwritten.clear()

    def _keep(self, record: dict[str, Any]) -> None:
        self._records.append(record)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._written = asyncio.get_running_loop().run_in_executor(None, self._write)

    def _write(self) -> None:
        with self._one_writer, writing(self.path):
            while self._records:
                self._unwritten += orjson.dumps(self._records.popleft(), option=orjson.OPT_APPEND_NEWLINE)
            if not self._unwritten:
                return
            length = os.fstat(self._file).st_size
            rest = memoryview(bytes(self._unwritten))
            try:
                while rest:
                    rest = rest[os.write(self._file, rest) :]
            except OSError:
                os.ftruncate(self._file, length)
                raise
            self._unwritten.clear()

    def _cut_torn_line(self) -> None:
        size = os.fstat(self._file).st_size
        if not size:
            return
        with mmap.mmap(self._file, 0, access=mmap.ACCESS_READ) as content:
            whole = content.rfind(b"\n") + 1
        if whole < size:
            logger.warning("%s: cut off an unfinished last line (%d bytes)", self.path, size - whole)
            os.ftruncate(self._file, whole)

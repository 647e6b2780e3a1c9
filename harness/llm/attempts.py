"""Attempts, latencies and hosts: what may differ between two equal runs, kept apart from what may not."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from harness.files import writing


class AttemptLog:
    """Keeps one JSON line an attempt: key, host, endpoint, start, seconds, and the error if it failed.

    No result depends on it. A retry within the openai package is part of its attempt.

    Args:
        path: The file; made if absent.

    Attributes:
        failed: Attempts that failed.

    Raises:
        UserError: The file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed = 0
        self._host = socket.gethostname()
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without a buffer a line is whole on the disk whenever the process ends.
            self._file = path.open("ab", buffering=0)

    @contextmanager
    def measure(self, key: str, endpoint: str) -> Iterator[None]:
        """Time the attempt made inside the block; an exception passes through and is noted.

        Args:
            key: Of the call.
            endpoint: Where it is asked.

        Raises:
            UserError: The disk is full.
        """
        started, clock, failure = time.time(), time.perf_counter(), None
        try:
            yield
        except BaseException as error:
            failure = f"{type(error).__name__}: {error}" + (f" ({error.__cause__})" if error.__cause__ else "")
            self.failed += isinstance(error, Exception)
            raise
        finally:
            record = {
                "key": key,
                "endpoint": endpoint,
                "host": self._host,
                "started": started,
                "latency_s": time.perf_counter() - clock,
                "error": failure,
            }
            with writing(self.path):
                self._file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self._file.close()

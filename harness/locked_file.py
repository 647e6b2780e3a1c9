"""A small file that processes share, each byte of which can be locked.

Locks are POSIX ones: the kernel releases them however a process ends, and they work wherever ``fcntl`` locks do,
network file systems included, so that processes on several machines can agree as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from harness.files import writing

# Bytes that are locked need not exist; these lie behind all rows.
_GUARD = 1 << 20
_OWNERS = _GUARD + 1
_OPEN: set[Path] = set()


class LockedFile:
    """The file, opened by one process.

    A process may open a file only once, and nothing else in it may open that file: POSIX locks go with the first
    closing of any handle.

    Args:
        path: The file; made if absent.

    Raises:
        UserError: It cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        if self.path in _OPEN:
            raise RuntimeError(f"{path} is open in this process already")
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        _OPEN.add(self.path)

    def close(self) -> None:
        """Give up the file and all locks in it."""
        os.close(self._file)
        _OPEN.discard(self.path)

    @contextlib.contextmanager
    def guarded(self, *, wait: bool = False) -> Iterator[bool]:
        """Keep the others from reading and writing inside the block.

        Args:
            wait: Wait while another process is at it; otherwise the block is given ``False`` then.
        """
        with writing(self.path):
            if not self._lock(_GUARD, wait):
                yield False
                return
            try:
                yield True
            finally:
                self._unlock(_GUARD)

    def own(self, row: int, *, wait: bool = False) -> bool:
        """Lock a row, for as long as this process lives or until it is given up; says whether it is ours now.

        Args:
            row: Its number.
            wait: Wait while another process has it.
        """
        return self._lock(_OWNERS + row, wait)

    def disown(self, row: int) -> None:
        """Give up a row."""
        self._unlock(_OWNERS + row)

    def read(self, size: int) -> bytes:
        """The file from its begin, at most so many bytes. For a guarded block."""
        return os.pread(self._file, size, 0)

    def write(self, content: bytes, offset: int) -> None:
        """Put bytes at a place. For a guarded block."""
        os.pwrite(self._file, content, offset)

    def _lock(self, byte: int, wait: bool) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, byte)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(self, byte: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)

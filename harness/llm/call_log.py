"""The call log: cache, ledger and proof of every model call of a cell.

One JSON line a finished call, appended as it finishes, by one writer that holds a lock. A torn last line (the mark of
a killed process or a full disk) is cut off on opening. When a cell is done its log is *sealed*: rewritten in the order
of the keys, so that equal calls make equal bytes whatever the order in which they finished.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import logging
import os
import socket
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import orjson

from harness.errors import UserError
from harness.files import write_atomically, writing
from harness.llm.request import Reply, Request

logger = logging.getLogger(__name__)


class Seal(NamedTuple):
    """What a sealed log is known by: number of calls, SHA-256 of the file."""

    calls: int
    sha256: str


class CallLog:
    """The log of one cell, open for reading and appending.

    Args:
        path: The log file; made if absent. The lock file lies beside it.

    Raises:
        UserError: Another process has the log open, a line other than the last is damaged, or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._spare = _spare_of(path)
        self._lock = _lock(path.with_suffix(".lock"))
        try:
            self._cut_torn_line()
            self._replies = {key: reply for file in (self._spare, path) for key, reply, _ in _read(file)}
            with writing(path):
                self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            self._length = os.fstat(self._file).st_size
        except BaseException:
            os.close(self._lock)
            raise

    def __len__(self) -> int:
        return len(self._replies)

    def __enter__(self) -> CallLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: str) -> Reply | None:
        """The outcome of the call with this key, ``None`` if it was never finished."""
        return self._replies.get(key)

    def append(self, request: Request, reply: Reply) -> None:
        """Write one finished call; on return it has left this process."""
        line = _line(request.key, request.to_record(), reply)
        with writing(self.path):
            try:
                rest = line
                while rest:
                    rest = rest[os.write(self._file, rest) :]
            except OSError:
                # Other calls may still finish; behind a torn line theirs would be unreadable.
                os.ftruncate(self._file, self._length)
                raise
        self._length += len(line)
        self._replies[request.key] = reply

    def seal(self, used: Collection[str]) -> Seal:
        """Close the log for good, with the calls of this run alone and in the order of their keys.

        Calls of other configurations of the same cell move to a file beside it; they are still found on opening, but
        what is sealed depends on the run and not on what was run before it.

        Args:
            used: Keys of the calls this run used.

        Raises:
            UserError: The log lacks some of them, because it was changed or removed under a half-finished run.
        """
        lines = {
            key: _line(key, request, reply) for file in (self._spare, self.path) for key, reply, request in _read(file)
        }
        if lost := len(set(used) - lines.keys()):
            raise UserError(
                f"{self.path} lacks {lost} calls that an earlier part of this run used; restore it, or remove "
                f"{self.path.parent} and give the same command again"
            )
        spare = b"".join(lines[key] for key in sorted(lines.keys() - set(used)))
        content = b"".join(lines[key] for key in sorted(used))
        if spare:
            write_atomically(self._spare, spare)
        write_atomically(self.path, content)
        if not spare:
            self._spare.unlink(missing_ok=True)
        self.close()
        return Seal(len(used), hashlib.sha256(content).hexdigest())

    def close(self) -> None:
        """Give up the lock; closing twice is harmless."""
        if self._lock >= 0:
            os.close(self._file)
            os.close(self._lock)
            self._lock = -1

    def _cut_torn_line(self) -> None:
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            logger.warning("%s: cut off an unfinished last line (%d bytes)", self.path, len(content) - end)
            with writing(self.path):
                os.truncate(self.path, end)


class SealedLog:
    """The log of a finished cell, answering another cell as its declared input.

    Args:
        path: The log file.
        seal: What it must be; a log that has changed since is refused.
    """

    def __init__(self, path: Path, seal: Seal) -> None:
        found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
        if found != seal.sha256:
            raise UserError(
                f"{path} is not the log that was sealed (expected sha256 {seal.sha256[:12]}, found {found[:12]}); "
                "rerun the cell that made it, or set `share_logs: false`"
            )
        self._replies = {key: reply for key, reply, _ in _read(path)}

    def get(self, key: str) -> Reply | None:
        """The outcome of the call with this key, ``None`` if that cell never asked it."""
        return self._replies.get(key)


def failed_calls(path: Path) -> int:
    """How many calls of a log, those of other configurations included, ended in an error for good."""
    return sum(reply.error is not None for file in (path, _spare_of(path)) for _, reply, _ in _read(file))


def drop_errors(path: Path, before: Callable[[], None] = lambda: None) -> int:
    """Remove the failed calls from a log so that the next run asks them again.

    Args:
        path: The log.
        before: What has to be done first, while no other process can write the log.

    Returns:
        How many calls were removed.

    Raises:
        UserError: Another process is writing the log; nothing was done.
    """
    with CallLog(path):
        before()
        return sum(_drop_errors_in(file) for file in (path, _spare_of(path)))


def _drop_errors_in(path: Path) -> int:
    lines = list(_read(path))
    kept = [_line(key, request, reply) for key, reply, request in lines if reply.error is None]
    if len(kept) < len(lines):
        write_atomically(path, b"".join(kept))
    return len(lines) - len(kept)


def _spare_of(path: Path) -> Path:
    return path.with_suffix(".spare.jsonl")


def _line(key: str, request: dict[str, Any], reply: Reply) -> bytes:
    record = {"key": key, "request": request, "reply": dataclasses.asdict(reply)}
    return orjson.dumps(record, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def _read(path: Path) -> Iterator[tuple[str, Reply, dict[str, Any]]]:
    if not path.exists():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = orjson.loads(line)
                yield record["key"], Reply.from_record(record["reply"]), record["request"]
            except (ValueError, KeyError, TypeError) as error:
                raise UserError(
                    f"{path}, line {number} is damaged ({error}); restore the file, or delete this one line: "
                    "that call will be asked again"
                ) from error


def _lock(path: Path) -> int:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(handle, 200).decode(errors="replace").strip() or "another process"
        os.close(handle)
        raise UserError(f"{path.parent} is being written by {holder}; wait until it is done, or stop it") from error
    with writing(path):
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    return handle

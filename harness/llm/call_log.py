"""The call log: cache, ledger and proof of every model call of a cell.

It is a SQLite file with one row for each finished call. One process writes it, which a lock file beside it says; any
number may read it meanwhile. A call is committed before its reply is used, so a process that is killed at any moment
asks no finished call twice. The log of a finished cell is read and never written, by its own cell and by those that
share its calls.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson

from harness.errors import UserError
from harness.files import writing
from harness.llm.database import connect, one_line
from harness.llm.request import Message, Reply, Request

CALL_LOG = "calls.sqlite"
# Numbers stand before texts, so that adding them up leaves most of the file unread.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,
    asked INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    finish_reason TEXT NOT NULL,
    replied TEXT NOT NULL,
    error TEXT,
    request TEXT NOT NULL,
    reply TEXT NOT NULL
)
"""
_INSERT = """
INSERT OR REPLACE INTO calls
    (key, model, asked, prompt_tokens, completion_tokens, finish_reason, replied, error, request, reply)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_REPLY = "SELECT reply, prompt_tokens, completion_tokens, finish_reason, replied, error FROM calls WHERE key = ?"
_PAID = """
SELECT model, count(*), sum(prompt_tokens), sum(completion_tokens) FROM calls
    WHERE asked AND error IS NULL GROUP BY model
"""


class Texts(NamedTuple):
    """What was said in one call: the prompt, and the reply to it."""

    messages: tuple[Message, ...]
    reply: str


class Paid(NamedTuple):
    """What a cell asked of the servers of one model, failed calls left out."""

    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int


class CallLogReader:
    """The log of one cell, open for reading; another process may be writing it.

    Args:
        path: The log.

    Raises:
        UserError: There is none, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            raise UserError(f"{path} is missing; remove {path.with_name('run.json')} and run its cell again")
        with self._one_line(), ExitStack() as opened:
            self._database = connect(path, writes=False)
            opened.callback(self._database.close)
            self._database.execute(_REPLY, ("",))
            opened.pop_all()

    def __len__(self) -> int:
        with self._one_line():
            (count,) = self._database.execute("SELECT count(*) FROM calls").fetchone()
        return int(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: str) -> Reply | None:
        """Return the outcome of the call with this key, or None if it was never finished.

        Raises:
            UserError: The log is damaged.
        """
        with self._one_line():
            row = self._database.execute(_REPLY, (key,)).fetchone()
        return None if row is None else Reply(*row)

    def texts(self, key: str) -> Texts | None:
        """Return prompt and reply of the call with this key, or None if it was never finished.

        Raises:
            UserError: The log is damaged.
        """
        with self._one_line():
            row = self._database.execute("SELECT request, reply FROM calls WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        return Texts(tuple(Message(**message) for message in orjson.loads(row[0])["messages"]), row[1])

    def paid(self) -> list[Paid]:
        """Return what servers were asked and answered, by model; what other logs answered is not in it.

        Raises:
            UserError: The log is damaged.
        """
        with self._one_line():
            return [Paid(*row) for row in self._database.execute(_PAID)]

    def failed(self) -> int:
        """Return how many calls ended in an error for good.

        Raises:
            UserError: The log is damaged.
        """
        with self._one_line():
            (count,) = self._database.execute("SELECT count(*) FROM calls WHERE error IS NOT NULL").fetchone()
        return int(count)

    def close(self) -> None:
        """Give the file up; closing twice is harmless."""
        self._database.close()

    def _one_line(self) -> AbstractContextManager[None]:
        return one_line(
            self.path,
            f"restore it, or save what is left with `sqlite3 {self.path.name} .recover`, or move it away and give the "
            "same command again: its calls will be asked again",
        )


class CallLog(CallLogReader):
    """The log of one cell, open for reading and appending.

    Calls that finish while the disk is busy with others are committed together, in a thread beside the event loop.

    Args:
        path: The log; made if absent. The lock file lies beside it.

    Raises:
        UserError: Another process has the log open for writing, it is damaged, or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._waiting: list[tuple[Any, ...]] = []
        self._batch: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        with ExitStack() as opened:
            opened.callback(os.close, _lock(path.with_suffix(".lock")))
            with self._one_line():
                self._database = connect(path, writes=True)
                opened.callback(self._close_database)
                # The journal stays while the cell is at work: to make and remove one for each commit takes ten times
                # as long. With NORMAL a power failure takes no commit that the disk had confirmed.
                self._database.execute("PRAGMA journal_mode = PERSIST")
                self._database.execute("PRAGMA synchronous = NORMAL")
                self._database.execute(_SCHEMA)
                # To look for a new call never waits for the disk.
                self._known = {bytes.fromhex(key) for (key,) in self._database.execute("SELECT key FROM calls")}
            self._thread = ThreadPoolExecutor(1, "call log")
            opened.callback(self._flush)
            self._open = opened.pop_all()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: str) -> bool:
        return bytes.fromhex(key) in self._known

    def get(self, key: str) -> Reply | None:
        """Return the outcome of the call with this key, or None if it was never finished.

        Raises:
            UserError: The log is damaged.
        """
        return super().get(key) if key in self else None

    async def append(self, request: Request, reply: Reply, *, asked: bool = True) -> None:
        """Write one finished call; on return it is committed. A caller that gives up waiting takes nothing back.

        Args:
            request: The call.
            reply: Its outcome.
            asked: Whether a server answered, and not the log of another cell.

        Raises:
            UserError: The disk is full; no part of the call stays, and later ones can be written when there is room.
        """
        self._waiting.append(_row(request, reply, asked))
        if self._batch is None:
            self._batch = asyncio.create_task(self._commit_waiting())
        await asyncio.shield(self._batch)

    def forget_failed(self) -> int:
        """Forget the failed calls, so that they are asked again; returns how many there were.

        Raises:
            UserError: The disk is full.
        """
        with self._one_line():
            keys = self._database.execute("DELETE FROM calls WHERE error IS NOT NULL RETURNING key").fetchall()
        self._known.difference_update(bytes.fromhex(key) for (key,) in keys)
        return len(keys)

    def close(self) -> None:
        """Write what is still to be written and give up the lock; closing twice is harmless."""
        self._open.close()

    async def _commit_waiting(self) -> None:
        async with self._turn:
            rows, self._waiting, self._batch = self._waiting, [], None
            if rows:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, rows)

    def _commit(self, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._one_line():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany(_INSERT, rows)
                self._database.execute("COMMIT")
            except BaseException:
                # A full disk has undone the transaction by itself.
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        self._known.update(bytes.fromhex(row[0]) for row in rows)

    def _flush(self) -> None:
        self._thread.shutdown()
        rows, self._waiting = self._waiting, []
        if rows:
            self._commit(rows)

    def _close_database(self) -> None:
        try:
            self._database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error:
            pass  # Somebody is reading: an empty journal stays, and harms nobody.
        finally:
            self._database.close()


def copy(log: Path, to: Path, *, prompts: bool) -> None:
    """Write the calls of a log into a new file in the order of their keys, so that equal calls make equal bytes.

    Args:
        log: The log.
        to: The new file.
        prompts: Whether to keep what was asked; keys and replies are kept in any case.

    Raises:
        UserError: The log is damaged, or the disk is full.
    """
    columns = "key, model, asked, prompt_tokens, completion_tokens, finish_reason, replied, error"
    request = "request" if prompts else "json_set(request, '$.messages', json('[]'))"
    with writing(to):
        to.parent.mkdir(parents=True, exist_ok=True)
        to.unlink(missing_ok=True)
    with one_line(log, "restore it"), closing(connect(to, writes=True)) as database:
        database.execute(_SCHEMA)
        database.execute("ATTACH ? AS source", (f"{log.absolute().as_uri()}?mode=rw",))
        database.execute(
            f"INSERT INTO main.calls ({columns}, request, reply) "  # noqa: S608  constants
            f"SELECT {columns}, {request}, reply FROM source.calls ORDER BY key"
        )


def logs_below(folder: Path) -> list[Path]:
    """The call logs below a folder."""
    return sorted(folder.rglob(CALL_LOG))


def _row(request: Request, reply: Reply, asked: bool) -> tuple[Any, ...]:
    return (
        request.key,
        request.model,
        asked,
        reply.prompt_tokens,
        reply.completion_tokens,
        reply.finish_reason,
        reply.model,
        reply.error,
        orjson.dumps(request.to_record(), option=orjson.OPT_SORT_KEYS).decode(),
        reply.text,
    )


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

"""SQLite files, what goes wrong with them as one line, and the cache that the cells of a machine share."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

from harness.errors import UserError
from harness.files import unwritable, writing

Table = Literal["embeddings", "verdicts"]

# Another process may be committing, or adding up a long log; network file systems are slow at both.
_PATIENCE_S = 120.0
# Not the file's fault: a full disk, a folder that cannot be written, another process that does not let go.
_ENVIRONMENT_ERRORS = tuple(f"SQLITE_{name}" for name in ("FULL", "IOERR", "CANTOPEN", "READONLY", "PERM", "BUSY"))


@contextmanager
def one_line(path: Path, cure: str) -> Iterator[None]:
    """Turn what SQLite or a damaged text raises inside the block into a UserError of one line, with what to do."""
    try:
        yield
    except (sqlite3.DatabaseError, ValueError) as error:
        if (getattr(error, "sqlite_errorname", None) or "").startswith(_ENVIRONMENT_ERRORS):
            raise unwritable(path, error) from error
        raise UserError(f"{path} is damaged ({error}); {cure}") from error


def connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    """Open a database for one thread at a time, made if it is absent and to be written; no implicit transactions."""
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if writes else 'rw'}"
    database = sqlite3.connect(uri, _PATIENCE_S, isolation_level=None, check_same_thread=False, uri=True)
    if not writes:
        database.execute("PRAGMA query_only = ON")
        database.execute("PRAGMA trusted_schema = OFF")  # It may be of a stranger.
    return database


def machine_folder() -> Path:
    """Return the folder of the caches that all cells of a machine share."""
    return Path(os.environ.get("GMR_CACHE_DIR") or Path("results", "cache"))


class Closing:
    """Context manager that calls ``close`` where its block ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file up; closing twice is harmless."""
        raise NotImplementedError


class Cache(Closing):
    """Embeddings and verdicts, shared by the cells of a machine (WAL); deleting the file is harmless."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: sqlite3.Connection | None = None
        # One thread at a time: SQLite refuses to upgrade a read to a write once another process has written.
        self._alone = threading.Lock()

    def get(self, table: Table, key: bytes) -> bytes | None:
        """Return what is stored under a key, or None."""
        with self._one_line():
            row = self._database.execute(f"SELECT value FROM {table} WHERE key = ?", (key,)).fetchone()  # noqa: S608
        return None if row is None else row[0]

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        """Store bytes under a key; any thread may, once a key was looked for."""
        with self._one_line():
            self._database.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", (key, value))  # noqa: S608

    def close(self) -> None:
        """Give the file up; the next key opens it again."""
        # A thread may be storing still: SQLite's statements must not go while one of them runs.
        with self._alone:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    @property
    def _database(self) -> sqlite3.Connection:
        if self._opened is None:
            with writing(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._opened = connect(self.path, writes=True)
            _use_wal(self._opened)
            self._opened.execute("PRAGMA synchronous = NORMAL")
            for table in ("embeddings", "verdicts"):
                self._opened.execute(f"CREATE TABLE IF NOT EXISTS {table} (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
        return self._opened

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        with self._alone, one_line(self.path, "it is a cache: delete it, which costs time and nothing else"):
            yield


def _use_wal(database: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; processes that open a new file together are refused at once, so try again."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)

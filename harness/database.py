"""SQLite: connections, errors as one line, and the caches that all cells of a machine share."""

import asyncio
import functools
import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import orjson

from harness.concurrency import InFlight
from harness.errors import UserError
from harness.files import unwritable, writing

Table = Literal["embeddings", "verdicts"]

#: Files of a cell: its calls, and its embeddings if the run is recorded.
CALL_LOG, VECTORS = "calls.sqlite", "vectors.sqlite"

# Other processes commit or sum up long logs, which is slow on network file systems.
_PATIENCE_S = 120.0
# Errors of the environment, not of the file: full disk, read-only folder, locked by another process.
_ENVIRONMENT_ERRORS = tuple(f"SQLITE_{name}" for name in ("FULL", "IOERR", "CANTOPEN", "READONLY", "PERM", "BUSY"))


# Largest value in a file that is only read, and largest unpacked request, in bytes.
MOST_BYTES = 64 << 20
# Everything in a schema but plain tables: views, triggers, virtual tables, indexes, tables with generated columns.
_NOT_PLAIN = """
SELECT name FROM sqlite_master AS entry
WHERE (type, ifnull(substr(sql, 1, 13), '')) NOT IN (VALUES ('table', 'CREATE TABLE '), ('index', ''))
OR EXISTS (SELECT 1 FROM pragma_table_xinfo(entry.name) WHERE hidden)
"""


@contextmanager
def one_line(path: Path, cure: str) -> Iterator[None]:
    """Convert SQLite and decoding errors in the block to a one-line UserError that ends with ``cure``."""
    try:
        yield
    except (sqlite3.DatabaseError, ValueError, LookupError, TypeError) as error:
        if (getattr(error, "sqlite_errorname", None) or "").startswith(_ENVIRONMENT_ERRORS):
            raise unwritable(path, error) from error
        raise UserError(f"{path} is damaged ({error}); {cure}") from error


def connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    """Open a database in autocommit mode, for use by one thread at a time. With ``writes`` it is created if missing.

    Raises ValueError if it is only read and has anything but plain tables, since the file may come from a stranger.
    """
    # A reader may have to roll back what a killed process left half written.
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if writes else 'rw'}"
    database = sqlite3.connect(uri, _PATIENCE_S, isolation_level=None, check_same_thread=False, uri=True)
    if not writes:
        database.execute("PRAGMA query_only = ON")
        database.execute("PRAGMA trusted_schema = OFF")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        if (found := database.execute(_NOT_PLAIN).fetchone()) is not None:
            raise ValueError(f"{found[0]} is no plain table")
    return database


def machine_folder() -> Path:
    return Path(os.environ.get("GMR_CACHE_DIR") or Path("results", "cache"))


class Closing:
    """Context manager that calls ``close`` at the end of the block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file. Idempotent."""
        raise NotImplementedError


class Cache(Closing):
    """Cache of embeddings and verdicts, shared by the cells of a machine. Can be deleted at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._alone = threading.Lock()

    def get(self, table: Table, key: bytes) -> bytes | None:
        if "_database" not in vars(self) and not self.path.exists():
            return None
        with self._one_line():
            row = self._database.execute(f"SELECT value FROM {table} WHERE key = ?", (key,)).fetchone()  # noqa: S608
        return None if row is None else row[0]

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        """Store a value. Thread-safe after the first :meth:`get`."""
        with self._one_line():
            self._database.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", (key, value))  # noqa: S608

    def close(self) -> None:
        """Release the file. The next access opens it again."""
        # Another thread may still be executing a statement.
        with self._alone:
            if (database := vars(self).pop("_database", None)) is not None:
                database.close()

    @functools.cached_property
    def _database(self) -> sqlite3.Connection:
        with writing(self.path):
            database = connect(self.path, writes=True)
        try:
            # The disk is never waited for: a power cut may damage a cache, which loses time and nothing else.
            database.execute("PRAGMA synchronous = OFF")
            for table in ("embeddings", "verdicts"):
                database.execute(f"CREATE TABLE IF NOT EXISTS {table} (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        with self._alone, one_line(self.path, "it is a cache: delete it, which costs time and nothing else"):
            yield


class VerdictCache:
    """Verdicts as JSON values, keyed by input and execution environment, in ``caches`` and in this process.

    At level ``full`` programs cannot reach the file. At ``rlimit`` they can read it and, unless the suite runs as root,
    write it, like every other result. This level protects from faulty programs, not from hostile programs.
    """

    def __init__(self, caches: Iterable[Cache | None], environment: Callable[[], tuple[str, ...]]) -> None:
        self._caches = [cache for cache in caches if cache is not None]
        self._environment = functools.cache(environment)
        self._in_this_process: dict[bytes, Any] = {}
        self._in_flight: InFlight[Any] = InFlight()

    async def get(
        self, key: tuple[str, ...], decide: Callable[[], Coroutine[Any, Any, tuple[Any, Cache | None]]]
    ) -> Any:
        """Return the cached verdict or decide it once for all waiting callers. Raises UserError if a file is broken.

        ``decide`` returns the verdict, and the cache that keeps it (None: this process alone).
        """
        # ``repr`` escapes quotes, so no two keys have the same text.
        digest = hashlib.sha256(repr((key, self._environment())).encode()).digest()
        if digest in self._in_this_process:
            return self._in_this_process[digest]
        for cache in self._caches:
            if stored := cache.get("verdicts", digest):
                return orjson.loads(stored)

        async def decide_and_store() -> Any:
            verdict, cache = await decide()
            if cache is not None:
                await asyncio.to_thread(cache.put, "verdicts", digest, orjson.dumps(verdict))
            else:
                self._in_this_process[digest] = verdict
            return verdict

        return await self._in_flight.run_once(digest, decide_and_store)

    async def close(self) -> None:
        await self._in_flight.close()

"""SQLite files, and what goes wrong with them as one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import UserError

# Another process may be committing, or adding up a long log; network file systems are slow at both.
_PATIENCE_S = 120.0
# Not the file's own fault: a full disk, a folder that cannot be written, another process that does not let go.
_OUTER = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_BUSY")


@contextmanager
def one_line(path: Path, cure: str) -> Iterator[None]:
    """Turn what SQLite raises inside the block into one line for the user.

    Args:
        path: The file.
        cure: What to do where the file is damaged.

    Raises:
        UserError: The disk is full, the folder cannot be used, or the file is damaged or another program's.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        if (getattr(error, "sqlite_errorname", None) or "").startswith(_OUTER):
            raise UserError(
                f"cannot write {path}: {error}; free space or mend the folder, then give the same command again "
                "(finished calls are kept)"
            ) from error
        raise UserError(f"{path} is damaged ({error}); {cure}") from error


def connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    """Open a database for one thread at a time; transactions are begun and ended by statements.

    Args:
        path: The file; made if absent where it is opened for writing.
        writes: Otherwise nothing can be changed, but what a killed writer left half done is undone.

    Raises:
        sqlite3.Error: The file cannot be opened.
    """
    mode = "rwc" if writes else "rw"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    database = sqlite3.connect(uri, _PATIENCE_S, isolation_level=None, check_same_thread=False, uri=True)
    if not writes:
        database.execute("PRAGMA query_only = ON")
    return database

"""Read call logs by column."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from harness.llm.call_log import request_text
from harness.runner.layout import VECTORS


def calls_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a log by key, with the request as a record. Another process may be writing the log."""
    with closing(sqlite3.connect(path, timeout=20)) as database:
        database.row_factory = sqlite3.Row
        rows = [dict(row) for row in database.execute("SELECT * FROM calls")]
        return {row["key"]: {**row, "request": orjson.loads(request_text(row["request"], database))} for row in rows}


def execute(path: Path, statement: str) -> list[Any]:
    """Change a database as no run does, or read it."""
    with closing(sqlite3.connect(path)) as database, database:
        return database.execute(statement).fetchall()


def content(path: Path) -> bytes:
    """Return the content of a file; of a call log or vector file, the rows independent of their order."""
    if path.suffix != ".sqlite":
        return path.read_bytes()
    if path.name == VECTORS:
        with closing(sqlite3.connect(path)) as database:
            return repr(database.execute("SELECT * FROM embeddings ORDER BY key").fetchall()).encode()
    rows = sorted((key, repr({**row, "number": 0})) for key, row in calls_of(path).items())
    return repr(rows).encode()

"""Calls to log, and logs read by what their columns say."""

import asyncio
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from harness.llm.call_log import CallLog, request_text
from harness.llm.request import Reply
from harness.runner.layout import VECTORS
from tests.harness.llm.serving import request


def reply(text: str) -> Reply:
    return Reply(text, 3, 5, "stop", "some/model")


def fill(path: Path, texts: Iterable[str]) -> None:
    """Append calls one after the other, each answered by its own text in capitals."""

    async def appended() -> None:
        with CallLog(path) as log:
            for text in texts:
                await log.append(request(text), reply(text.upper()))

    asyncio.run(appended())


def answers(path: Path, texts: Iterable[str]) -> dict[str, str]:
    """Return the texts that a log answers some calls with, as far as it does."""
    with CallLog(path) as log:
        found = {text: log.get(request(text).key) for text in texts}
    return {text: one.text for text, one in found.items() if one is not None}


def calls_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a log by key, with what was asked as a record; another process may be writing."""
    with closing(sqlite3.connect(path, timeout=20)) as database:
        database.row_factory = sqlite3.Row
        rows = [dict(row) for row in database.execute("SELECT * FROM calls")]
        return {row["key"]: {**row, "request": orjson.loads(request_text(row["request"], database))} for row in rows}


def content(path: Path) -> bytes:
    """Return a file; of a call log, or of vectors, its rows, whichever was finished first."""
    if path.suffix != ".sqlite":
        return path.read_bytes()
    if path.name == VECTORS:
        with closing(sqlite3.connect(path)) as database:
            return repr(database.execute("SELECT * FROM embeddings ORDER BY key").fetchall()).encode()
    rows = sorted((key, repr({**row, "number": 0})) for key, row in calls_of(path).items())
    return repr(rows).encode()

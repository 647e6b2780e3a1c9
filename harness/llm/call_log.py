"""Call log of a cell (cache, ledger and evidence of its model calls) and the log of attempts.

A lock file names the one process that writes the SQLite file. A call is committed before its reply is used, so that a
killed process never repeats a finished call.
"""

import asyncio
import hashlib
import heapq
import os
import socket
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import zstandard
from filelock import FileLock, Timeout

from harness.database import MOST_BYTES, Closing, connect, one_line
from harness.errors import UserError, quoted
from harness.files import writing
from harness.llm.request import Message, Reply, Request

ATTEMPT_LOG = "attempts.jsonl"
# Numeric columns come first, so that SUM() does not read the text columns. ``asked`` is 1 in every row. ``uncounted``
# holds the tokens of unusable replies that were paid for; only budgets count them. Requests are compressed with a
# dictionary made from the first commit. Bundles store requests as text. The columns of ``_DETAILS`` are added with
# their first value.
_SCHEMA = """
BEGIN;
CREATE TABLE IF NOT EXISTS uncounted (model TEXT NOT NULL, prompt_tokens INTEGER, completion_tokens INTEGER);
CREATE TABLE IF NOT EXISTS dictionary (content BLOB NOT NULL);
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
    reply TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
COMMIT;
"""
_COLUMNS = "key, model, asked, prompt_tokens, completion_tokens, finish_reason, replied, error"
_DETAILS = ("cached_tokens", "reasoning_tokens")
# The fields of Reply, in its order. ``_DETAILS`` follow.
_REPLY_COLUMNS = "reply, prompt_tokens, completion_tokens, finish_reason, replied, error"
_KINDS = (str, int, int, str, str, str | None, int | None, int | None)
_CHARGE = "INSERT INTO uncounted VALUES (?, ?, ?)"
_PAID = """
SELECT model, count(*), sum(prompt_tokens), sum(completion_tokens) FROM (
    SELECT model, prompt_tokens, completion_tokens FROM calls WHERE error IS NULL UNION ALL
    SELECT model, prompt_tokens, completion_tokens FROM uncounted
) GROUP BY model
"""
_DICTIONARY_SIZE = 1 << 16
_MOST_TOKENS = 1 << 31


class CallTexts(NamedTuple):
    """Prompt messages and reply text of a call."""

    messages: tuple[Message, ...]
    reply: str


class CallLogReader(Closing):
    """Call log open for reading, even while another process writes. Raises UserError if it is missing or damaged.

    ``recording``: the bundle or folder that it belongs to, if it is a recording.
    """

    def __init__(self, path: Path, recording: Path | None = None) -> None:
        self.path, self._recording = path, recording
        if not path.exists():
            raise UserError(f"{path} is missing; remove {path.with_name('run.json')} and run its cell again")
        with self._one_line():
            _refuse_emptied(path)
            if path.stat().st_size:
                self._database = connect(path, writes=False)
            else:
                # Before the first commit the file is empty.
                self._database = sqlite3.connect(":memory:", check_same_thread=False)
                self._database.executescript(_SCHEMA)

    def get(self, key: str) -> Reply | None:
        row = self._row(key)
        return None if row is None else row[1]

    def all_keys(self) -> list[str]:
        with self._one_line():
            return [key for (key,) in self._database.execute("SELECT key FROM calls")]

    def rows(self, which: str, *values: str) -> Iterator[tuple[Any, ...]]:
        """Iterate over rows with their requests decompressed, as bundles store them."""
        with self._one_line():
            columns = f"request, {_COLUMNS}, reply, checksum, {_details(self._database)}"
            for request, *others in self._database.execute(f"SELECT {columns} FROM calls {which}", values):  # noqa: S608
                yield (request_text(request, self._database), *others)

    def texts(self, key: str) -> CallTexts | None:
        if (row := self._row(key)) is None:
            return None
        with self._one_line():
            request = request_of(key, request_text(row[0], self._database))
            return CallTexts(tuple(Message(**message) for message in request["messages"]), row[1].text)

    def paid(self) -> list[tuple[str, int, int, int]]:
        with self._one_line():
            return self._database.execute(_PAID).fetchall()

    def failed(self) -> int:
        with self._one_line():
            (count,) = self._database.execute("SELECT count(*) FROM calls WHERE error IS NOT NULL").fetchone()
        return int(count)

    def close(self) -> None:
        self._database.close()

    def _row(self, key: str) -> tuple[str | bytes, Reply] | None:
        """Return the stored request and the reply, or None. Raises UserError if the checksum does not match."""
        with self._one_line():
            columns = f"request, checksum, key, {_REPLY_COLUMNS}, {_details(self._database)}"
            row = self._database.execute(f"SELECT {columns} FROM calls WHERE key = ?", (key,)).fetchone()  # noqa: S608
        if row is None:
            return None
        request, checksum, *recorded = row
        with self._one_line():
            is_typed = all(isinstance(value, kind) for value, kind in zip(recorded[1:], _KINDS, strict=True))
            if not is_typed or not 0 <= min(recorded[2:4]) <= max(recorded[2:4]) < _MOST_TOKENS:
                raise ValueError(f"the reply to call {key} has values of another kind")
        if checksum != _checksum(*recorded):
            cure = (
                f"restore it, or take the row with this key out of its table of calls (sqlite3 {self.path.name}) and "
                "give the same command again: this call will be asked again"
            )
            with self._one_line(cure):
                raise ValueError(f"the reply to call {key} is not the one that was recorded")
        return request, Reply(*recorded[1:])

    def _one_line(self, cure: str = "") -> AbstractContextManager[None]:
        usual = (
            f"restore it, or save what is left with `sqlite3 {self.path.name} .recover`, or move it away and give the "
            "same command again: its calls will be asked again"
        )
        if self._recording is not None:
            return one_line(self._recording, "fetch it again")
        return one_line(self.path, cure or usual)


def _refuse_emptied(path: Path) -> None:
    """Raise ValueError if the log is empty but attempts exist: the log's tables are written before any attempt."""
    attempts = path.with_name(ATTEMPT_LOG)
    if path.exists() and not path.stat().st_size and attempts.exists() and attempts.stat().st_size:
        raise ValueError(f"it is empty, and {attempts.name} has attempts at calls")


def _checksum(key: str, *reply: Any) -> int:
    """Compute the CRC-32 of a reply. Token details count only if there are any."""
    basic, details = reply[: -len(_DETAILS)], reply[-len(_DETAILS) :]
    return zlib.crc32(orjson.dumps([key, *basic, *(details if any(detail is not None for detail in details) else ())]))


def _details(database: sqlite3.Connection) -> str:
    """Return the columns of token details in a SELECT: NULL if the log has none."""
    names = {row[1] for row in database.execute("PRAGMA table_info(calls)")}
    return ", ".join(name if name in names else "NULL" for name in _DETAILS)


def _insert(database: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows of request, ``_COLUMNS``, reply, checksum and ``_DETAILS``. Their columns come with a first value."""
    columns = ["request", _COLUMNS, "reply", "checksum"]
    if any(detail is not None for row in rows for detail in row[-len(_DETAILS) :]):
        columns += _DETAILS
        if "NULL" in _details(database):
            for name in _DETAILS:
                database.execute(f"ALTER TABLE calls ADD COLUMN {name} INTEGER")
    else:
        rows = [row[: -len(_DETAILS)] for row in rows]
    marks = ", ".join("?" * len(rows[0]))
    database.executemany(f"INSERT OR REPLACE INTO calls ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608


def request_text(request: str | bytes, database: sqlite3.Connection) -> str:
    """Decompress a stored request to JSON text. Raises ValueError if it is damaged."""
    if isinstance(request, str):
        return request
    stored = database.execute("SELECT content FROM dictionary").fetchone()
    if stored is None:
        raise ValueError("its dictionary is lost")
    (dictionary,) = stored
    try:
        # The limit below counts only if the frame declares no size.
        if zstandard.frame_content_size(request) > MOST_BYTES:
            raise ValueError(f"a request of more than {MOST_BYTES >> 20} MB")
        return zstandard.ZstdDecompressor(dict_data=_raw(dictionary)).decompress(request, MOST_BYTES).decode()
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def request_of(key: str, text: str) -> dict[str, Any]:
    """Parse the stored request of a call. Raises ValueError if it has a prompt that is not the call's."""
    request: dict[str, Any] = orjson.loads(text)
    # Bundles may withhold prompts.
    if request["messages"] and hashlib.sha256(text.encode()).hexdigest() != key:
        raise ValueError(f"the stored prompt of call {key} is not the one that was sent")
    return request


def _raw(dictionary: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


class CallLog(CallLogReader):
    """Call log open for appending. Raises UserError if another process writes it or the disk is full."""

    def __init__(self, path: Path) -> None:
        self.path, self._recording = path, None
        self._waiting: list[tuple[Any, ...]] = []
        self._batch: Future[None] | None = None  # next commit
        self._lock = threading.Lock()  # guards ``_waiting`` and ``_batch``
        self._compressor: zstandard.ZstdCompressor | None = None
        with ExitStack() as opened, self._one_line():
            opened.enter_context(_lock(path.with_suffix(".lock")))
            _refuse_emptied(path)
            self._database = connect(path, writes=True)
            opened.callback(self._close_database)
            # A new journal file for each commit takes ten times as long.
            self._database.execute("PRAGMA journal_mode = PERSIST")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)
            # Keys in memory, so that a look-up of a new call does not wait for the disk.
            self._known = {bytes.fromhex(str(key)) for key in self.all_keys()}
            self._thread = ThreadPoolExecutor(1, "call log")
            opened.callback(self._thread.shutdown)
            self._open = opened.pop_all()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: str) -> bool:
        return bytes.fromhex(key) in self._known

    def get(self, key: str) -> Reply | None:
        return super().get(key) if key in self else None

    async def append(self, request: Request, reply: Reply) -> None:
        """Commit a finished call. Concurrent calls share one commit."""
        counted = (reply.prompt_tokens, reply.completion_tokens, reply.finish_reason, reply.model, reply.error)
        details = (reply.cached_tokens, reply.reasoning_tokens)
        checksum = _checksum(request.key, reply.text, *counted, *details)
        row = (request.record, request.key, request.model, True, *counted, reply.text, checksum, *details)
        with self._lock:
            self._waiting.append(row)
            self._batch = batch = self._batch or self._thread.submit(self._commit_waiting)
        await asyncio.shield(asyncio.wrap_future(batch))

    async def charge(self, model: str, prompt_tokens: int, completion_tokens: int) -> None:
        """Commit the tokens of an unusable reply that was paid for. Only budgets count them."""
        charge = partial(self._database.execute, _CHARGE, (model, prompt_tokens, completion_tokens))
        await asyncio.get_running_loop().run_in_executor(self._thread, self._write, charge)

    def forget_failed(self) -> int:
        """Delete the failed calls, so that they are repeated. Return their number."""
        with self._one_line():
            keys = self._database.execute("DELETE FROM calls WHERE error IS NOT NULL RETURNING key").fetchall()
        self._known.difference_update(bytes.fromhex(key) for (key,) in keys)
        return len(keys)

    def close(self) -> None:
        self._open.close()

    def _commit_waiting(self) -> None:
        with self._lock:
            rows, self._waiting, self._batch = self._waiting, [], None
        if self._compressor is None:
            self._compressor = self._open_compressor(b"".join(request for request, *_ in rows))
        compressed = [(self._compressor.compress(request), *others) for request, *others in rows]
        self._write(partial(_insert, self._database, compressed))
        self._known.update(bytes.fromhex(key) for _, key, *_ in rows)

    def _open_compressor(self, requests: bytes) -> zstandard.ZstdCompressor:
        stored = self._database.execute("SELECT content FROM dictionary").fetchone()
        if stored is None:
            stored = (requests[:_DICTIONARY_SIZE],)
            self._write(partial(self._database.execute, "INSERT INTO dictionary VALUES (?)", stored))
        return zstandard.ZstdCompressor(dict_data=_raw(*stored), write_checksum=True)

    def _write(self, change: Callable[[], Any]) -> None:
        # The connection as context manager commits or rolls back.
        with self._one_line(), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            change()

    def _close_database(self) -> None:
        with suppress(sqlite3.Error):  # If another process is reading, an empty journal remains.
            self._database.execute("PRAGMA journal_mode = DELETE")
        self._database.close()


def copy(log: Path, to: Path, *, prompts: bool, more: Iterable[tuple[Any, ...]] = ()) -> None:
    """Copy a log and ``more`` rows in the order of their keys, so that equal calls give identical files."""
    with writing(to):
        to.unlink(missing_ok=True)
    with CallLogReader(log) as source, closing(connect(to, writes=True)) as database, database:
        database.executescript(_SCHEMA)
        database.execute("BEGIN")
        key_of = itemgetter(1)
        for request, *others in heapq.merge(source.rows("ORDER BY key"), sorted(more, key=key_of), key=key_of):
            if not prompts:
                request = orjson.dumps({**orjson.loads(request), "messages": []}).decode()
            _insert(database, [(request, *others)])


def _lock(path: Path) -> AbstractContextManager[Any]:
    """Lock a file and write this process's name into it. If it is locked, the UserError names the holder."""
    with writing(path):
        try:
            held = FileLock(path, thread_local=False).acquire(blocking=False)
        except Timeout as error:
            holder = path.read_text(errors="replace").strip() or "another process"
            raise UserError(f"{path.parent} is being written by {holder}; wait until it is done, or stop it") from error
        path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
    return held


class AttemptLog(Closing):
    """Log of call attempts as JSON lines. Not reproducible between runs. ``failed`` counts failures."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed = 0
        self._opened = time.time()
        self._host = socket.gethostname()
        with writing(path):
            # Unbuffered: only a kill or a full disk can leave a partial line, which is cut off here.
            self._file = path.open("a+b", buffering=0)
            if path.is_file() and not (lines := path.read_bytes()).endswith(b"\n"):
                self._file.truncate(lines.rfind(b"\n") + 1)

    @contextmanager
    def measure(self, key: str, endpoint: str) -> Iterator[None]:
        """Record duration and exception of the block as one attempt at a call."""
        started, clock, failure = time.time(), time.perf_counter(), None
        try:
            yield
        except BaseException as error:
            failure = quoted(f"{type(error).__name__}: {error}" + (f" ({error.__cause__})" if error.__cause__ else ""))
            self.failed += isinstance(error, Exception)
            raise
        finally:
            latency = time.perf_counter() - clock
            attempt = {"key": key, "endpoint": endpoint, "host": self._host, "opened": self._opened, "started": started}
            attempt |= {"latency_s": latency, "error": failure}
            with writing(self.path):
                self._file.write(orjson.dumps(attempt, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        self._file.close()


def read_attempts(path: Path) -> Iterator[dict[str, Any]]:
    """Iterate over the attempts of a log, which may be missing."""
    return map(orjson.loads, path.read_bytes().splitlines() if path.exists() else ())


def seconds_of(path: Path, keys: Collection[str]) -> float | None:
    """Measure the wall time of a set of calls: from their first start to their last end, in seconds.

    None if a call has no attempt, or if several processes made the attempts.
    """
    attempts = [attempt for attempt in read_attempts(path) if attempt["key"] in keys]
    if len({attempt["opened"] for attempt in attempts}) != 1 or {attempt["key"] for attempt in attempts} != {*keys}:
        return None
    started = min(attempt["started"] for attempt in attempts)
    return max(attempt["started"] + attempt["latency_s"] for attempt in attempts) - started

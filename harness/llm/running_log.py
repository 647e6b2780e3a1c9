"""The file a cell appends its calls to while it runs."""

from __future__ import annotations

import itertools
import logging
import os
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import orjson

from harness.errors import UserError
from harness.files import writing
from harness.llm import log_lines
from harness.llm.log_lines import DAMAGE, Entry, Record
from harness.llm.request import Reply
from harness.places import DIGEST, GONE, Digests, Places, Table, as_digests, line_at

logger = logging.getLogger(__name__)

# Lines that are read before what they say is entered into the tables.
_CHUNK = 1 << 16


class RunningLog:
    """Texts and calls in the order in which they came; in memory is where they lie and nothing else.

    Args:
        path: The file.
        is_owner: Whether this process may write it. Then it is made if absent, and an unfinished last line (the mark of
            a killed process or a full disk) is cut off; otherwise such a line is passed over, for its owner may be
            writing it right now.

    Raises:
        UserError: A line other than the last is damaged, an earlier version wrote the file, or it cannot be written.
    """

    def __init__(self, path: Path, is_owner: bool) -> None:
        self.path = path
        self._calls = Places()
        self._texts = Places()
        with writing(path):
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT if is_owner else os.O_RDONLY, 0o644)
        try:
            self._length = self._scan()
            if is_owner:
                self._cut_torn_line()
        except BaseException:
            self.close()
            raise

    def place(self, key: bytes) -> int | None:
        """Where a call lies, :data:`~harness.places.GONE` if it was forgotten, ``None`` if the file is silent on it."""
        return self._calls.get(key)

    def reply(self, place: int) -> Reply:
        """The outcome of the call at a place."""
        record = self._record(place)
        at = self._texts.get(bytes.fromhex(record["reply"]["text"]))
        if at is None:
            raise AssertionError("a call is in its table after its texts are in theirs")
        return log_lines.reply(record, orjson.loads(line_at(self._file, at)))

    def has_failed(self, place: int) -> bool:
        """Whether the call at a place ended in an error for good."""
        return self._record(place)["reply"]["error"] is not None

    def outcome(self, place: int) -> tuple[str, Reply]:
        """The model that the call at a place asked, and what came of it, without the text."""
        record = self._record(place)
        return record["request"]["model"], log_lines.reply(record, "")

    def calls(self) -> Table:
        """The calls by key."""
        return self._calls.table()

    def texts(self) -> Table:
        """The texts by SHA-256."""
        return self._texts.table()

    def call(self, place: int) -> Record:
        """The call at a place; its texts are named by their digests, in bytes."""
        record = self._record(place)
        log_lines.rename(record, [bytes.fromhex(name) for name in log_lines.names(record)])
        return record

    def text_line(self, place: int) -> bytes:
        """The line of the text at a place."""
        return line_at(self._file, place)

    def write(self, entries: Sequence[Entry]) -> tuple[int, UserError | None]:
        """Append calls, all in one go; what this returns has left this process.

        Returns:
            How many of them, from the first on, are in the file, and why not all. Nothing of the others stays in it.
        """
        new: dict[bytes, int] = {}
        lines: list[bytes] = []
        starts: list[int] = []
        ends: list[int] = []
        end = self._length
        for entry in entries:
            for digest, text in entry.texts.items():
                if digest not in new and self._texts.get(digest) is None:
                    new[digest] = end
                    lines.append(log_lines.line(text))
                    end += len(lines[-1])
            starts.append(end)
            lines.append(entry.line)
            end += len(entry.line)
            ends.append(end)
        whole, error = self._append(lines, ends)
        for digest, start in new.items():
            if start < self._length:
                self._texts.set(digest, start)
        for entry, start in zip(entries[:whole], starts, strict=False):
            self._calls.set(entry.key, start)
        return whole, error

    def forget(self, keys: Sequence[str]) -> None:
        """Say of calls that they are no more, wherever they lie.

        Raises:
            UserError: The disk is full; of those that do not fit nothing stays.
        """
        lines = [log_lines.line({"forget": key}) for key in keys]
        whole, error = self._append(lines, list(itertools.accumulate(map(len, lines), initial=self._length))[1:])
        for key in keys[:whole]:
            self._calls.set(bytes.fromhex(key), GONE)
        if error is not None:
            raise error

    def sync(self) -> None:
        """Wait until the disk has what was written.

        Raises:
            OSError: The disk does not say so.
        """
        getattr(os, "fdatasync", os.fsync)(self._file)

    def close(self) -> None:
        """Give the file up; closing twice is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, lines: Sequence[bytes], ends: Sequence[int]) -> tuple[int, UserError | None]:
        """Write lines; of what ends at each of ``ends``, returns how many are whole, and cuts the rest off."""
        rest = memoryview(b"".join(lines))
        written, error = self._length, None
        try:
            with writing(self.path):
                while rest:
                    count = os.write(self._file, rest)
                    written, rest = written + count, rest[count:]
        except UserError as failure:
            error = failure
        whole = bisect_right(ends, written)
        self._length = ends[whole - 1] if whole else self._length
        if error is not None:
            with writing(self.path):
                # Other calls may still finish; behind a torn line theirs would be unreadable.
                os.ftruncate(self._file, self._length)
        return whole, error

    def _record(self, place: int) -> Record:
        record: Record = orjson.loads(line_at(self._file, place))
        return record

    def _scan(self) -> int:
        """Fill the tables; returns where the last whole line ends."""
        found, end, lost = _Found(), 0, 0
        with open(self._file, "rb", closefd=False) as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    found.note(line, end)
                except DAMAGE as error:
                    if log_lines.is_old(line):
                        raise old_log(self.path, self.path.parent) from error
                    raise UserError(
                        f"{self.path}, line {number} is damaged ({error}); restore the file, or delete this one line: "
                        "the calls that need it will be asked again"
                    ) from error
                end += len(line)
                if number % _CHUNK == 0:
                    lost += found.enter(self._calls, self._texts)
                    found = _Found()
        lost += found.enter(self._calls, self._texts)
        if lost:
            logger.warning("%s: passed over %d calls whose texts are gone; they will be asked again", self.path, lost)
        return end

    def _cut_torn_line(self) -> None:
        torn = os.fstat(self._file).st_size - self._length
        if torn:
            logger.warning("%s: cut off an unfinished last line (%d bytes)", self.path, torn)
            with writing(self.path):
                os.ftruncate(self._file, self._length)


def old_log(path: Path, what: Path) -> UserError:
    """What to say of a log that an earlier version wrote.

    Args:
        path: The log.
        what: What has to go, for what else is in it rests on the log.
    """
    return UserError(
        f"{path} was written by an earlier version of this suite, in a form that is read no longer; move {what} away, "
        "or remove it, and give the same command again: its calls will be asked again"
    )


class _Found:
    """What some lines say, packed."""

    def __init__(self) -> None:
        self._texts, self._starts_of_texts = bytearray(), array("q")
        self._calls, self._starts_of_calls = bytearray(), array("q")
        self._named, self._named_by = bytearray(), array("q")

    def note(self, line: bytes, start: int) -> None:
        """Note a line, and where it starts.

        Raises:
            DAMAGE: It is none of a running log.
        """
        content = orjson.loads(line)
        if isinstance(content, str):
            self._texts += log_lines.digest(content)
            self._starts_of_texts.append(start)
        elif "forget" in content:
            self._calls += _digest(content["forget"])
            self._starts_of_calls.append(GONE)
        else:
            key, named = _digest(content["key"]), [_digest(name) for name in log_lines.names(content)]
            log_lines.reply(content, "")
            for name in named:
                self._named += name
                self._named_by.append(len(self._starts_of_calls))
            self._calls += key
            self._starts_of_calls.append(start)

    def enter(self, calls: Places, texts: Places) -> int:
        """Fill tables; returns how many calls are left out because a text of theirs is in none."""
        texts.extend(_array(self._texts), np.array(self._starts_of_texts, np.int64))
        is_there = texts.holds(_array(self._named))
        is_whole = np.ones(len(self._starts_of_calls), bool)
        is_whole[np.array(self._named_by, np.int64)[~is_there]] = False
        calls.extend(_array(self._calls)[is_whole], np.array(self._starts_of_calls, np.int64)[is_whole])
        return int(np.count_nonzero(~is_whole))


def _digest(name: str) -> bytes:
    digest = bytes.fromhex(name)
    if len(digest) != DIGEST.itemsize:
        raise ValueError(f"{name!r} is no SHA-256")
    return digest


def _array(digests: bytearray) -> Digests:
    return as_digests([bytes(digests)])

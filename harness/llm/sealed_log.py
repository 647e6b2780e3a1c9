"""Calls of finished runs: compressed, in the order of their keys, found by an index beside them."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import orjson

from harness.errors import UserError
from harness.llm import log_index, log_lines
from harness.llm.log_frames import FrameReader
from harness.llm.log_index import Frame, Index, Seal
from harness.llm.log_lines import Record
from harness.llm.request import Reply
from harness.places import Table, as_digests, position

logger = logging.getLogger(__name__)

_SUFFIX = ".jsonl.zst"
# Of some 64 KiB each.
_FRAMES_IN_MEMORY = 256


class SealedFile:
    """A sealed log, open for reading; only the frames last read are in memory.

    Args:
        path: The file. Its index lies beside it, and is made again with a word if it is missing, damaged or another's.

    Raises:
        UserError: The file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._frames = FrameReader(path)
        self._index = self._opened_index()
        self._first = self._index.frames["first"].astype(np.int64)
        # Not of the class: what it keeps has to go with this file.
        self._lines = lru_cache(_FRAMES_IN_MEMORY)(self._read)

    @property
    def seal(self) -> Seal:
        """What the log is known by."""
        return self._frames.known.seal

    def place(self, key: bytes) -> int | None:
        """The number of a call, ``None`` if the log lacks it."""
        return position(self._index.keys, key)

    def reply(self, place: int) -> Reply:
        """The outcome of the call of a number.

        Raises:
            UserError: The file is damaged.
        """
        record = self._record(place)
        return log_lines.reply(record, orjson.loads(self._line(record["reply"]["text"])))

    def has_failed(self, place: int) -> bool:
        """Whether the call of a number ended in an error for good."""
        return self._record(place)["reply"]["error"] is not None

    def outcome(self, place: int) -> tuple[str, Reply]:
        """The model that the call of a number asked, and what came of it, without the text."""
        record = self._record(place)
        return record["request"]["model"], log_lines.reply(record, "")

    def calls(self) -> Table:
        """The calls by key."""
        return Table(self._index.keys, np.arange(len(self._index.keys)))

    def texts(self) -> Table:
        """The texts by SHA-256; the first time each is read for it."""
        return self._texts

    def call(self, place: int) -> Record:
        """The call of a number; its texts are named by their digests, in bytes."""
        record = self._record(place)
        log_lines.rename(record, [self._texts.digests[name:][:1].tobytes() for name in log_lines.names(record)])
        return record

    def text_line(self, place: int) -> bytes:
        """The line of the text of a number."""
        return self._line(place) + b"\n"

    def close(self) -> None:
        """Give the file up; closing twice is harmless."""
        self._frames.close()

    @cached_property
    def _texts(self) -> Table:
        lines = (self._line(number) for number in range(self._index.texts))
        digests = as_digests(log_lines.digest(orjson.loads(line)) for line in lines)
        return Table(digests, np.arange(len(digests)))

    def _record(self, place: int) -> Record:
        record: Record = orjson.loads(self._line(self._index.texts + place))
        return record

    def _line(self, number: int) -> bytes:
        frame = int(self._first.searchsorted(number, side="right")) - 1
        return self._lines(frame)[number - int(self._first[frame])]

    def _read(self, frame: int) -> list[bytes]:
        return self._frames.lines(Frame(*self._index.frames[frame].item()))

    def _opened_index(self) -> Index:
        path = index_of(self._frames.path)
        index = log_index.load(path)
        if index is not None and (index.texts, index.seal) == self._frames.known:
            return index
        logger.warning("%s is %s; made again from the log", path, "not its log's" if path.exists() else "missing")
        index = self._frames.index()
        # In a folder that cannot be written it is made each time.
        with suppress(UserError):
            log_index.store(path, index)
        return index


class SealedLog:
    """The log of a finished cell, answering another cell as its declared input.

    Args:
        path: The log as its own cell names it.
        seal: What it must be; a log that has changed since is refused.

    Raises:
        UserError: It is another one, or damaged.
    """

    def __init__(self, path: Path, seal: Seal) -> None:
        file = sealed_of(path)
        sealed = SealedFile(file) if file.exists() else None
        if sealed is None or sealed.seal != seal:
            found = sealed.seal.sha256 if sealed else "no file"
            raise UserError(
                f"{file} is not the log that was sealed (expected sha256 {seal.sha256[:12]}, found {found[:12]}); "
                "rerun the cell that made it, or set `share_logs: false`"
            )
        self._file = sealed

    def get(self, key: str) -> Reply | None:
        """The outcome of the call with this key, ``None`` if that cell never asked it.

        Raises:
            UserError: The log is damaged.
        """
        place = self._file.place(bytes.fromhex(key))
        return None if place is None else self._file.reply(place)


def sealed_of(path: Path) -> Path:
    """The sealed log beside a running one."""
    return path.with_suffix(_SUFFIX)


def spare_of(path: Path) -> Path:
    """The sealed calls of other configurations beside a running log."""
    return path.with_suffix(f".spare{_SUFFIX}")


def index_of(sealed: Path) -> Path:
    """The index beside a sealed log."""
    return sealed.with_name(sealed.name.removesuffix(_SUFFIX) + ".index")

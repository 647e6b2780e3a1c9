"""Prompts and replies of a cell, looked up in its call log one by one."""

from __future__ import annotations

from contextlib import ExitStack, closing
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import orjson

from analysis.trajectories.records import Said
from harness.agents.trajectory import Call
from harness.llm import log_index, log_lines
from harness.llm.log_frames import FrameReader
from harness.llm.log_index import Frame
from harness.llm.log_lines import Record
from harness.llm.request import Message
from harness.llm.running_log import RunningLog
from harness.llm.sealed_log import index_of, sealed_of
from harness.places import GONE, position

# Of some 64 KiB each: the log of a cell lies in memory while all of its trajectories are read.
_FRAMES_IN_MEMORY = 4096


class Texts(NamedTuple):
    """What was said in one call: the prompt, and the reply to it."""

    messages: tuple[Message, ...]
    reply: str


class CallTexts:
    """The texts of a call log, open for reading; another process may be writing it.

    Args:
        path: The log by the name of its running log; neither it nor the sealed one has to be there.

    Raises:
        UserError: A file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._sources: list[_Source] = []
        with ExitStack() as opened:
            if sealed_of(path).exists():
                self._sources.append(opened.enter_context(closing(_Sealed(sealed_of(path)))))
            if path.exists():
                self._sources.append(opened.enter_context(closing(_Running(path))))
            self._open = opened.pop_all()

    def said(self, call: Call) -> Said:
        """A call with its texts, which are ``None`` where no log has it.

        Raises:
            UserError: The log is damaged.
        """
        digest = bytes.fromhex(call.key)
        found = next((found for source in self._sources if (found := source.find(digest)) is not None), None)
        return Said(call, None, None) if found is None else Said(call, found.messages, found.reply)

    def close(self) -> None:
        """Give the files up; closing twice is harmless."""
        self._open.close()


class _Source(Protocol):
    def find(self, key: bytes) -> Texts | None: ...


class _Sealed:
    def __init__(self, path: Path) -> None:
        self._frames = FrameReader(path)
        index = log_index.load(index_of(path))
        if index is None or (index.texts, index.seal) != self._frames.known:
            index = self._frames.index()
        self._index = index
        self._first = self._index.frames["first"].astype(np.int64)
        self._lines = lru_cache(_FRAMES_IN_MEMORY)(self._read)

    def find(self, key: bytes) -> Texts | None:
        place = position(self._index.keys, key)
        if place is None:
            return None
        record: Record = orjson.loads(self._line(self._index.texts + place))
        return _texts(record, [orjson.loads(self._line(number)) for number in log_lines.names(record)])

    def close(self) -> None:
        self._frames.close()

    def _line(self, number: int) -> bytes:
        frame = int(self._first.searchsorted(number, side="right")) - 1
        return self._lines(frame)[number - int(self._first[frame])]

    def _read(self, frame: int) -> list[bytes]:
        return self._frames.lines(Frame(*self._index.frames[frame].item()))


class _Running:
    def __init__(self, path: Path) -> None:
        self._log = RunningLog(path, is_owner=False)
        self._texts = self._log.texts()

    def find(self, key: bytes) -> Texts | None:
        place = self._log.place(key)
        if place is None or place == GONE:
            return None
        record = self._log.call(place)
        return _texts(record, [self._text(digest) for digest in log_lines.names(record)])

    def close(self) -> None:
        self._log.close()

    def _text(self, digest: bytes) -> str:
        at = position(self._texts.digests, digest)
        if at is None:
            raise AssertionError("a call is in its table after its texts are in theirs")
        text: str = orjson.loads(self._log.text_line(int(self._texts.places[at])))
        return text


def _texts(record: Record, texts: list[str]) -> Texts:
    roles = (message["role"] for message in record["request"]["messages"])
    return Texts(tuple(Message(role, text) for role, text in zip(roles, texts[:-1], strict=True)), texts[-1])

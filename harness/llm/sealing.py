"""Calls that lie in several files, in any order, written as one sealed log."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from harness.files import whole_file
from harness.llm import log_index, log_lines
from harness.llm.log_frames import FrameWriter
from harness.llm.log_index import Seal
from harness.llm.log_lines import Record
from harness.llm.request import Reply
from harness.llm.sealed_log import index_of
from harness.places import Merged, Table, as_digests, merged, positions

# Calls that are in memory at the same time.
_CHUNK = 1 << 12


class Source(Protocol):
    """A file with calls."""

    def place(self, key: bytes) -> int | None:
        """Where a call lies, :data:`~harness.places.GONE` if it was forgotten, ``None`` if the file is silent on it."""
        ...

    def reply(self, place: int) -> Reply:
        """The outcome of the call at a place."""
        ...

    def has_failed(self, place: int) -> bool:
        """Whether the call at a place ended in an error for good."""
        ...

    def outcome(self, place: int) -> tuple[str, Reply]:
        """The model that the call at a place asked, and what came of it, without the text."""
        ...

    def calls(self) -> Table:
        """The calls by key."""
        ...

    def texts(self) -> Table:
        """The texts by SHA-256."""
        ...

    def call(self, place: int) -> Record:
        """The call at a place; its texts are named by their digests, in bytes."""
        ...

    def text_line(self, place: int) -> bytes:
        """The line of the text at a place."""
        ...


def write_sealed(path: Path, sources: Sequence[Source], calls: Merged) -> Seal:
    """Write a sealed log and its index, in place of those that may be there.

    Equal calls make equal bytes. In memory are digests and places, never all texts.

    Args:
        path: The sealed log.
        sources: Where the calls lie.
        calls: Those to write.

    Raises:
        UserError: The disk is full, or a source is damaged; nothing has changed.
    """
    texts = merged([source.texts() for source in sources])
    texts = texts.only(_named(texts, sources, calls))
    with whole_file(path) as file:
        out = FrameWriter(file)
        for source, place in zip(texts.tables, texts.places, strict=True):
            out.add(sources[source].text_line(int(place)))
        for record, numbers in _records(texts, sources, calls):
            log_lines.rename(record, numbers)
            out.add(log_lines.line(record))
        index = out.end(len(texts.digests), calls.digests)
    log_index.store(index_of(path), index)
    return index.seal


def _named(texts: Merged, sources: Sequence[Source], calls: Merged) -> npt.NDArray[np.bool_]:
    """Which of the texts calls name."""
    found = np.zeros(len(texts.digests), bool)
    as_they_lie = np.lexsort((calls.places, calls.tables))
    for _, numbers in _records(texts, sources, calls.only(as_they_lie)):
        found[numbers] = True
    return found


def _records(texts: Merged, sources: Sequence[Source], calls: Merged) -> Iterator[tuple[Record, list[int]]]:
    """Calls in their order, each with the numbers of its texts."""
    for start in range(0, len(calls.digests), _CHUNK):
        part = slice(start, start + _CHUNK)
        records = [sources[one].call(int(at)) for one, at in zip(calls.tables[part], calls.places[part], strict=True)]
        names = [log_lines.names(record) for record in records]
        numbers = iter(positions(texts.digests, as_digests(itertools.chain.from_iterable(names))).tolist())
        for record, named in zip(records, names, strict=True):
            yield record, list(itertools.islice(numbers, len(named)))

"""Where records lie, by digest: tables of any size in 40 bytes an entry.

What came last is in a dictionary; what came before lies in a few sorted arrays, each at least twice as long as the
next, so that adding costs a logarithm and finding a handful of binary searches.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# The place of what is to be found no longer.
GONE = -1
DIGEST = np.dtype("S32")
_RECENT = 1 << 15
_BLOCK = 4096

Digests = npt.NDArray[np.bytes_]
Numbers = npt.NDArray[np.int64]


class Table(NamedTuple):
    """Digests in ascending order, none twice, and the place of each."""

    digests: Digests
    places: Numbers


class Places:
    """A table that grows.

    One thread may add while others look up: each step replaces what a reader may hold instead of changing it, and what
    leaves the dictionary is in the arrays before.
    """

    def __init__(self) -> None:
        self._recent: dict[bytes, int] = {}
        self._runs: tuple[Table, ...] = ()

    def get(self, digest: bytes) -> int | None:
        """The last place given for a digest, :data:`GONE` included; ``None`` if there was none."""
        if (place := self._recent.get(digest)) is not None:
            return place
        for run in reversed(self._runs):
            if (at := position(run.digests, digest)) is not None:
                return int(run.places[at])
        return None

    def set(self, digest: bytes, place: int) -> None:
        """Note the place of one record."""
        self._recent[digest] = place
        if len(self._recent) >= _RECENT:
            self._flush()

    def extend(self, digests: Digests, places: Numbers) -> None:
        """Note the places of many; of equal digests the last counts."""
        self._flush()
        self._add(digests, places)

    def table(self) -> Table:
        """All places in one table; only where no other thread is adding."""
        self._flush()
        while len(self._runs) > 1:
            self._runs = (*self._runs[:-2], _joined(self._runs[-2:]))
        return self._runs[0] if self._runs else Table(as_digests([]), np.empty(0, np.int64))

    def holds(self, wanted: Digests) -> npt.NDArray[np.bool_]:
        """Which of many digests have a place; only where no other thread is adding."""
        self._flush()
        found = np.zeros(len(wanted), bool)
        for run in self._runs:
            found |= positions(run.digests, wanted) >= 0
        return found

    def _flush(self) -> None:
        if self._recent:
            self._add(as_digests(self._recent), np.fromiter(self._recent.values(), np.int64, len(self._recent)))
            self._recent = {}

    def _add(self, digests: Digests, places: Numbers) -> None:
        if not len(digests):
            return
        runs = (*self._runs, _joined([Table(digests, places)]))
        while len(runs) > 1 and len(runs[-2].digests) < 2 * len(runs[-1].digests):
            runs = (*runs[:-2], _joined(runs[-2:]))
        self._runs = runs


class Merged(NamedTuple):
    """Several tables as one: digests in ascending order, the number of the table that each is from, its place there."""

    digests: Digests
    tables: npt.NDArray[np.uint8]
    places: Numbers

    def only(self, wanted: npt.NDArray[np.bool_] | Numbers) -> Merged:
        """The marked ones in their order, or those of some numbers in the order of these."""
        return Merged(self.digests[wanted], self.tables[wanted], self.places[wanted])


def merged(tables: Sequence[Table]) -> Merged:
    """What several tables hold together; of equal digests the one of the first table counts, be it :data:`GONE`."""
    parts = [
        Merged(table.digests[mask], np.full(np.count_nonzero(mask), number, np.uint8), table.places[mask])
        for number, (table, mask) in enumerate(zip(tables, _counting(tables), strict=True))
        if mask.any()
    ]
    if len(parts) == 1:
        return parts[0]
    everything = Merged(
        np.concatenate([as_digests([]), *(part.digests for part in parts)]),
        np.concatenate([np.empty(0, np.uint8), *(part.tables for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.places for part in parts)]),
    )
    return everything.only(np.argsort(everything.digests, kind="stable"))


def size(tables: Sequence[Table]) -> int:
    """How much several tables hold together, without putting it together."""
    return sum(int(np.count_nonzero(mask)) for mask in _counting(tables))


def as_digests(digests: Iterable[bytes]) -> Digests:
    """Digests in an array, in their order."""
    return np.frombuffer(b"".join(digests), DIGEST)


def position(table: Digests, digest: bytes) -> int | None:
    """Where a digest is in a sorted array."""
    at = int(table.searchsorted(digest))
    # Not by comparing: an element has lost the zeros at its end.
    return at if table[at : at + 1].tobytes() == digest else None


def positions(table: Digests, wanted: Digests) -> Numbers:
    """Where digests are in a sorted array; -1 for those it lacks."""
    if not len(table):
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(table.searchsorted(wanted), len(table) - 1)
    return np.where(table[at] == wanted, at, -1)


def line_at(file: int, offset: int) -> bytes:
    """The line that begins at a place of an open file, with its end; what there is where the file ends before."""
    found = os.pread(file, _BLOCK, offset)
    while b"\n" not in found and (more := os.pread(file, max(_BLOCK, len(found)), offset + len(found))):
        found += more
    end = found.find(b"\n") + 1
    return found[:end] if end else found


def _counting(tables: Sequence[Table]) -> list[npt.NDArray[np.bool_]]:
    """Which entries of each table count: those that are there and that no earlier table speaks of."""
    found = []
    for number, table in enumerate(tables):
        is_counting = table.places != GONE
        for earlier in tables[:number]:
            at = positions(table.digests, earlier.digests)
            is_counting[at[at >= 0]] = False
        found.append(is_counting)
    return found


def _joined(tables: Sequence[Table]) -> Table:
    """One sorted table; of equal digests the last counts."""
    digests = np.concatenate([table.digests for table in tables])
    places = np.concatenate([table.places for table in tables])
    order = np.argsort(digests, kind="stable")
    digests, places = digests[order], places[order]
    is_last = np.concatenate([digests[1:] != digests[:-1], [True]])[: len(digests)]
    return Table(digests, places) if is_last.all() else Table(digests[is_last], places[is_last])

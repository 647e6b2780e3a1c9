"""Tables of places, held against dictionaries and sets."""

import hashlib
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import places as module
from harness.places import GONE, Places, Table, as_digests, line_at, merged, position, positions, size

# Few, so that they meet; zeros at the end are what arrays of bytes forget.
DIGESTS = [bytes([first] * 31 + [last]) for first in (0, 1, 127, 128, 255) for last in (0, 1, 255)]
digests = st.sampled_from(DIGESTS)
entries = st.lists(st.tuples(digests, st.integers(GONE, 2**62)), max_size=30)


def table(known: dict[bytes, int]) -> Table:
    return Table(as_digests(sorted(known)), np.array([known[one] for one in sorted(known)], np.int64))


def gather(digests: object, *columns: object) -> list[tuple[object, ...]]:
    found = np.asarray(digests)
    cut = [found[at : at + 1].tobytes() for at in range(len(found))]
    return list(zip(cut, *(np.asarray(column).tolist() for column in columns), strict=True))


@pytest.fixture(autouse=True)
def few_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RECENT", 4)


@settings(max_examples=200)
@given(parts=st.lists(st.tuples(st.booleans(), entries), max_size=6))
def test_a_table_knows_what_a_dictionary_knows(parts: list[tuple[bool, list[tuple[bytes, int]]]]) -> None:
    known: dict[bytes, int] = {}
    found = Places()
    for at_once, part in parts:
        known.update(part)
        if at_once:
            found.extend(as_digests(one for one, _ in part), np.array([place for _, place in part], np.int64))
        else:
            for digest, place in part:
                found.set(digest, place)
        assert [found.get(digest) for digest in DIGESTS] == [known.get(digest) for digest in DIGESTS]
    assert found.holds(as_digests(DIGESTS)).tolist() == [digest in known for digest in DIGESTS]
    assert gather(*found.table()) == sorted(known.items())
    assert [found.get(digest) for digest in DIGESTS] == [known.get(digest) for digest in DIGESTS]


@settings(max_examples=200)
@given(parts=st.lists(entries.map(dict), min_size=1, max_size=4))
def test_of_several_tables_the_first_that_speaks_of_a_digest_counts(parts: list[dict[bytes, int]]) -> None:
    expected = {digest: (number, part[digest]) for number, part in reversed(list(enumerate(parts))) for digest in part}
    there = [(digest, *owner) for digest, owner in sorted(expected.items()) if owner[1] != GONE]
    tables = [table(part) for part in parts]
    assert gather(*merged(tables)) == there
    assert size(tables) == len(there)


@given(known=st.sets(digests))
def test_positions_are_those_in_the_sorted_list(known: set[bytes]) -> None:
    ordered = sorted(known)
    expected = [ordered.index(digest) if digest in known else None for digest in DIGESTS]
    assert [position(as_digests(ordered), digest) for digest in DIGESTS] == expected
    found = positions(as_digests(ordered), as_digests(DIGESTS)).tolist()
    assert found == [-1 if at is None else at for at in expected]


def test_an_entry_takes_forty_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    import tracemalloc

    count = 1 << 17
    tracemalloc.start()
    try:
        found = Places()
        for number in range(count):
            found.set(hashlib.sha256(b"%d" % number).digest(), number)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held == pytest.approx(40 * count, rel=0.01)
    assert [found.get(hashlib.sha256(b"%d" % number).digest()) for number in (0, 77, count - 1)] == [0, 77, count - 1]


def test_a_reader_never_misses_what_is_there_while_another_thread_adds() -> None:
    found = Places()
    names = [hashlib.sha256(b"%d" % number).digest() for number in range(3000)]
    added, missed = [0], []

    def read() -> None:
        while added[0] < len(names):
            for number in range(max(0, added[0] - 12), added[0]):
                if found.get(names[number]) != number:
                    missed.append(number)

    reader = threading.Thread(target=read)
    reader.start()
    for number, name in enumerate(names):
        found.set(name, number)
        added[0] = number + 1
    reader.join()
    assert missed == []


@pytest.mark.parametrize("length", [0, 1, 4094, 4095, 4096, 4097, 20_000])
def test_a_line_is_read_from_its_place_to_its_end(tmp_path: Path, length: int) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"before\n" + b"x" * length + b"\nafter\ntorn")
    handle = os.open(path, os.O_RDONLY)
    assert line_at(handle, 0) == b"before\n"
    assert line_at(handle, 7) == b"x" * length + b"\n"
    assert line_at(handle, 7 + length + 1) == b"after\n"
    assert line_at(handle, 7 + length + 7) == b"torn"
    assert line_at(handle, 10**6) == b""
    os.close(handle)

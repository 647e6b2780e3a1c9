"""Bytes of unknown origin, read as a value: a value made of plain types, or one kind of exception."""

from __future__ import annotations

import json
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath
from types import NoneType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sandbox.jail import values

VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
CONTAINERS = (list, tuple, set, frozenset, deque, *VIEWS)
DICTIONARIES = (dict, Counter, OrderedDict, defaultdict)
PLAIN = (NoneType, bool, int, float, str, bytes, bytearray, complex, range, Decimal, Fraction)
LIBRARY = (date, datetime, time, timedelta, timezone, PosixPath, PurePosixPath)
NAMES = [
    *("int", "tuple", "set", "frozenset", "dict", "bytes", "bytearray", "complex", "range", "keys", "values"),
    *("items", "type", "object", "built_in", "__class__", "", "list", "str", "named", "defaultdict", *values._LIBRARY),
]


class Reference:
    """What stands for an object of the other side."""


def resolve(key: str, content: Any) -> object:
    if key != "object":
        raise KeyError(key)
    return [Reference()][content]


def made_of_plain_types(value: Any) -> bool:
    if type(value) in DICTIONARIES:
        return all(made_of_plain_types(part) for pair in value.items() for part in pair)
    if type(value) in CONTAINERS or (isinstance(value, tuple) and type(value)(*value) == value):
        return all(made_of_plain_types(part) for part in value)
    if isinstance(value, type):
        return value in (*PLAIN, *CONTAINERS, dict)
    return type(value) in (*PLAIN, *LIBRARY, Reference)


def is_harmless(content: bytes) -> bool:
    """Whether reading the bytes gave plain values or the one exception that is allowed; any other is raised."""
    try:
        return made_of_plain_types(values.unpack(content, resolve))
    except values.UnreadableError as error:
        return len(str(error)) <= 200


words = st.sampled_from(["0x1", "-0xff", "0x0", "", "0x", "zz", "ff", "f", "1e5", "nan", "1_0", "int", "NoneType"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=3)
messages = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=1),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=2),
    ),
    max_leaves=12,
)


@given(st.binary(max_size=64))
@settings(max_examples=300, deadline=None)
def test_any_bytes(content: bytes) -> None:
    assert is_harmless(content)


@given(messages)
@settings(max_examples=400, deadline=None)
def test_any_message_of_the_right_form(message: object) -> None:
    assert is_harmless(json.dumps(message).encode())


VALID = json.dumps(
    [
        *(
            "value",
            {"tuple": [1, 2.5, None]},
            {"dict": [[{"int": "0xffffffffffffffffff"}, {"set": [1, {"tuple": []}]}]]},
        ),
        *({"range": ["0x0", "-0x5", "-0x1"]}, {"bytes": "00ff"}, {"complex": [0.0, -1]}, {"object": 0}),
        *({"keys": ["a"]}, {"values": [[1]]}, {"items": [["a", 1]]}, {"type": "list"}),
        *({"decimal.Decimal": ["1.50"]}, {"fractions.Fraction": [1, 3]}, {"frozenset": [True]}, {"bytearray": ""}),
        *({"datetime.date": [2024, 2, 29]}, {"collections.deque": [[1], None]}, {"named": ["P", ["x"], [1]]}),
        *({"defaultdict": [{"type": "int"}, {"dict": [[1, 2]]}]}, {"collections.Counter": [{"dict": [["a", 2]]}]}),
    ]
).encode()


@given(st.integers(0, len(VALID) - 1), st.integers(0, 6), st.binary(max_size=6))
@settings(max_examples=300, deadline=None)
def test_a_valid_message_with_a_part_replaced(place: int, removed: int, put: bytes) -> None:
    assert is_harmless(VALID[:place] + put + VALID[place + removed :])


def test_the_valid_message_is_valid() -> None:
    found = values.unpack(VALID, resolve)
    assert found[:3] == ["value", (1, 2.5, None), {0xFFFFFFFFFFFFFFFFFF: {1, ()}}]
    assert made_of_plain_types(found)
    assert not made_of_plain_types([{1: (object(),)}])


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "nul", "[1", "[1] 2", '{"a": 1, "b": 2}', "{}", '{"unknown": 1}', '{"tuple": 5}', '{"set": [[1]]}'),
        *('{"dict": [[1]]}', '{"dict": [[[1], 2]]}', '{"int": 5}', '{"int": "g"}', '{"bytes": "0"}', '{"bytes": [1]}'),
        *('{"range": []}', '{"range": ["0x0", "0x1", "0x0"]}', '{"complex": [1, 2, 3]}', '{"decimal.Decimal": ["x"]}'),
        *('{"complex": [1e999, ' + "9" * 400 + "]}", '{"fractions.Fraction": [1, 0]}', '{"type": "type"}', "9" * 5000),
        *(
            '{"datetime.date": [{"bytes": "07e40163"}]}',
            '{"datetime.date": [2023, 2, 29]}',
            '{"datetime.date": [1, 1]}',
        ),
        *('{"datetime.datetime": [{"bytes": "07e40163000000000000"}]}', '{"datetime.timezone": [{"object": 0}]}'),
        *('{"collections.deque": [{"range": ["0x0", "0xfffffffffffff", "0x1"]}, null]}', '{"collections.deque": [1]}'),
        *('{"collections.deque": [[1, 2], -1]}', '{"collections.Counter": ["aab"]}', '{"collections.Counter": [[1]]}'),
        *('{"collections.OrderedDict": [{"object": 0}]}', '{"defaultdict": [5, {"dict": []}]}', '{"os.system": ["x"]}'),
        *('{"defaultdict": [null, {"object": 0}]}', '{"fractions.Fraction": ["1e999999999", null]}'),
        *('{"named": ["P", ["x"], [1, 2]]}', '{"named": ["P", [1], [1]]}', '{"named": ["a b", ["x"], [1]]}'),
        *('{"fractions.Fraction": ["1", "2"]}', '{"named": [{"object": 0}, [], []]}', '{"decimal.Context": []}'),
        *('{"named": ["P", ["\\ufb01", "fi"], [1, 2]]}', '{"named": ["P", ["fi", "\\ufb01"], [1, 2]]}'),
        *('{"type": []}', '{"object": 1}', '{"object": "a"}', '{"built_in": "open"}', '{"type": "Liar"}'),
    ],
)
def test_what_no_honest_side_writes_is_unreadable(text: str) -> None:
    # As a process begins; libraries of mathematics lift the limit in theirs.
    sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)
    with pytest.raises(values.UnreadableError):
        values.unpack(text.encode(), resolve)


@pytest.mark.parametrize("content", [b"\xff", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, struct.pack("<I", 91)])
def test_bytes_that_no_honest_side_writes_are_unreadable(content: bytes) -> None:
    with pytest.raises(values.UnreadableError):
        values.unpack(content, resolve)


def test_a_field_has_no_name_that_means_something() -> None:
    fields = ["__eq__", "_replace", "count", "x", "x", "a b", "import"]
    for names in (fields, fields[:2] + fields[3:]):
        written = {"named": ["P", names, [{"object": 0}, *range(len(names) - 1)]]}
        found = values.unpack(json.dumps(written).encode(), resolve)
        assert (found == (0,) * len(names), found.count(4)) == (False, 1)
        assert {"x", "_0"} <= set(getattr(found, "_fields", {"x", "_0"}))


@pytest.mark.parametrize("opening", [b"[", b'{"tuple":['])
def test_what_is_nested_without_an_end_is_told_in_the_same_words_every_time(opening: bytes) -> None:
    # By chance, or by what ran before, the interpreter gives up in the object or in the list within it.
    found = set()
    for prefix in (b"", b"[", b"[["):
        with pytest.raises(values.UnreadableError) as told:
            values.unpack(prefix + opening * 100_000, resolve)
        found.add(str(told.value))
    assert found == {"nested too deeply"}


def test_reading_a_reference_asks_nothing_of_it() -> None:
    class Watched(Reference):
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"asked for {name}")

        def __iter__(self) -> Any:
            raise AssertionError("asked for its elements")

        __len__ = __iter__

    for name in NAMES:
        for content in ({"object": 0}, [{"object": 0}], [[{"object": 0}, 1]]):
            written = json.dumps({name: content}).encode()
            try:
                values.unpack(written, lambda key, content: {"object": [Watched()]}[key][content])
            except values.UnreadableError:
                continue

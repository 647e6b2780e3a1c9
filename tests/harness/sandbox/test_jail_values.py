"""What crosses between a program and its checks: the same value of the plain type, or nothing."""

from __future__ import annotations

import collections
import datetime
import enum
import json
import math
import struct
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import NoneType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sandbox.jail import values

VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
LAST_SHORT = (1 << 63) - 1
texts = st.text(st.characters(exclude_categories=())) | st.text("\ud83d\ude00a", max_size=4)
floats = st.floats() | st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324])
integers = st.integers() | st.sampled_from(
    [LAST_SHORT, LAST_SHORT + 1, LAST_SHORT + 2, -LAST_SHORT - 1, -LAST_SHORT - 2]
)
fractions = st.fractions() | st.just(Fraction(10**50, 3))
decimals = st.decimals() | st.sampled_from([Decimal("1E+999999"), Decimal("-0.00"), Decimal("sNaN")])
ranges = st.builds(range, integers, integers, integers.filter(bool))
types = st.sampled_from([bool, int, float, str, list, tuple, dict, set, frozenset, bytes, bytearray, complex, range])
hashable_leaves = (
    *(st.none(), st.booleans(), integers, floats, texts, st.binary(), ranges, types, fractions),
    st.complex_numbers(),
)
Point = collections.namedtuple("Point", "x y")
DAY = datetime.timedelta(hours=23, minutes=59)
zones = st.none() | st.timedeltas(-DAY, DAY).map(datetime.timezone)
times = st.dates() | st.timedeltas() | st.datetimes(timezones=zones) | st.times(timezones=zones)
paths = st.sampled_from(["", "a", "/a/../b"]).flatmap(lambda path: st.sampled_from([Path(path), PurePosixPath(path)]))
leaves = st.one_of(*hashable_leaves, st.binary().map(bytearray), decimals, times, paths)
keys = st.recursive(
    st.one_of(*hashable_leaves),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
nested = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.sets(keys, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(keys, st.none(), max_size=4).map(dict.keys),
        st.dictionaries(st.integers(), inner, max_size=4).map(dict.values),
        st.dictionaries(keys, keys, max_size=4).map(dict.items),
        st.dictionaries(keys, inner, max_size=4).map(collections.OrderedDict),
        st.dictionaries(keys, inner, max_size=4).map(collections.Counter),
        st.dictionaries(keys, inner, max_size=4).map(lambda content: collections.defaultdict(list, content)),
        st.builds(collections.deque, st.lists(inner, max_size=4), st.none() | st.integers(4, 6)),
        st.builds(Point, inner, inner),
    ),
    max_leaves=15,
)


def nothing_refers(value: object) -> dict[str, Any]:
    raise TypeError(f"no reference for {type(value)}")


def nothing_resolves(key: str, content: Any) -> object:
    raise KeyError(key)


def carried(value: object) -> Any:
    return values.unpack(values.pack(value, nothing_refers), nothing_resolves)


def form(value: Any) -> object:
    """All of a value that tells it from others: types, order, signs of zeros, bits of not-a-numbers."""
    kind = type(value)
    if kind is float:
        return kind, "nan" if math.isnan(value) else struct.pack("<d", value)
    if kind is complex:
        return kind, form(value.real), form(value.imag)
    if hasattr(kind, "_fields"):
        return kind.__name__, kind._fields, [form(element) for element in value]
    if kind in (list, tuple, collections.deque) or VIEWS.get(kind) == "values":
        return kind, getattr(value, "maxlen", None), [form(element) for element in value]
    if isinstance(value, dict) or VIEWS.get(kind) == "items":
        pairs = value.items() if isinstance(value, dict) else value
        return kind, getattr(value, "default_factory", None), [(form(key), form(one)) for key, one in pairs]
    if VIEWS.get(kind) == "keys":
        return kind, [form(key) for key in value]
    if kind in (set, frozenset):
        return kind, sorted(repr(form(element)) for element in value)
    if kind is range:
        return kind, value.start, value.stop, value.step
    return kind, (str(value) if kind is Decimal else value)


@given(nested)
@settings(max_examples=150, deadline=None)
def test_a_value_arrives_as_it_was(value: object) -> None:
    assert form(carried(value)) == form(value)


def test_the_form_of_a_value_tells_what_equality_does_not() -> None:
    alike = [(1, True), (0.0, -0.0), (1, 1.0), ([1], [True]), ({1: 2}, {1: 2.0}), (b"", bytearray()), ({1}, {1.0})]
    alike += [({1: 1, 2: 2}, {2: 2, 1: 1}), (range(0), range(1, 1)), (Decimal(1), Decimal("1.0"))]
    assert all(one == other and form(one) != form(other) for one, other in alike)


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_of_any_length_arrive(sign: int) -> None:
    value = sign * (10**100_000 + 7)
    assert carried(value) == value
    assert carried({value: [value]}) == {value: [value]}


@pytest.mark.parametrize("value", [LAST_SHORT, LAST_SHORT + 2, -LAST_SHORT - 1, -LAST_SHORT - 3])
def test_integers_that_others_read_as_floating_are_written_as_text(value: int) -> None:
    written = json.loads(values.pack(value, nothing_refers))
    assert written == (value if abs(value) <= LAST_SHORT + 1 else {"int": hex(value)})


def test_every_not_a_number_is_another() -> None:
    nan = math.nan
    found = carried([nan, nan, math.inf])
    assert [nan] == [nan]
    assert found[0] is not found[1]
    assert found != carried([nan, nan, math.inf])
    assert found[2] == math.inf


class Referring:
    """Numbers objects as they come, and gives back the same ones."""

    def __init__(self) -> None:
        self.objects: list[object] = []

    def refer(self, value: object) -> dict[str, Any]:
        self.objects.append(value)
        return {"object": len(self.objects) - 1}

    def resolve(self, key: str, content: Any) -> object:
        return {"object": self.objects}[key][content]


def there_and_back(value: object) -> tuple[Any, list[object]]:
    referring = Referring()
    return values.unpack(values.pack(value, referring.refer), referring.resolve), referring.objects


class Liar:
    """Methods that a comparison, a conversion or a look inside would come by."""

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("foreign code ran")

    __eq__ = __ne__ = __len__ = __iter__ = __bool__ = __int__ = __index__ = __float__ = __str__ = _raise
    __repr__ = __getitem__ = __contains__ = __lt__ = __format__ = __reduce__ = __abs__ = _raise
    items = keys = values = hex = encode = bit_length = conjugate = real = imag = _raise

    def __hash__(self) -> int:
        return 7


BASES: dict[type, Any] = {
    int: 41,
    str: "wrong",
    float: 4.5,
    list: [1, 2],
    tuple: (1, 2),
    dict: {1: 2},
    set: {1, 2},
    frozenset: {1, 2},
    bytes: b"ab",
    bytearray: b"ab",
}


class Colour(enum.IntEnum):
    RED = 3


class Word(enum.StrEnum):
    YES = "yes"


class Late(dict[int, int]):
    def __missing__(self, key: int) -> int:
        return 42


@pytest.mark.parametrize("base", BASES)
def test_of_a_subclass_only_the_plain_content_arrives(base: type) -> None:
    liar = type("Liar", (Liar, base), {})(BASES[base])
    expected = base(BASES[base])
    assert form(carried(liar)) == form(expected)
    assert form(carried([(liar,)])) == form([(expected,)])


@pytest.mark.parametrize("claimed", [*BASES, complex, range, bool])
def test_what_only_claims_to_be_of_a_type_is_referred_to(claimed: type) -> None:
    pretender = type("Pretender", (), {"__class__": property(lambda self: claimed)})()
    assert isinstance(pretender, claimed)
    found, referred = there_and_back([pretender])
    assert found[0] is referred[0] is pretender


def test_of_a_complex_subclass_only_the_plain_content_arrives() -> None:
    kind = type("Liar", (complex,), {"__eq__": lambda self, other: True, "__hash__": lambda self: 7})
    assert form(carried(kind(1, -0.0))) == form(complex(1, -0.0))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Late({1: 2}), {1: 2}),
        (Colour.RED, 3),
        (Word.YES, "yes"),
        ([Colour.RED, {Word.YES: Late()}], [3, {"yes": {}}]),
        (type("Count", (collections.Counter,), {})("aab"), collections.Counter("aab")),
        (type("Day", (datetime.datetime,), {})(2024, 2, 29), datetime.datetime(2024, 2, 29)),  # noqa: DTZ001
        (type("Decimal", (Decimal,), {})(3), Decimal(3)),
    ],
    ids=repr,
)
def test_relatives_of_built_in_types_arrive_as_those(value: object, expected: object) -> None:
    assert form(carried(value)) == form(expected)


class Own:
    pass


FOREIGN: list[Any] = [
    *(object(), Own(), Own, len, lambda: 1, (x for x in "ab"), iter([1]), NotImplemented, ..., KeyError("x"), enum),
    *(slice(1, 2), memoryview(b"a"), type, object, NoneType, map(abs, [])),
    *(type("int", (int,), {}), type("list", (), {}), datetime.time(tzinfo=zoneinfo.ZoneInfo("UTC"))),
]


@pytest.mark.parametrize("value", [one for one in FOREIGN if one is not NoneType], ids=lambda one: type(one).__name__)
def test_whatever_is_not_made_of_plain_values_is_referred_to(value: object) -> None:
    found, referred = there_and_back({"a": [value, 1, value]})
    assert referred == [value, value]
    assert all(one is value for one in referred)
    assert found["a"][0] is value
    assert found["a"][1:] == [1, value]


def test_of_classes_only_the_ones_whose_instances_cross_do() -> None:
    crossing = [*BASES, bool, complex, range, NoneType]
    assert [carried(kind) for kind in crossing] == crossing
    assert there_and_back([type, object, Exception, Own, memoryview])[1] == [type, object, Exception, Own, memoryview]


def deep(levels: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = wrap(value)
    return value


WRAPS: dict[str, Callable[[Any], Any]] = {
    "list": lambda value: [value],
    "tuple": lambda value: (value,),
    "dict": lambda value: {"a": value},
    "values": lambda value: {1: value}.values(),
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_the_deepest_value_arrives(wrap: str) -> None:
    value = deep(values.DEEPEST, WRAPS[wrap])
    assert form(carried(value)) == form(value)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("more", [1, 50_000])
def test_what_lies_deeper_stays_and_is_referred_to(wrap: str, more: int) -> None:
    _, referred = there_and_back(deep(values.DEEPEST + 1 + more, WRAPS[wrap]))
    assert [type(one) for one in referred] == [type(WRAPS[wrap](1))]


def test_a_value_that_holds_itself_ends_in_a_reference() -> None:
    ring: list[Any] = ["a"]
    ring.append(ring)
    table: dict[str, Any] = {}
    table["a"] = (table,)
    for value in (ring, table):
        found, referred = there_and_back(value)
        assert len(referred) == 1
        assert type(found) is type(value)


def test_an_object_that_cannot_cross_may_be_refused() -> None:
    with pytest.raises(TypeError, match="no reference"):
        values.pack([{1: object()}], nothing_refers)

"""The jail: untrusted bytes become values of plain types or one kind of exception; decisions of the call filter."""

import json
import random
import re
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import EllipsisType, GeneratorType, NoneType
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sandbox.jail import linux, values
from harness.sandbox.jail.protocol import UnreadableError

CONTAINERS = (list, tuple, set, frozenset, deque, type({}.keys()), type({}.values()), type({}.items()))
DICTIONARIES = (dict, Counter, OrderedDict, defaultdict)
PLAIN = (NoneType, EllipsisType, bool, int, float, str, bytes, bytearray, complex, range, Decimal, Fraction)
LIBRARY = (date, datetime, time, timedelta, type(iter([])), GeneratorType)
NAMES = ["object", "exception", "subclass", "__class__", "", *values._CODECS]


class Reference:
    """Stand-in for an object of the other side; reading asks nothing of it."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"asked for {name}")

    def __iter__(self) -> Any:
        raise AssertionError("asked for its elements")

    __len__ = __iter__


def resolve(key: str, content: Any) -> object:
    if key != "object":
        raise KeyError(key)
    return [Reference()][content]


def made_of_plain_types(value: Any) -> bool:
    if type(value) in DICTIONARIES:
        return all(made_of_plain_types(part) for pair in value.items() for part in pair)
    if type(value) in CONTAINERS or (isinstance(value, tuple) and type(value)(*value) == value):
        return all(made_of_plain_types(part) for part in value)
    return value in values.TYPES.values() if type(value) is type else type(value) in (*PLAIN, *LIBRARY, Reference)


class Point(NamedTuple):
    x: int
    y: int


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


@given(st.binary(max_size=64) | messages.map(lambda message: json.dumps(message).encode()))
@settings(max_examples=200)
def test_any_message_is_plain_values_or_unreadable(content: bytes) -> None:
    try:
        is_allowed = made_of_plain_types(values.unpack(content, resolve))
    except UnreadableError as error:
        is_allowed = len(str(error)) <= 200
    assert is_allowed


def crossed(value: Any) -> Any:
    return values.unpack(values.pack(value, lambda value, written: written or {"object": 0}), resolve)


numbers = st.integers() | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False) | st.fractions()
atoms = st.none() | st.booleans() | numbers | st.decimals(allow_nan=False) | st.text(max_size=3) | st.binary(max_size=3)
moments = (st.datetimes() | st.times()).map(lambda moment: moment.replace(fold=0))
atoms |= moments | st.dates() | st.timedeltas() | st.builds(range, st.integers(), st.integers())
plain_values = st.recursive(
    atoms,
    lambda inner: st.one_of(
        *(st.lists(inner, max_size=3).map(kind) for kind in (list, tuple, deque, lambda part: Point(part, part))),
        *(st.dictionaries(atoms, inner, max_size=3).map(kind) for kind in (dict, OrderedDict, Counter, dict.items)),
        st.dictionaries(atoms, inner, max_size=3).map(lambda table: defaultdict(int, table)),
    ),
    max_leaves=8,
)


@given(plain_values)
@settings(max_examples=200)
def test_every_plain_value_arrives_as_itself(value: Any) -> None:
    # Other than ``==``, this tells kinds apart, and zeros by their sign.
    assert repr(crossed(value)) == repr(value)
    assert made_of_plain_types([value, {values.TYPES["int"]: Reference()}])
    assert not made_of_plain_types([value, {1: (object(),)}])


@pytest.mark.parametrize("kind", [set, frozenset])
def test_sets_keep_their_order(kind: Any) -> None:
    chance, sets = random.Random(0), []  # noqa: S311
    for size in range(1, 13):
        for _ in range(20):
            numbers = chance.sample(range(40), size)
            texts, in_order = [f"word {number}" for number in numbers], [*range(numbers[0], numbers[0] + size)]
            for elements in (numbers, texts, in_order):
                members, fewer = kind(elements), kind(elements[::2])
                sets += [members, kind(members), members | fewer, members - fewer]
    assert [crossed(members) for members in sets] == sets
    # Where many collide, the sequence they came in is not always found again: of frozen sets, 3 to 6 % are not, by the
    # hashes of texts, which differ from process to process.
    assert sum(list(crossed(members)) == list(members) for members in sets) > 0.9 * len(sets)


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: (inner,), lambda inner: {1: inner}])
def test_values_cross_to_a_depth_that_does_not_depend_on_the_interpreter(wrap: Any) -> None:
    value: Any = 1
    for _ in range(values.DEEPEST - 60):
        value = wrap(value)
    assert crossed(value) == value


PID, ALLOW, KILL, EPERM, ENOSYS = 4242, 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
SIGNAL_REQUESTS = {"fcntl": (8, 10, 15), "ioctl": (0x8901, 0x8902, 0x5412)}
LOOKED_INTO = ("clone", "kill", "tgkill", "prlimit64", "sendto", "fcntl", "ioctl", "clone3", "fallocate")
on_known_machines = pytest.mark.skipif(not linux.KNOWN, reason="the filter is for Linux on x86_64 and aarch64")
numbers_told = st.sampled_from([0, 1, PID, 0x10000, 1 << 32, *SIGNAL_REQUESTS["fcntl"], *SIGNAL_REQUESTS["ioctl"]])
numbers_told |= st.integers(0, (1 << 64) - 1)


def evaluate(number: int, arguments: list[int], architecture: int) -> int:
    """Run the filter, a classic packet filter; a jump out of it is an IndexError."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments)
    steps, index, held = list(struct.iter_unpack("<HBBI", linux.call_filter(PID))), 0, 0
    while True:
        operation, if_true, if_false, value = steps[index]
        index += 1
        if operation == 0x06:
            return value
        if operation == 0x20:
            (held,) = struct.unpack_from("<I", data, value)
            continue
        holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[operation]
        index += if_true if holds else if_false


@on_known_machines
@given(
    st.sampled_from(LOOKED_INTO) | st.sampled_from(sorted(linux.NUMBERS)),
    st.lists(numbers_told, min_size=6, max_size=6),
)
def test_the_filter_decides_as_stated(name: str, arguments: list[int]) -> None:
    low = [argument & 0xFFFFFFFF for argument in arguments]
    allowed = {
        "clone": bool(low[0] & 0x10000),
        "kill": low[0] == PID,
        "tgkill": low[0] == PID,
        "prlimit64": low[0] in (0, PID),
        "sendto": arguments[4] == 0,
        "fallocate": low[1] == 0,
        **{call: low[1] not in requests for call, requests in SIGNAL_REQUESTS.items()},
    }.get(name, name not in linux.FORBIDDEN)
    number, ours = linux.number(name), linux._ARCHITECTURES[linux.os.uname().machine]
    if number is not None:
        expected = ENOSYS if name == "clone3" else ALLOW if allowed else EPERM
        assert evaluate(number, arguments, ours) == expected
    # An ordinary call, the table for short pointers, another architecture.
    assert [evaluate(1000, arguments, ours), evaluate(1, arguments, 0x40000003)] == [ALLOW, KILL]
    assert evaluate(0x40000001, arguments, ours) == KILL


@on_known_machines
def test_numbers_are_those_of_the_system_headers() -> None:
    headers = ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h"]
    header = Path(headers[linux._COLUMN])  # type: ignore[index]
    if not header.exists():
        pytest.skip(f"no kernel headers at {header}")
    defined = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", header.read_text())}
    known = {name: linux.number(name) for name in linux.NUMBERS if name in defined}
    assert len(known) > 80
    assert known == {name: defined[name] for name in known}
    for name in ("socket", "ptrace", "process_vm_writev", "mount", "unshare", "setns", "keyctl", "bpf", "execve"):
        assert name in linux.FORBIDDEN

"""Messages between a program and its checks: values of built-in and a few library types, else references."""

from __future__ import annotations

import collections
import functools
import importlib
import itertools
import json
import operator
from collections.abc import Callable, Iterable, Iterator
from types import EllipsisType, NoneType
from typing import Any, NamedTuple

from .protocol import UnreadableError

# Takes a value that cannot cross; returns a reference to it, a dictionary with one key.
Refer = Callable[[object], dict[str, Any]]
# Takes an instance of a subclass of an immutable type, and its written content; returns the written instance.
Extend = Callable[[object, object], object]

# Nesting of one value; the interpreter's own comparison gives up at about a thousand.
DEEPEST = 200
_SIMPLE = frozenset({bool, str, float, NoneType})
# Of these, two places of a value may hold the same object, and a change in one is seen in the other.
MUTABLE = (list, dict, set, bytearray, collections.deque)
# Marks an object in several places, with its number and, the first time, its content.
_SHARED = "shared"
# Longer integers are written in base 16, whose length no interpreter limits.
_SHORT_INTEGER = 1 << 63
# Of a named tuple.
_MOST_FIELDS = 255
# A set with an element of another type is not searched for the order that it had: an object of the program would have
# to say, each time, whether it is equal to another.
_PLAIN = frozenset({int, float, complex, bool, str, bytes, NoneType})
# Orders tried for a set of one size; beyond that many elements only the two usual ways of making a set are.
_TRIES, _MOST_SEARCHED = 30, 64


class _MutableValue:
    """A mutable value while its message is written; it gets a number if it stands in a second place."""

    __slots__ = ("content", "number", "value")

    def __init__(self, value: object) -> None:
        self.value = value  # kept alive, so no other value has its identity meanwhile
        self.content: object = None  # as soon as it is written
        self.number: int | None = None

    def expand(self) -> object:
        """Return what stands in its first place."""
        return self.content if self.number is None else {_SHARED: [self.number, self.content]}


# Not as ASCII: two halves of a surrogate pair, each a character of its own, would arrive as one.
_ENCODER = json.JSONEncoder(
    check_circular=False, ensure_ascii=False, separators=(",", ":"), default=_MutableValue.expand
)


class _Message(NamedTuple):
    refer: Refer
    extend: Extend
    mutable: dict[int, _MutableValue]  # those written so far, by identity
    numbers: Iterator[int]


def pack(value: object, refer: Refer, extend: Extend = lambda value, content: content) -> bytes:
    """Return any value as bytes; ``refer`` is asked for what cannot cross."""
    written = _write(value, _Message(refer, extend, {}, itertools.count()), 0)
    return _ENCODER.encode(written).encode("utf-8", "surrogatepass")


def unpack(content: bytes, resolve: Callable[[str, Any], object]) -> Any:
    """Return the value that :func:`pack` wrote, given what a reference stands for; raise UnreadableError otherwise."""
    # Numbers hold for one message, so a decoder that has met some is not used again.
    decoder = (_decoder.__wrapped__ if f'"{_SHARED}"'.encode() in content else _decoder)(resolve)
    try:
        # Every NaN is read as a new object; the same one twice would be equal as a member of lists.
        return decoder.decode(content.decode("utf-8", "surrogatepass"))
    except RecursionError:
        # No depth is named: where the interpreter gives up depends on what it has optimised by then.
        raise UnreadableError("nested too deeply") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, SyntaxError) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}"[:200]) from None


# One decoder serves a connection from its beginning to its end.
@functools.lru_cache(maxsize=1)
def _decoder(resolve: Callable[[str, Any], object]) -> json.JSONDecoder:
    shared: dict[int, object] = {}

    def read(tagged: dict[str, Any]) -> object:
        ((name, content),) = tagged.items()
        if name == _SHARED:
            number, *first = _require((list,), content)
            return shared.setdefault(number, *first) if first else shared[number]
        reader = _READERS.get(name)
        return resolve(name, content) if reader is None else reader(content)

    return json.JSONDecoder(object_hook=read, parse_constant=float)


def _write(value: Any, message: _Message, depth: int) -> object:
    # In one function, as every further call lowers the depth at which the interpreter gives up.
    kind: type = type(value)
    if kind in _SIMPLE or (kind is int and -_SHORT_INTEGER <= value <= _SHORT_INTEGER):
        return value
    if depth > DEEPEST:
        return message.refer(value)
    place = None
    if issubclass(kind, MUTABLE):
        if known := message.mutable.get(id(value)):
            if known.content is None:
                # The object holds itself, so the other side cannot have it yet.
                return message.refer(value)
            if known.number is None:
                known.number = next(message.numbers)
            return {_SHARED: [known.number]}
        place = message.mutable[id(value)] = _MutableValue(value)
    content: object
    for base in kind.__mro__:
        if writer := _WRITERS.get(base):
            content = writer(value, message, depth + 1)
            content = content if base is kind or base in MUTABLE else message.extend(value, content)
        elif base in _CONTAINERS:
            name, take_apart, _ = _CONTAINERS[base]
            content = {name: _write_all(take_apart(value), message, depth + 1)}
        elif (library_name := f"{base.__module__.partition('.')[0]}.{base.__name__}") in _LIBRARY:
            kinds, take_apart = _LIBRARY[library_name]
            arguments = [*take_apart(value)]
            fits = _fit(arguments, kinds)
            content = {library_name: _write_all(arguments, message, depth + 1)} if fits else message.refer(value)
        else:
            continue
        break
    else:
        is_known = kind is type and _TYPES.get(value.__name__) is value
        content = {"type": value.__name__} if is_known else message.refer(value)
    if place is None:
        return content
    place.content = content
    return place


def _write_all(elements: Iterable[Any], message: _Message, depth: int) -> list[object]:
    return [_write(element, message, depth) for element in elements]


def _write_tuple(value: Any, message: _Message, depth: int) -> object:
    elements, fields = _write_all(tuple.__iter__(value), message, depth), getattr(type(value), "_fields", None)
    return {"tuple": elements} if fields is None else {"named": [type(value).__name__, list(fields), elements]}


def _fit(arguments: list[Any], kinds: str) -> bool:
    names = [kind.split("|") for kind in kinds.split()]
    return len(arguments) == len(names) and all(
        type(argument).__module__ in ("builtins", "datetime") and type(argument).__name__ in allowed
        for argument, allowed in zip(arguments, names, strict=True)
    )


def _read_library(name: str, arguments: list[Any]) -> Any:
    if not _fit(arguments, _LIBRARY[name][0]):
        raise TypeError("arguments of other types")
    # Imported only now, as few programs return such values.
    module, _, kind = name.partition(".")
    return getattr(importlib.import_module(module), kind)(*arguments)


def _list_reader(make: Callable[[list[Any]], object]) -> Callable[[Any], object]:
    """Return a reader that takes a list and nothing else: a small message could name a range of any length instead."""
    return lambda content: make(_require((list,), content))


def _require(kinds: tuple[type, ...], value: Any) -> Any:
    if type(value) not in kinds:
        raise TypeError(f"no {kinds[0].__name__}")
    return value


def _read_pairs(pairs: list[Any]) -> dict[Any, Any]:
    return dict([_require((list, tuple), pair) for pair in pairs])


def _read_defaultdict(parts: list[Any]) -> object:
    factory, content = parts
    return collections.defaultdict(factory, _require((dict,), content))


@functools.lru_cache(maxsize=64)
def _named(name: str, *fields: str) -> Any:
    return collections.namedtuple(name, fields, rename=True)


def _read_named(parts: list[Any]) -> object:
    name, fields, elements = parts
    if len(_require((list,), fields)) > _MOST_FIELDS or any(type(text) is not str for text in [name, *fields]):
        raise TypeError("names that are no text")
    elements = _require((list,), elements)
    return tuple(elements) if {"count", "index"} & {*fields} else _named(name, *fields)._make(elements)


def _ordered_set(kind: type, elements: list[Any]) -> Any:
    """Return a set or frozenset that iterates in the order of the elements if one is found, else in any order.

    The order follows from the size of the table and, where elements collide, from who came first. Neither is seen from
    outside, so sizes and sequences are tried, the usual ones first.
    """
    first = kind(elements)
    if not all(map(_is_plain, elements)):
        return first
    for candidate in itertools.chain((first, kind(set(elements))), _candidate_sets(kind, elements)):
        if len(candidate) == len(elements) and all(map(operator.is_, candidate, elements)):
            return candidate
    return first


def _is_plain(element: object) -> bool:
    return type(element) in _PLAIN or (type(element) is tuple and all(map(_is_plain, element)))


def _candidate_sets(kind: type, elements: list[Any]) -> Iterator[Any]:
    if not 1 < len(elements) <= _MOST_SEARCHED:
        return
    smallest = max(8, 1 << (2 * len(elements) - 1).bit_length())
    for size in (smallest, 2 * smallest, 4 * smallest) if kind is set else (smallest,):
        # Added last, these displace no element; they only make the table that large.
        extra = [object() for _ in range(size // 4 - len(elements))] if kind is set else []
        for number in range(_TRIES):
            # The first time in the given order, then in pseudorandom ones.
            places = sorted((hash((number, place)) if number else place, place) for place in range(len(elements)))
            # A dictionary's length is known, so the table has its size from the beginning.
            candidate = kind(dict.fromkeys([*(elements[place] for _, place in places), *extra]))
            if extra:
                candidate.difference_update(extra)
            yield candidate


# By methods of the type, as a subclass may have replaced its own.
_WRITERS: dict[type, Callable[[Any, _Message, int], object]] = {
    int: lambda value, *_: plain if abs(plain := int.__int__(value)) <= _SHORT_INTEGER else {"int": hex(plain)},
    str: lambda value, *_: str.__str__(value),
    float: lambda value, *_: float.__float__(value),
    bytes: lambda value, *_: {"bytes": bytes.hex(value)},
    bytearray: lambda value, *_: {"bytearray": bytearray.hex(value)},
    list: lambda value, *context: _write_all(list.__iter__(value), *context),
    dict: lambda value, *context: {"dict": [_write_all(pair, *context) for pair in dict.items(value)]},
    tuple: _write_tuple,
    EllipsisType: lambda *_: {"type": "Ellipsis"},
}
# Other built-in types: name, parts, and how a list of parts becomes a value again.
_CONTAINERS: dict[type, tuple[str, Callable[[Any], Iterable[Any]], Callable[[list[Any]], object]]] = {
    set: ("set", set.__iter__, functools.partial(_ordered_set, set)),
    frozenset: ("frozenset", frozenset.__iter__, functools.partial(_ordered_set, frozenset)),
    complex: ("complex", operator.attrgetter("real", "imag"), lambda parts: complex(*parts)),
    range: ("range", operator.attrgetter("start", "stop", "step"), lambda parts: range(*parts)),
    type({}.keys()): ("keys", iter, lambda keys: dict.fromkeys(keys).keys()),
    type({}.values()): ("values", iter, lambda values: dict(enumerate(values)).values()),
    type({}.items()): ("items", iter, lambda pairs: _read_pairs(pairs).items()),
    collections.defaultdict: ("defaultdict", lambda value: (value.default_factory, dict(value)), _read_defaultdict),
}
_TIME = ("hour", "minute", "second", "microsecond", "tzinfo")
# Types of the standard library: arguments that make an equal instance, and what these are. Others could make a
# constructor do something else, such as take the state of a pickled instance.
_LIBRARY: dict[str, tuple[str, Callable[[Any], Iterable[Any]]]] = {
    "collections.Counter": ("dict", lambda value: [dict(value)]),
    "collections.OrderedDict": ("dict", lambda value: [dict(value)]),
    "collections.deque": ("list int|NoneType", lambda value: [list(value), value.maxlen]),
    "datetime.date": ("int int int", operator.attrgetter("year", "month", "day")),
    "datetime.datetime": ("int " * 7 + "timezone|NoneType", operator.attrgetter("year", "month", "day", *_TIME)),
    "datetime.time": ("int int int int timezone|NoneType", operator.attrgetter(*_TIME)),
    "datetime.timedelta": ("int int int", operator.attrgetter("days", "seconds", "microseconds")),
    "datetime.timezone": ("timedelta", lambda value: [value.utcoffset(None)]),
    "decimal.Decimal": ("str", lambda value: [str(value)]),
    "fractions.Fraction": ("int int", operator.attrgetter("numerator", "denominator")),
    "pathlib.PosixPath": ("str", lambda value: [str(value)]),
    "pathlib.PurePosixPath": ("str", lambda value: [str(value)]),
}
# Types whose instances cross; any other might do something when it is called.
_KINDS = (int, str, float, list, tuple, dict, set, frozenset, bytes, bytearray, complex, bool, range, NoneType)
_TYPES: dict[str, Any] = {"Ellipsis": ..., **{kind.__name__: kind for kind in _KINDS}}
_READERS: dict[str, Callable[[Any], object]] = {
    "int": lambda text: int(text, 16),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "dict": _list_reader(_read_pairs),
    "tuple": _list_reader(tuple),
    "named": _list_reader(_read_named),
    "type": _TYPES.__getitem__,
    **{name: _list_reader(make) for name, _, make in _CONTAINERS.values()},
    **{name: _list_reader(functools.partial(_read_library, name)) for name in _LIBRARY},
}

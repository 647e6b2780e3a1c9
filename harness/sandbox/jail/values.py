"""Messages between a program and its checks: values of built-in and a few library types, else references."""

from __future__ import annotations

import collections
import functools
import importlib
import itertools
import json
import os
from collections.abc import Callable, Iterable
from operator import attrgetter
from types import EllipsisType, NoneType
from typing import Any

from .sets import set_in_order

Refer = Callable[[object], dict[str, Any]]
# Given an instance of a subclass of an immutable type and how its content is written: how it is written itself.
Extend = Callable[[object, object], object]

# A value longer than this is no answer to any question; an order also holds sources with their data.
LONGEST, LONGEST_ORDER = 16 << 20, 64 << 20
_HEAD = 4
_PIECE = 1 << 16
# Nesting of one value; the interpreter's own comparison gives up at about a thousand.
DEEPEST = 200
_SIMPLE = frozenset({bool, str, float, NoneType})
# What two places of a value may share, so that a change in one is seen in the other.
MUTABLE = (list, dict, set, bytearray, collections.deque)
# Where the message has the number of one of these, and its content the first time; while that is written, it is open.
_SHARED, _OPEN = "shared", -1
# Longer integers are written in base 16, whose length no interpreter limits.
_SHORT_INTEGER = 1 << 63
# Not as ASCII: two halves of a surrogate pair, each a character of its own, would arrive as one.
_ENCODER = json.JSONEncoder(check_circular=False, ensure_ascii=False, separators=(",", ":"))


class UnreadableError(Exception):
    """The other side sent what no honest value can look like."""


class TooLongError(Exception):
    """The other side announced a message that is longer than allowed."""


class Channel:
    """One end of a connected stream socket; a message is four bytes of length, then its content."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = bytearray()
        # Bound now: where foreign code runs, the names may lead elsewhere afterwards.
        self._read, self._write = os.read, os.write

    def send(self, message: bytes) -> None:
        """Write a message; raises OSError where the other side is gone."""
        rest = memoryview(len(message).to_bytes(_HEAD, "little") + message)
        while rest:
            rest = rest[self._write(self._descriptor, rest) :]

    def receive(self, longest: int = LONGEST) -> bytes:
        """Wait for a message of at most that many bytes; raises EOFError where the other side is gone, TooLongError."""
        length = int.from_bytes(self._take(_HEAD), "little")
        if length > longest:
            raise TooLongError(length)
        return self._take(length)

    def _take(self, length: int) -> bytes:
        while len(self._pending) < length:
            self._fill()
        taken = bytes(self._pending[:length])
        del self._pending[:length]
        return taken

    def _fill(self) -> None:
        try:
            piece = self._read(self._descriptor, _PIECE)
        except ConnectionResetError:
            piece = b""
        if not piece:
            raise EOFError
        self._pending += piece


class _Message:
    """What is known of a message while it is written."""

    def __init__(self, refer: Refer, extend: Extend) -> None:
        self.refer = refer
        self.extend = extend
        # Mutable values met, by identity; kept alive, so no other has it meanwhile.
        self.met: dict[int, object] = {}
        # Those met twice, by identity, with their numbers as soon as they have one.
        self.numbers: dict[int, int | None] = {}
        self.count = itertools.count()
        self.is_numbered = False
        # The one whose content comes next.
        self.opened: object = None

    def is_new(self, value: object) -> bool:
        """Return whether a mutable value is to be written out; note a second place of one in the first pass."""
        key, is_opened = id(value), self.opened is value
        if self.is_numbered:
            self.opened = None if is_opened else self.opened
            return is_opened or key not in self.numbers
        if key in self.met:
            self.numbers[key] = None
        return self.met.setdefault(key, value) is value and key not in self.numbers


def pack(value: object, refer: Refer, extend: Extend = lambda value, content: content) -> bytes:
    """Return any value as bytes; ``refer`` gives a dictionary with one key for what cannot cross."""
    message = _Message(refer, extend)
    written = _written(value, message, 0)
    if message.numbers:
        message.is_numbered = True
        written = _written(value, message, 0)
    return _ENCODER.encode(written).encode("utf-8", "surrogatepass")


def unpack(content: bytes, resolve: Callable[[str, Any], object]) -> Any:
    """Return the value that :func:`pack` wrote, given what a reference stands for; raises UnreadableError otherwise."""
    # Numbers are those of one message.
    decoder = (_decoder.__wrapped__ if f'"{_SHARED}"'.encode() in content else _decoder)(resolve)
    try:
        # Every NaN is an object of its own, or two would be equal as members of lists.
        return decoder.decode(content.decode("utf-8", "surrogatepass"))
    except RecursionError:
        # Where exactly the interpreter gives up depends on what it has optimised by then.
        raise UnreadableError("nested too deeply") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, SyntaxError) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}"[:200]) from None


# A conversation uses one from its beginning to its end.
@functools.lru_cache(maxsize=1)
def _decoder(resolve: Callable[[str, Any], object]) -> json.JSONDecoder:
    shared: dict[int, object] = {}

    def read(tagged: dict[str, Any]) -> object:
        ((name, content),) = tagged.items()
        if name == _SHARED:
            number, *first = _only((list,), content)
            return shared.setdefault(number, *first) if first else shared[number]
        reader = _READERS.get(name)
        return resolve(name, content) if reader is None else reader(content)

    return json.JSONDecoder(object_hook=read, parse_constant=float)


def _written(value: Any, message: _Message, depth: int) -> object:
    kind: type = type(value)
    if kind in _SIMPLE or (kind is int and -_SHORT_INTEGER <= value <= _SHORT_INTEGER):
        return value
    if depth > DEEPEST:
        return message.refer(value)
    if issubclass(kind, MUTABLE) and not message.is_new(value):
        # In this function no call more than needed: nesting ends where the interpreter gives up.
        return _repeated(value, message, depth)
    for base in kind.__mro__:
        if writer := _WRITERS.get(base):
            content = writer(value, message, depth + 1)
            return content if base is kind or base in MUTABLE else message.extend(value, content)
        if base in _CONTAINERS:
            name, take_apart, _ = _CONTAINERS[base]
            return {name: _each(take_apart(value), message, depth + 1)}
        name = f"{base.__module__.partition('.')[0]}.{base.__name__}"
        if name in _LIBRARY:
            kinds, take_apart = _LIBRARY[name]
            arguments = [*take_apart(value)]
            return {name: _each(arguments, message, depth + 1)} if _fit(arguments, kinds) else message.refer(value)
    if kind is type and _TYPES.get(name := value.__name__) is value:
        return {"type": name}
    return message.refer(value)


def _repeated(value: Any, message: _Message, depth: int) -> object:
    """Write a mutable value that stands in several places; nothing as long as numbers are not given."""
    if not message.is_numbered:
        return None
    number = message.numbers[id(value)]
    if number is not None:
        # One that holds itself is not known yet.
        return message.refer(value) if number == _OPEN else {_SHARED: [number]}
    message.numbers[id(value)], message.opened = _OPEN, value
    content = _written(value, message, depth)
    message.numbers[id(value)] = number = next(message.count)
    return {_SHARED: [number, content]}


def _each(elements: Iterable[Any], message: _Message, depth: int) -> list[object]:
    return [_written(element, message, depth) for element in elements]


def _tuple(value: Any, message: _Message, depth: int) -> object:
    elements, fields = _each(tuple.__iter__(value), message, depth), getattr(type(value), "_fields", None)
    return {"tuple": elements} if fields is None else {"named": [type(value).__name__, list(fields), elements]}


def _fit(arguments: list[Any], kinds: str) -> bool:
    known = [kind.split("|") for kind in kinds.split()]
    return len(arguments) == len(known) and all(
        type(one).__module__ in ("builtins", "datetime") and type(one).__name__ in names
        for one, names in zip(arguments, known, strict=True)
    )


def _from_library(name: str, arguments: list[Any]) -> Any:
    if not _fit(arguments, _LIBRARY[name][0]):
        raise TypeError("arguments of other types")
    # Loaded where the first one arrives: few programs return any.
    module, _, kind = name.partition(".")
    return getattr(importlib.import_module(module), kind)(*arguments)


def _from_list(make: Callable[[list[Any]], object]) -> Callable[[Any], object]:
    """A reader that takes a list and nothing else: a small message could name a range of any length instead."""
    return lambda content: make(_only((list,), content))


def _only(kinds: tuple[type, ...], value: Any) -> Any:
    if type(value) not in kinds:
        raise TypeError(f"no {kinds[0].__name__}")
    return value


def _from_pairs(pairs: list[Any]) -> dict[Any, Any]:
    return dict([_only((list, tuple), pair) for pair in pairs])


def _from_factory(parts: list[Any]) -> object:
    factory, content = parts
    return collections.defaultdict(factory, _only((dict,), content))


@functools.lru_cache(maxsize=64)
def _named(name: str, *fields: str) -> Any:
    return collections.namedtuple(name, fields, rename=True)


def _from_fields(parts: list[Any]) -> object:
    name, fields, elements = parts
    if len(_only((list,), fields)) > _MOST_FIELDS or any(type(one) is not str for one in [name, *fields]):
        raise TypeError("names that are no text")
    elements = _only((list,), elements)
    return tuple(elements) if {"count", "index"} & {*fields} else _named(name, *fields)._make(elements)


_MOST_FIELDS = 255
# Through the type and not through the value: a subclass may have put something else there.
_WRITERS: dict[type, Callable[[Any, _Message, int], object]] = {
    int: lambda value, *_: plain if abs(plain := int.__int__(value)) <= _SHORT_INTEGER else {"int": hex(plain)},
    str: lambda value, *_: str.__str__(value),
    float: lambda value, *_: float.__float__(value),
    bytes: lambda value, *_: {"bytes": bytes.hex(value)},
    bytearray: lambda value, *_: {"bytearray": bytearray.hex(value)},
    list: lambda value, *how: _each(list.__iter__(value), *how),
    dict: lambda value, *how: {"dict": [_each(pair, *how) for pair in dict.items(value)]},
    tuple: _tuple,
    EllipsisType: lambda *_: {"type": "Ellipsis"},
}
# Other built-in types: name, parts, and how a list of parts becomes a value again.
_CONTAINERS: dict[type, tuple[str, Callable[[Any], Iterable[Any]], Callable[[list[Any]], object]]] = {
    set: ("set", set.__iter__, functools.partial(set_in_order, set)),
    frozenset: ("frozenset", frozenset.__iter__, functools.partial(set_in_order, frozenset)),
    complex: ("complex", attrgetter("real", "imag"), lambda parts: complex(*parts)),
    range: ("range", attrgetter("start", "stop", "step"), lambda parts: range(*parts)),
    type({}.keys()): ("keys", iter, lambda keys: dict.fromkeys(keys).keys()),
    type({}.values()): ("values", iter, lambda values: dict(enumerate(values)).values()),
    type({}.items()): ("items", iter, lambda pairs: _from_pairs(pairs).items()),
    collections.defaultdict: ("defaultdict", lambda value: (value.default_factory, dict(value)), _from_factory),
}
_TIME = ("hour", "minute", "second", "microsecond", "tzinfo")
# Types of the standard library: arguments that make an equal instance, and what these are. Others could make a
# constructor do something else, such as take the state of a pickled instance.
_LIBRARY: dict[str, tuple[str, Callable[[Any], Iterable[Any]]]] = {
    "collections.Counter": ("dict", lambda value: [dict(value)]),
    "collections.OrderedDict": ("dict", lambda value: [dict(value)]),
    "collections.deque": ("list int|NoneType", lambda value: [list(value), value.maxlen]),
    "datetime.date": ("int int int", attrgetter("year", "month", "day")),
    "datetime.datetime": ("int " * 7 + "timezone|NoneType", attrgetter("year", "month", "day", *_TIME)),
    "datetime.time": ("int int int int timezone|NoneType", attrgetter(*_TIME)),
    "datetime.timedelta": ("int int int", attrgetter("days", "seconds", "microseconds")),
    "datetime.timezone": ("timedelta", lambda value: [value.utcoffset(None)]),
    "decimal.Decimal": ("str", lambda value: [str(value)]),
    "fractions.Fraction": ("int int", attrgetter("numerator", "denominator")),
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
    "dict": _from_list(_from_pairs),
    "tuple": _from_list(tuple),
    "named": _from_list(_from_fields),
    "type": _TYPES.__getitem__,
    **{name: _from_list(make) for name, _, make in _CONTAINERS.values()},
    **{name: _from_list(functools.partial(_from_library, name)) for name in _LIBRARY},
}

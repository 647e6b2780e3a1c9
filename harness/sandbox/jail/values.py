"""Messages between a program and its checks: plain values as JSON, references to everything else.

A value arrives as its own kind. An iterator is read to its end and arrives as an iterator over what was read.
"""

from __future__ import annotations

import builtins
import collections
import functools
import importlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, is_
from types import NoneType
from typing import Any

from .protocol import TooLongError, UnreadableError

# Takes an object that is no plain value; or an instance of a subclass of a plain type, and its value as it is written.
# Returns what is written in its place, a dictionary with one key.
Refer = Callable[[object, object], object]
# How an instance is taken apart, and made again of the parts.
_Kind = tuple[Callable[[Any], Iterable[Any]], Callable[[list[Any]], Any]]

# Nesting of one value; the interpreter's own comparison gives up at about a thousand.
DEEPEST = 200
# Values that are read from one iterator.
MOST_READ = 1_000_000
# Longer integers are written in base 16, whose length no interpreter limits.
_SHORT_INTEGER = 1 << 63
# Of a named tuple.
_MOST_FIELDS = 255
# A set with an element of another type is not searched for the order that it had: an object of the program would have
# to say, each time, whether it is equal to another.
_PLAIN = frozenset({int, float, complex, bool, str, bytes, NoneType})
# Of these, a change that a call makes in an argument is seen by who called.
MUTABLE = (list, dict, set, bytearray, collections.deque)
# Orders tried for a set of one size; beyond that many elements only the two usual ways of making a set are.
_TRIES, _MOST_SEARCHED = 30, 64

# Not as ASCII: two halves of a surrogate pair, each a character of its own, would arrive as one.
_ENCODER = json.JSONEncoder(check_circular=False, ensure_ascii=False, separators=(",", ":"))


def pack(value: object, refer: Refer, *, reads_iterators: bool = True) -> bytes:
    """Return a value as bytes; ``refer`` is asked for what is not plain, and for iterators if none is to be read.

    Raises TooLongError if an iterator has too many values.
    """
    written = _write(value, refer, reads_iterators, 0)
    return _ENCODER.encode(written).encode("utf-8", "surrogatepass")


def unpack(content: bytes, resolve: Callable[[str, Any], object]) -> Any:
    """Return the value that :func:`pack` wrote, given what a reference stands for; raise UnreadableError otherwise."""
    try:
        # Every NaN is read as a new object; the same one twice would be equal as a member of lists.
        return _decoder(resolve).decode(content.decode("utf-8", "surrogatepass"))
    except RecursionError:
        # No depth is named: where the interpreter gives up depends on what it has optimised by then.
        raise UnreadableError("nested too deeply") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, SyntaxError) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}"[:200]) from None


# One decoder serves a connection from its beginning to its end.
@functools.lru_cache(maxsize=1)
def _decoder(resolve: Callable[[str, Any], object]) -> json.JSONDecoder:
    def read(tagged: dict[str, Any]) -> object:
        ((name, parts),) = tagged.items()
        if name not in _KINDS:
            return resolve(name, parts)
        # A list and nothing else: a small message could name a range of any length instead.
        return _KINDS[name][1](_require(list, parts))

    return json.JSONDecoder(object_hook=read, parse_constant=float)


def _write(value: Any, refer: Refer, reads_iterators: bool, depth: int) -> object:
    # In one function, as every further call lowers the depth at which the interpreter gives up.
    kind: Any = type(value)
    if kind in (str, bool, float, NoneType) or (kind is int and -_SHORT_INTEGER <= value <= _SHORT_INTEGER):
        return value
    name = _name(kind)
    if depth > DEEPEST or not name or (name in ("iterator", "generator") and not reads_iterators):
        return refer(value, None)
    if name == "type" and TYPES.get(value.__name__) is not value:
        return refer(value, None)
    take_apart, _ = _KINDS[name]
    written: Any = [_write(part, refer, reads_iterators, depth + 1) for part in take_apart(value)]
    written = written if name == "list" else {name: written}
    is_extended = name == "named tuple" or kind is not EXTENDABLE.get(name, kind)
    return refer(value, written) if is_extended else written


@functools.lru_cache(maxsize=1024)
def _name(kind: type) -> str:
    """Return the name of the kind of value that instances of a type are, empty if they are no plain values."""
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return "named tuple"
    for base in kind.__mro__:
        name = base.__name__ if base.__module__ == "builtins" else f"{base.__module__}.{base.__name__}"
        if name in _KINDS:
            is_plain = base is kind or base in EXTENDABLE.values() or kind.__module__ == "builtins"
            return name if is_plain else ""
    return "iterator" if issubclass(kind, Iterator) else ""


def _read_iterator(iterator: Iterator[Any]) -> list[Any]:
    values = list(itertools.islice(iterator, MOST_READ + 1))
    if len(values) > MOST_READ:
        raise TooLongError(f"an iterator of more than {MOST_READ} values")
    return values


def _require(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"no {kind.__name__}")
    return value


def _pairs(flat: list[Any]) -> dict[Any, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _library(constructor: str, kind: type, take_apart: Callable[[Any], Iterable[Any]]) -> _Kind:
    """Return how a type of the library crosses: taken apart into values of one type, made by that constructor."""

    def make(parts: list[Any]) -> Any:
        # Imported only now, as few programs return such values. Parts of another type could make a constructor do
        # something else, such as take the state of a pickled instance.
        module, _, name = constructor.partition(".")
        return attrgetter(name)(importlib.import_module(module))(*[_require(kind, part) for part in parts])

    return take_apart, make


def _read_named(parts: list[Any]) -> object:
    name, fields, *elements = parts
    if any(type(text) is not str for text in [name, *_require(list, fields)]) or len(fields) > _MOST_FIELDS:
        raise TypeError("names that are no text")
    # A function of the program must not stand where the methods of a tuple do.
    if any(callable(element) for field, element in zip(fields, elements, strict=True) if field in ("count", "index")):
        return tuple(elements)
    return _named(name, *fields)._make(elements)


@functools.lru_cache(maxsize=64)
def _named(name: str, *fields: str) -> Any:
    return collections.namedtuple(name, fields, rename=True)


def _flat(table: Any) -> Iterator[Any]:
    return itertools.chain.from_iterable(dict.items(table))


def _ordered_set(kind: type, elements: list[Any]) -> Any:
    """Return a set or frozenset that iterates in the order of the elements if one is found, else in any order.

    The order follows from the size of the table and, where elements collide, from who came first. Neither is seen from
    outside, so sizes and sequences are tried, the usual ones first.
    """
    first = kind(elements)
    if not all(map(_is_plain, elements)):
        return first
    for candidate in itertools.chain((first, kind(set(elements))), _candidate_sets(kind, elements)):
        if len(candidate) == len(elements) and all(map(is_, candidate, elements)):
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
            indices = sorted(range(len(elements)), key=lambda index: hash((number, index)) if number else index)
            # A dictionary's length is known, so the table has its size from the beginning.
            candidate = kind(dict.fromkeys([*(elements[index] for index in indices), *extra]))
            if extra:
                candidate.difference_update(extra)
            yield candidate


# Types whose instances are values even if a class of the program extends them; of others they stay with the program.
EXTENDABLE = {kind.__name__: kind for kind in (int, float, str, bytes, tuple, list, dict, set, frozenset)}
# Types and exceptions that cross as such; any other might do something when it is called. To the interpreter the last
# ones are no errors: raised inside a check they could end a loop early.
_INSTANTIABLE = (*EXTENDABLE.values(), bool, bytearray, complex, range, NoneType)
_NEVER_RAISED = (StopIteration, StopAsyncIteration, GeneratorExit)
TYPES: dict[str, Any] = {kind.__name__: kind for kind in _INSTANTIABLE} | {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, _NEVER_RAISED)
}


# By name of a type. Instances are taken apart by methods of the type, as a subclass may have replaced its own.
_KINDS: dict[str, _Kind] = {
    "int": (lambda value: [hex(int.__int__(value))], lambda parts: int(parts[0], 16)),
    "float": (lambda value: [float.__float__(value)], lambda parts: float(parts[0])),
    "complex": (lambda value: [value.real, value.imag], lambda parts: complex(*parts)),
    "str": (lambda value: [str.__str__(value)], lambda parts: _require(str, parts[0])),
    "bytes": (lambda value: [bytes.hex(value)], lambda parts: bytes.fromhex(parts[0])),
    "bytearray": (lambda value: [bytearray.hex(value)], lambda parts: bytearray.fromhex(parts[0])),
    "ellipsis": (lambda value: [], lambda parts: ...),
    "range": (lambda value: [value.start, value.stop, value.step], lambda parts: range(*parts)),
    "type": (lambda value: [value.__name__], lambda parts: TYPES[parts[0]]),
    "list": (list.__iter__, list),
    "tuple": (tuple.__iter__, tuple),
    "named tuple": (lambda value: [type(value).__name__, [*value._fields], *tuple.__iter__(value)], _read_named),
    "set": (set.__iter__, lambda parts: _ordered_set(set, parts)),
    "frozenset": (frozenset.__iter__, lambda parts: _ordered_set(frozenset, parts)),
    "dict": (_flat, _pairs),
    "dict_keys": (iter, lambda parts: dict.fromkeys(parts).keys()),
    "dict_values": (iter, lambda parts: dict(enumerate(parts)).values()),
    "dict_items": (itertools.chain.from_iterable, lambda parts: _pairs(parts).items()),
    "collections.Counter": (_flat, lambda parts: collections.Counter(_pairs(parts))),
    "collections.OrderedDict": (
        # Its order is not that of the dictionary that it is made of.
        lambda value: itertools.chain.from_iterable(collections.OrderedDict.items(value)),
        lambda parts: collections.OrderedDict(_pairs(parts)),
    ),
    "collections.defaultdict": (
        lambda value: [value.default_factory, *_flat(value)],
        lambda parts: collections.defaultdict(parts[0], _pairs(parts[1:])),
    ),
    "collections.deque": (
        lambda value: [value.maxlen, *value],
        lambda parts: collections.deque(parts[1:], parts[0]),
    ),
    "datetime.date": _library("datetime.date.fromisoformat", str, lambda value: [value.isoformat()]),
    "datetime.time": _library("datetime.time.fromisoformat", str, lambda value: [value.isoformat()]),
    "datetime.datetime": _library("datetime.datetime.fromisoformat", str, lambda value: [value.isoformat()]),
    "datetime.timedelta": _library("datetime.timedelta", int, attrgetter("days", "seconds", "microseconds")),
    "decimal.Decimal": _library("decimal.Decimal", str, lambda value: [str(value)]),
    "fractions.Fraction": _library("fractions.Fraction", int, attrgetter("numerator", "denominator")),
    "iterator": (_read_iterator, iter),
    "generator": (_read_iterator, lambda parts: (part for part in parts)),
}

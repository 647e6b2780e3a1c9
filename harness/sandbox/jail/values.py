"""Serialise what a program and its checks exchange: plain values as JSON, references to everything else.

A value keeps its type. An iterator is read to its end and arrives as an iterator over the values read.
"""

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

from .protocol import DEEPEST, MOST_READ, TooLongError, UnreadableError

# Called with an object that is not plain, or with an instance of a subclass of a plain type and its written value.
# Returns a dictionary with one key, to write instead.
Refer = Callable[[object, object], object]
# Functions that take an instance apart and that rebuild it from the parts.
_Codec = tuple[Callable[[Any], Iterable[Any]], Callable[[list[Any]], Any]]

_SHORT_INTEGER = 1 << 63  # longer integers are written in base 16, which no interpreter limits
_MOST_FIELDS = 255  # of a named tuple
# The order of a set with elements of other types is not restored: each comparison would ask the program.
_PLAIN = frozenset({int, float, complex, bool, str, bytes, NoneType})
# A call may change arguments of these types, and its caller sees the change.
MUTABLE = (list, dict, set, bytearray, collections.deque)
# Number of orders tried for each table size. For larger sets only the two usual ways to build a set are tried.
_TRIES, _MOST_SEARCHED = 30, 64

# Not as ASCII, which would join two halves of a surrogate pair.
_ENCODER = json.JSONEncoder(check_circular=False, ensure_ascii=False, separators=(",", ":"))


def pack(value: object, refer: Refer, *, reads_iterators: bool = True) -> bytes:
    """Serialise a value. ``refer`` writes objects that are not plain. Raises TooLongError for a too long iterator."""
    written = _write(value, refer, reads_iterators, 0)
    return _ENCODER.encode(written).encode("utf-8", "surrogatepass")


def unpack(content: bytes, resolve: Callable[[str, Any], object]) -> Any:
    """Deserialise a value. ``resolve`` reads its references. Raises UnreadableError if the content is invalid."""
    try:
        # Every NaN is a new object: lists with the same NaN object would be equal.
        return _decoder(resolve).decode(content.decode("utf-8", "surrogatepass"))
    except RecursionError:
        # The depth at which the interpreter gives up varies, so the message does not name it.
        raise UnreadableError("nested too deeply") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, SyntaxError) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}"[:200]) from None


@functools.lru_cache(maxsize=1)
def _decoder(resolve: Callable[[str, Any], object]) -> json.JSONDecoder:
    def read(tagged: dict[str, Any]) -> object:
        ((name, parts),) = tagged.items()
        if name not in _CODECS:
            return resolve(name, parts)
        # Requires a list, since a small message could name a range of any length.
        return _CODECS[name][1](_require(list, parts))

    return json.JSONDecoder(object_hook=read, parse_constant=float)


def _write(value: Any, refer: Refer, reads_iterators: bool, depth: int) -> object:
    # One function, as further calls would lower the depth at which the interpreter gives up.
    type_: Any = type(value)
    if type_ in (str, bool, float, NoneType) or (type_ is int and -_SHORT_INTEGER <= value <= _SHORT_INTEGER):
        return value
    name = _name(type_)
    if depth > DEEPEST or not name or (name in ("iterator", "generator") and not reads_iterators):
        return refer(value, None)
    if name == "type" and TYPES.get(value.__name__) is not value:
        return refer(value, None)
    take_apart, _ = _CODECS[name]
    written: Any = [_write(part, refer, reads_iterators, depth + 1) for part in take_apart(value)]
    written = written if name == "list" else {name: written}
    is_extended = name == "named tuple" or type_ is not EXTENDABLE.get(name, type_)
    return refer(value, written) if is_extended else written


@functools.lru_cache(maxsize=1024)
def _name(type_: type) -> str:
    """Find the key in ``_CODECS`` for instances of a type. Empty if they are not plain values."""
    if issubclass(type_, tuple) and hasattr(type_, "_fields"):
        return "named tuple"
    for base in type_.__mro__:
        name = base.__name__ if base.__module__ == "builtins" else f"{base.__module__}.{base.__name__}"
        if name in _CODECS:
            is_plain = base is type_ or base in EXTENDABLE.values() or type_.__module__ == "builtins"
            return name if is_plain else ""
    return "iterator" if issubclass(type_, Iterator) else ""


def _read_iterator(iterator: Iterator[Any]) -> list[Any]:
    values = list(itertools.islice(iterator, MOST_READ + 1))
    if len(values) > MOST_READ:
        raise TooLongError(f"an iterator of more than {MOST_READ} values")
    return values


def _require(type_: type, value: Any) -> Any:
    if type(value) is not type_:
        raise TypeError(f"no {type_.__name__}")
    return value


def _pairs(flat: list[Any]) -> dict[Any, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _library(constructor: str, type_: type, take_apart: Callable[[Any], Iterable[Any]]) -> _Codec:
    """Build the codec of a standard-library type, whose instances are sent as values of type ``type_``."""

    def make(parts: list[Any]) -> Any:
        # Imported only now, as few programs return such values. Parts of another type could make a constructor do other
        # things, such as restore a pickled state.
        module, _, name = constructor.partition(".")
        return attrgetter(name)(importlib.import_module(module))(*[_require(type_, part) for part in parts])

    return take_apart, make


def _read_named(parts: list[Any]) -> object:
    name, fields, *elements = parts
    if any(type(text) is not str for text in [name, *_require(list, fields)]) or len(fields) > _MOST_FIELDS:
        raise TypeError("names that are no text")
    # A function of the program must not replace a method of the tuple.
    if any(callable(element) for field, element in zip(fields, elements, strict=True) if field in ("count", "index")):
        return tuple(elements)
    return _named(name, *fields)._make(elements)


@functools.lru_cache(maxsize=64)
def _named(name: str, *fields: str) -> Any:
    return collections.namedtuple(name, fields, rename=True)


def _flat(table: Any) -> Iterator[Any]:
    return itertools.chain.from_iterable(dict.items(table))


def _ordered_set(type_: type, elements: list[Any]) -> Any:
    """Return a set or frozenset that iterates in the order of the elements, if one is found.

    The order depends on the size of the table and the order of insertion. Neither can be read, so both are tried.
    """
    first = type_(elements)
    if not all(map(_is_plain, elements)):
        return first
    for candidate in itertools.chain((first, type_(set(elements))), _candidate_sets(type_, elements)):
        if len(candidate) == len(elements) and all(map(is_, candidate, elements)):
            return candidate
    return first


def _is_plain(element: object) -> bool:
    return type(element) in _PLAIN or (type(element) is tuple and all(map(_is_plain, element)))


def _candidate_sets(type_: type, elements: list[Any]) -> Iterator[Any]:
    if not 1 < len(elements) <= _MOST_SEARCHED:
        return
    smallest = max(8, 1 << (2 * len(elements) - 1).bit_length())
    for size in (smallest, 2 * smallest, 4 * smallest) if type_ is set else (smallest,):
        # Added last, so that they displace no element, and only enlarge the table to ``size``.
        extra = [object() for _ in range(size // 4 - len(elements))] if type_ is set else []
        for number in range(_TRIES):
            indices = sorted(range(len(elements)), key=lambda index: hash((number, index)) if number else index)
            # From a dictionary, whose length is known, the table gets its size at once.
            candidate = type_(dict.fromkeys([*(elements[index] for index in indices), *extra]))
            if extra:
                candidate.difference_update(extra)
            yield candidate


# Instances of classes that extend these types are sent as values, instances of other classes as references.
EXTENDABLE = {type_.__name__: type_ for type_ in (int, float, str, bytes, tuple, list, dict, set, frozenset)}
# Types and exceptions that are sent by name. Calling any other type could have effects. StopIteration and the like are
# no errors to the interpreter: raised inside a check, they could end a loop early.
_INSTANTIABLE = (*EXTENDABLE.values(), bool, bytearray, complex, range, NoneType)
_NEVER_RAISED = (StopIteration, StopAsyncIteration, GeneratorExit)
TYPES: dict[str, Any] = {type_.__name__: type_ for type_ in _INSTANTIABLE} | {
    name: type_
    for name, type_ in vars(builtins).items()
    if isinstance(type_, type) and issubclass(type_, BaseException) and not issubclass(type_, _NEVER_RAISED)
}


# Codecs by type name. Methods of the type take instances apart, since a subclass may override them.
_CODECS: dict[str, _Codec] = {
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
        # Its order may differ from that of the underlying dictionary.
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

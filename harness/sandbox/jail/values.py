"""How values cross between a program and its checks: as built-in types and a few of the standard library's.

A value is written as JSON; what JSON cannot tell apart is an object with one key, the name of the type. An instance of
a subclass of such a type crosses as that type, so no method of the program's own comes along. Whatever is not made of
these types stays where it is, and a reference crosses in its place.
"""

from __future__ import annotations

import collections
import functools
import importlib
import json
from operator import attrgetter
from types import NoneType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Refer = Callable[[object], dict[str, Any]]
    Writer = Callable[[Any, Refer, int], object]

# Nesting of one value; the interpreter's own comparison gives up at about a thousand.
DEEPEST = 200
_SIMPLE = frozenset({bool, str, float, NoneType})
# Longer integers are written in base 16, whose length no interpreter limits.
_SHORT_INTEGER = 1 << 63
# Not as ASCII: two halves of a surrogate pair, each a character of its own, would arrive as one.
_ENCODER = json.JSONEncoder(check_circular=False, ensure_ascii=False, separators=(",", ":"))
_VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}


class UnreadableError(Exception):
    """The other side sent what no honest value can look like."""


def pack(value: object, refer: Refer) -> bytes:
    """A value as bytes.

    Args:
        value: Anything at all.
        refer: Gives the reference for an object that cannot cross, as a dictionary with one key.

    Raises:
        TypeError: ``refer`` has no reference for an object in it.
    """
    return _ENCODER.encode(_written(value, refer, 0)).encode("utf-8", "surrogatepass")


def unpack(content: bytes, resolve: Callable[[str, Any], object]) -> Any:
    """The value that :func:`pack` wrote.

    Args:
        content: Bytes from anywhere.
        resolve: Gives the object for a reference, from its key and what stands under it; a ``KeyError`` or
            ``TypeError`` means that there is none.

    Raises:
        UnreadableError: The bytes are not from an honest :func:`pack`.
    """
    try:
        # Every NaN is an object of its own, or two would be equal as members of lists.
        return _decoder(resolve).decode(content.decode("utf-8", "surrogatepass"))
    except RecursionError:
        # Where exactly the interpreter gives up depends on what it has optimised by then.
        raise UnreadableError("nested too deeply") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, SyntaxError) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}"[:200]) from None


# A conversation uses one from its beginning to its end.
@functools.lru_cache(maxsize=1)
def _decoder(resolve: Callable[[str, Any], object]) -> json.JSONDecoder:
    def read(tagged: dict[str, Any]) -> object:
        ((name, content),) = tagged.items()
        reader = _READERS.get(name)
        return resolve(name, content) if reader is None else reader(content)

    return json.JSONDecoder(object_hook=read, parse_constant=float)


def _written(value: object, refer: Refer, depth: int) -> object:
    kind: type = type(value)
    if kind in _SIMPLE:
        return value
    if depth > DEEPEST:
        return refer(value)
    for base in kind.__mro__:
        writer = _WRITERS.get(base)
        if writer is not None:
            return writer(value, refer, depth + 1)
        name = f"{base.__module__.partition('.')[0]}.{base.__name__}"
        if name in _LIBRARY:
            kinds, take_apart = _LIBRARY[name]
            arguments = [*take_apart(value)]
            if not _fit(arguments, kinds):
                return refer(value)
            return {name: [_written(one, refer, depth + 1) for one in arguments]}
    if isinstance(value, type) and _TYPES.get(value.__name__) is value:
        return {"type": value.__name__}
    return refer(value)


def _integer(value: Any, refer: Refer, depth: int) -> object:
    plain = int.__int__(value)
    return plain if -_SHORT_INTEGER <= plain <= _SHORT_INTEGER else {"int": hex(plain)}


def _tagged(name: str, elements: Callable[[Any], Any]) -> Writer:
    return lambda value, refer, depth: {name: [_written(element, refer, depth) for element in elements(value)]}


def _tuple(value: Any, refer: Refer, depth: int) -> object:
    elements = [_written(element, refer, depth) for element in tuple.__iter__(value)]
    fields = getattr(type(value), "_fields", None)
    return {"tuple": elements} if fields is None else {"named": [type(value).__name__, list(fields), elements]}


def _pairs(value: Any, refer: Refer, depth: int) -> object:
    return {"dict": [[_written(key, refer, depth), _written(one, refer, depth)] for key, one in dict.items(value)]}


# Through the type and not through the value: a subclass may have put something else there.
_WRITERS: dict[type, Writer] = {
    int: _integer,
    str: lambda value, refer, depth: str.__str__(value),
    float: lambda value, refer, depth: float.__float__(value),
    list: lambda value, refer, depth: [_written(element, refer, depth) for element in list.__iter__(value)],
    tuple: _tuple,
    set: _tagged("set", set.__iter__),
    frozenset: _tagged("frozenset", frozenset.__iter__),
    dict: _pairs,
    bytes: lambda value, refer, depth: {"bytes": bytes.hex(value)},
    bytearray: lambda value, refer, depth: {"bytearray": bytearray.hex(value)},
    complex: lambda value, refer, depth: {"complex": [value.real, value.imag]},
    range: lambda value, refer, depth: {"range": [hex(value.start), hex(value.stop), hex(value.step)]},
    **{view: _tagged(name, iter) for view, name in _VIEWS.items()},
    collections.defaultdict: lambda value, refer, depth: {
        "defaultdict": [_written(part, refer, depth) for part in (value.default_factory, dict(value))]
    },
}
_TIME = ("hour", "minute", "second", "microsecond", "tzinfo")
# Types of the standard library: arguments that make an equal instance, and what these are. Others could make a
# constructor do something else, such as take the state of a pickled instance.
_LIBRARY: dict[str, tuple[str, Callable[[Any], Iterable[Any]]]] = {
    "collections.Counter": ("dict", lambda value: [dict(value)]),
    "collections.OrderedDict": ("dict", lambda value: [dict(value)]),
    "collections.deque": ("list int|NoneType", lambda value: [list(value), value.maxlen]),
    "datetime.date": ("int int int", attrgetter("year", "month", "day")),
    "datetime.datetime": (
        "int int int int int int int timezone|NoneType",
        attrgetter("year", "month", "day", *_TIME),
    ),
    "datetime.time": ("int int int int timezone|NoneType", attrgetter(*_TIME)),
    "datetime.timedelta": ("int int int", attrgetter("days", "seconds", "microseconds")),
    "datetime.timezone": ("timedelta", lambda value: [value.utcoffset(None)]),
    "decimal.Decimal": ("str", lambda value: [str(value)]),
    "fractions.Fraction": ("int int", attrgetter("numerator", "denominator")),
    "pathlib.PosixPath": ("str", lambda value: [str(value)]),
    "pathlib.PurePosixPath": ("str", lambda value: [str(value)]),
}
_MOST_FIELDS = 255
_BASES = (int, str, float, list, tuple, dict, set, frozenset, bytes, bytearray, complex)
# Types whose instances cross; any other might do something when it is called.
_TYPES: dict[str, type] = {kind.__name__: kind for kind in (*_BASES, bool, range, NoneType)}


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


def _from_fields(parts: list[Any]) -> object:
    name, fields, elements = parts
    if type(fields) is not list or len(fields) > _MOST_FIELDS or any(type(one) is not str for one in [name, *fields]):
        raise TypeError("names that are no text")
    if not {"count", "index"}.isdisjoint(fields):
        return _from_list(tuple)(elements)
    return _named(name, *fields)._make(_from_list(list)(elements))


@functools.lru_cache(maxsize=64)
def _named(name: str, *fields: str) -> Any:
    return collections.namedtuple(name, fields, rename=True)


def _from_factory(parts: list[Any]) -> object:
    factory, content = parts
    if type(content) is not dict:
        raise TypeError("content that is no dictionary")
    return collections.defaultdict(factory, content)


def _from_list(kind: Callable[[list[Any]], object]) -> Callable[[Any], object]:
    """A reader that takes a list and nothing else: a small message could name a range of any length instead."""

    def read(content: Any) -> object:
        if type(content) is not list:
            raise TypeError("elements that are no list")
        return kind(content)

    return read


def _from_pairs(pairs: list[Any]) -> dict[Any, Any]:
    if any(type(pair) not in (list, tuple) for pair in pairs):
        raise TypeError("pairs that are neither lists nor tuples")
    return dict(pairs)


_READERS: dict[str, Callable[[Any], object]] = {
    "int": lambda text: int(text, 16),
    "tuple": _from_list(tuple),
    "set": _from_list(set),
    "frozenset": _from_list(frozenset),
    "dict": _from_list(_from_pairs),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "complex": _from_list(lambda parts: complex(*parts)),
    "range": _from_list(lambda parts: range(*(int(part, 16) for part in parts))),
    "keys": _from_list(lambda keys: dict.fromkeys(keys).keys()),
    "values": _from_list(lambda values: dict(enumerate(values)).values()),
    "items": _from_list(lambda pairs: _from_pairs(pairs).items()),
    "defaultdict": _from_list(_from_factory),
    "named": _from_list(_from_fields),
    "type": _TYPES.__getitem__,
    **{name: _from_list(functools.partial(_from_library, name)) for name in _LIBRARY},
}

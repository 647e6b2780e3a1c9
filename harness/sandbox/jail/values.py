"""How values cross between a program and its checks: as plain built-in types, and as nothing else.

A value is written as JSON; what JSON cannot tell apart is an object with one key, the name of the type. An instance of
a subclass of a built-in type crosses as that type, so no method of the program's own comes along. Whatever is not
made of built-in types stays where it is, and a reference crosses in its place.
"""

from __future__ import annotations

import functools
import json
from types import NoneType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
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
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError) as error:
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
    writer = _WRITERS.get(kind)
    if writer is None:
        base = next((base for base in _BASES if issubclass(kind, base)), None)
        if base is None:
            return _foreign(value, refer)
        writer = _WRITERS[base]
    return writer(value, refer, depth + 1)


def _foreign(value: Any, refer: Refer) -> object:
    kind: type = type(value)
    if kind.__module__ == "decimal" and kind.__name__ == "Decimal":
        return {"decimal": str(value)}
    if kind.__module__ == "fractions" and kind.__name__ == "Fraction":
        return {"fraction": [hex(value.numerator), hex(value.denominator)]}
    if isinstance(value, type) and _TYPES.get(value.__name__) is value:
        return {"type": value.__name__}
    return refer(value)


def _integer(value: Any, refer: Refer, depth: int) -> object:
    plain = int.__int__(value)
    return plain if -_SHORT_INTEGER <= plain <= _SHORT_INTEGER else {"int": hex(plain)}


def _tagged(name: str, elements: Callable[[Any], Any]) -> Writer:
    return lambda value, refer, depth: {name: [_written(element, refer, depth) for element in elements(value)]}


def _pairs(value: Any, refer: Refer, depth: int) -> object:
    return {"dict": [[_written(key, refer, depth), _written(one, refer, depth)] for key, one in dict.items(value)]}


# Through the type and not through the value: a subclass may have put something else there.
_WRITERS: dict[type, Writer] = {
    int: _integer,
    str: lambda value, refer, depth: str.__str__(value),
    float: lambda value, refer, depth: float.__float__(value),
    list: lambda value, refer, depth: [_written(element, refer, depth) for element in list.__iter__(value)],
    tuple: _tagged("tuple", tuple.__iter__),
    set: _tagged("set", set.__iter__),
    frozenset: _tagged("frozenset", frozenset.__iter__),
    dict: _pairs,
    bytes: lambda value, refer, depth: {"bytes": bytes.hex(value)},
    bytearray: lambda value, refer, depth: {"bytearray": bytearray.hex(value)},
    complex: lambda value, refer, depth: {"complex": [value.real, value.imag]},
    range: lambda value, refer, depth: {"range": [hex(value.start), hex(value.stop), hex(value.step)]},
    **{view: _tagged(name, iter) for view, name in _VIEWS.items()},
}
_BASES = (int, str, float, list, tuple, dict, set, frozenset, bytes, bytearray, complex)
# Types whose instances cross; any other might do something when it is called.
_TYPES: dict[str, type] = {kind.__name__: kind for kind in (*_BASES, bool, range, NoneType)}


def _decimal(text: str) -> object:
    # Loaded where the first one arrives: few programs return any.
    from decimal import Decimal

    return Decimal(text)


def _fraction(parts: list[str]) -> object:
    from fractions import Fraction

    return Fraction(*(int(part, 16) for part in parts))


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
    "decimal": _decimal,
    "fraction": _from_list(_fraction),
    "type": _TYPES.__getitem__,
}

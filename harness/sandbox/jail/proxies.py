"""Stand-ins, for the checks, of objects that stay with the program."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from .failures import RemoteStopIteration
from .protocol import BINARY, ORDERINGS, UNARY

# Types whose value crosses even if an instance of a subclass stays with the program.
_EXTENDABLE = (int, str, float, bytes, tuple)


def _operation(name: str) -> Any:
    return lambda remote, *operands: remote._peer.ask(name, remote, *operands)


def _description(operation: str) -> Any:
    def describe(remote: Remote) -> str:
        is_silent = remote._peer.is_silent
        return f"<{remote._kind} of the program>" if is_silent else str(remote._peer.ask(operation, remote))

    return describe


class Remote:
    """An object that stays with the program, which decides all but comparison: that would show what checks expect."""

    __slots__ = ("_kind", "_number", "_peer", "_record")
    _peer: Any  # the :class:`Peer` that has it
    _number: int
    _kind: str
    _record: int | None  # number of a class that defines equality

    def __init__(self, peer: Any, number: int, kind: str, record: int | None = None) -> None:
        for name, value in (("_peer", peer), ("_number", number), ("_kind", kind), ("_record", record)):
            object.__setattr__(self, name, value)

    def __call__(self, *arguments: object, **keywords: object) -> Any:  # noqa: D102
        return self._peer.call(self, arguments, keywords)

    __getattr__, __setattr__ = _operation("attribute"), _operation("set_attribute")
    __getitem__, __setitem__, __delitem__ = _operation("item"), _operation("set_item"), _operation("delete_item")

    def __iter__(self) -> Iterator[Any]:
        iterator = self._peer.ask("iterate", self)
        with contextlib.suppress(RemoteStopIteration):
            while True:
                yield self._peer.ask("next", iterator)

    def __next__(self) -> Any:
        try:
            return self._peer.ask("next", self)
        except RemoteStopIteration:
            raise StopIteration from None

    def __len__(self) -> int:
        return int(self._peer.ask("length", self))

    def __bool__(self) -> bool:
        return self._peer.ask("truth", self) is True

    __str__, __repr__ = _description("text"), _description("representation")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remote) or other._number == self._number:
            return isinstance(other, Remote)
        if self._record is None or other._record != self._record:
            return False
        own_fields, other_fields = (self._peer.ask("fields", record) for record in (self, other))
        # Without attributes there is only the word of the program.
        is_equal = own_fields is not None and bool(own_fields == other_fields)
        if (self._peer.ask("eq", self, other) is True) is not is_equal:
            raise ValueError(f"whether a {self._kind} is equal to another: its == and its attributes do not agree")
        return is_equal

    def __hash__(self) -> int:
        return hash(self._number if self._record is None else self._record)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, Remote | Extended) and self._peer.ask("instance", instance, self) is True

    def __reduce__(self) -> str:
        raise TypeError(f"a {self._kind} of the program cannot be copied")


def _binary_operator(name: str) -> Any:
    """Return the method that lets the program apply an operator; NotImplemented where the other operand is no proxy."""

    def ask(remote: Remote, other: object) -> Any:
        return remote._peer.ask(name, remote, other) if isinstance(other, Remote) else NotImplemented

    return ask


def _ordering(name: str) -> Any:
    """Return the method that lets the program compare; ValueError if it finds an object both less and greater."""
    opposite = "gt" if name in ("lt", "le") else "lt"

    def ask(remote: Remote, other: object) -> Any:
        if not isinstance(other, Remote):
            return NotImplemented
        holds = remote._peer.ask(name, remote, other) is True
        if holds and remote._peer.ask(opposite, remote, other) is True:
            raise ValueError(f"a {remote._kind} of the program is less and greater than another")
        return holds

    return ask


for _names, _method in ((UNARY, _operation), (BINARY, _binary_operator), (ORDERINGS, _ordering)):
    for _name in _names:
        setattr(Remote, f"__{_name.strip('_')}__", _method(_name))


class Extended:
    """Instance of a program's class that extends a type: its value is here, all that it has besides is not."""

    _remote: Remote

    def __getattr__(self, name: str) -> Any:
        if name == "_remote":
            raise AttributeError(name)
        return getattr(self._remote, name)

    def __str__(self) -> str:
        return str(self._remote)

    def __repr__(self) -> str:
        return repr(self._remote)

    def __copy__(self, *_: object) -> Extended:
        return self

    __deepcopy__ = __copy__

    def __reduce__(self) -> str:
        return self._remote.__reduce__()


def extend_value(remote: Remote, name: str, value: Any) -> Extended:
    """Return a value of a plain type with the attributes of an object; raise TypeError for any other value."""
    base = next((base for base in type(value).__mro__ if base in _EXTENDABLE), None)
    if base is None or isinstance(value, bool | Extended):
        raise TypeError("no value that can be extended")
    kind: Any = type(value)
    extended: Any = base.__new__(_extended_class(name, kind), value)
    extended.__dict__["_remote"] = remote
    return extended


@functools.lru_cache(maxsize=64)
def _extended_class(name: str, base: Any) -> Any:
    # A named tuple of the program makes its own copies.
    members = {"_replace": property(lambda value: value._remote._replace)} if hasattr(base, "_fields") else {}
    return type(name, (Extended, base), members)

"""Stand-ins, for the checks, of objects that stay with the program."""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

from . import values
from .candidate import BUILT_IN, ENDED, EXCEPTION, RAISED, REFERENCE, UNREADABLE, VALUE, is_built_in
from .values import LONGEST, Channel, TooLongError

# Their meaning to the interpreter is not "something went wrong": inside a check they could end a loop early.
_NEVER_RAISED = (StopIteration, StopAsyncIteration, GeneratorExit)
# What these raise says how a test continues: skipped, stopped.
_TESTING = frozenset({"bdb", "doctest", "pdb", "test", "unittest"})
_LONGEST_NAME = 100


class ProgramError(Exception):
    """Stands for an exception that the checks cannot raise themselves."""


class Peer:
    """The program, as the checks see it: something that answers questions with plain values."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._exceptions: dict[int, _Caught] = {}
        # Set where nothing is to be asked any more, so that a failure can be described.
        self.is_silent = False
        # Why the connection is of no more use; checks may have caught it as if the program had raised it.
        self.failure: Exception | None = None

    def ask(self, operation: str, *operands: object) -> Any:
        """Ask the program to do something; raises what it raised, or what ends the connection (see ``failure``)."""
        request = values.pack([operation, *operands], _reference)
        if len(request) > LONGEST:
            raise ValueError(f"the checks pass a value of {len(request)} bytes")
        try:
            self._channel.send(request)
            return self.reply()
        except (EOFError, OSError, TooLongError, values.UnreadableError) as error:
            if told(error) is None:
                self.failure = self.failure or error
            raise

    def reply(self) -> Any:
        """Return what the program says next; raises as :meth:`ask`."""
        match values.unpack(self._channel.receive(), self._referred):
            case [str(kind), value] if kind == VALUE:
                return value
            case [str(kind), error, str(text), str()] if kind in (RAISED, UNREADABLE, ENDED):
                raise _End if kind == ENDED else _raised(kind, error, text)
        raise values.UnreadableError("a reply of no known form")

    def _referred(self, key: str, content: Any) -> Remote | _Caught:
        number, kind, *more = content
        number, kind = int(number), str(kind)[:_LONGEST_NAME]
        if key == REFERENCE:
            return Remote(self, number, kind, *map(int, more))
        if key != EXCEPTION:
            raise KeyError(key)
        if number not in self._exceptions:
            bases, module, name = more
            kinds = tuple(map(_usable, bases)) or (ProgramError,)
            known: dict[str, Any] = {"_remote": Remote(self, number, "type")}
            known["__str__"] = lambda error: str(error.__dict__["_said"])
            found = _of_library(module, name)
            # What its own bases say holds whether or not the module is loaded by now.
            if found is not None and _built_in_bases(found) == _built_in_bases(*kinds):
                kinds = (found,)
                # Arguments as they are: what the class itself makes of them has been made by the program.
                known["__init__"] = next(filter(is_built_in, found.__mro__)).__init__  # type: ignore[misc]
            self._exceptions[number] = _Caught(kind, kinds, known)
        return self._exceptions[number]


class _End(Exception):  # noqa: N818  an end is no error
    """An iterator of the program has no more."""


class _Told(Exception):  # noqa: N818  carried along, never raised
    """How the program's reply started, and the exception and its place in words."""


def told(error: BaseException) -> tuple[str, str] | None:
    """Return what the program said of its failure, kind and text, where an exception came from it."""
    found = error.__cause__
    return found.args if isinstance(found, _Told) else None


def _raised(kind: str, content: Any, text: str) -> BaseException:
    """The exception of a reply, which gives the name of a built-in one, or class, arguments, attributes and text."""
    match [content, [text], {}, text] if isinstance(content, str) else content:
        case [found, list(arguments), dict(attributes), str(said)]:
            pass
        case _:
            raise values.UnreadableError("an exception of no known form")
    try:
        error: BaseException = type.__call__(_usable(found), *arguments)
    except Exception:
        # Such as UnicodeDecodeError, which wants five arguments.
        error = ProgramError(text)
    error.__dict__.update(attributes, _said=said)
    error.__cause__ = _Told(kind, text)
    return error


def _usable(kind: object) -> type[BaseException]:
    found: Any = vars(builtins).get(kind) if isinstance(kind, str) else kind
    known = isinstance(kind, str | _Caught) and isinstance(found, type) and issubclass(found, BaseException)
    return found if known and not issubclass(found, _NEVER_RAISED) else ProgramError


def _of_library(module: object, name: object) -> type[Exception] | None:
    """The loaded exception class of the library that a program names, if it says only that something went wrong."""
    if not isinstance(module, str) or not isinstance(name, str) or name.startswith("_"):
        return None
    package = module.partition(".")[0]
    if package not in sys.stdlib_module_names or package in _TESTING or module not in sys.modules:
        return None
    found: Any = vars(sys.modules[module]).get(name)
    known = type(found) is type and (found.__module__, found.__qualname__) == (module, name)
    return found if known and issubclass(found, Exception) and not issubclass(found, _NEVER_RAISED) else None


def _built_in_bases(*kinds: type) -> set[type]:
    return {base for kind in kinds for base in kind.__mro__ if is_built_in(base)}


class _Caught(type):
    """A class of exceptions that stays with the program, another one for every program, so none the checks raise."""

    _remote: Remote

    def __call__(cls, *arguments: object, **keywords: object) -> Any:
        return cls._remote(*arguments, **keywords)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._remote, name)


def _asking(operation: str) -> Any:
    return lambda remote, *operands: remote._peer.ask(operation, remote, *operands)


class Remote:
    """An object that stays with the program, which decides all but comparison: that would show what checks expect."""

    __slots__ = ("_kind", "_number", "_peer", "_record")
    _peer: Peer
    _number: int
    _kind: str
    _record: int | None

    def __init__(self, peer: Peer, number: int, kind: str, record: int | None = None) -> None:
        for name, value in (("_peer", peer), ("_number", number), ("_kind", kind), ("_record", record)):
            object.__setattr__(self, name, value)

    def __call__(self, *arguments: object, **keywords: object) -> Any:  # noqa: D102
        return self._peer.ask("call", self, list(arguments), keywords)

    __getattr__, __setattr__ = _asking("attribute"), _asking("set_attribute")
    __getitem__, __setitem__ = _asking("item"), _asking("set_item")

    def __iter__(self) -> Iterator[Any]:
        iterator = self._peer.ask("iterate", self)
        with contextlib.suppress(_End):
            while True:
                yield self._peer.ask("next", iterator)

    def __next__(self) -> Any:
        try:
            return self._peer.ask("next", self)
        except _End:
            raise StopIteration from None

    def __len__(self) -> int:
        return int(self._peer.ask("length", self))

    def __bool__(self) -> bool:
        return self._peer.ask("truth", self) is True

    def __str__(self) -> str:
        return repr(self) if self._peer.is_silent else str(self._peer.ask("text", self))

    def __repr__(self) -> str:
        return f"<{self._kind} of the program>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Remote) or other._number == self._number:
            return isinstance(other, Remote)
        if self._record is None or other._record != self._record:
            return False
        return bool(self._peer.ask("fields", self) == self._peer.ask("fields", other))

    def __hash__(self) -> int:
        return hash(self._number if self._record is None else self._record)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, Remote) and self._peer.ask("instance", instance, self) is True

    def __reduce__(self) -> str:
        raise TypeError(f"a {self._kind} of the program cannot be copied")


def in_place(function: Any) -> Any:
    """Return the function; if it is the program's, what it changes in lists and the like is seen by who passed them."""
    return functools.partial(_call_in_place, function) if isinstance(function, Remote) else function


def _call_in_place(function: Remote, /, *arguments: Any, **keywords: Any) -> Any:
    passed = [*arguments, *keywords.values()]
    match function._peer.ask("call_in_place", function, list(arguments), keywords):
        case [result, list(changed)] if len(changed) == len(passed):
            pass
        case _:
            raise values.UnreadableError("arguments of no known form")
    for mine, theirs in zip(passed, changed, strict=True):
        if type(mine) is not type(theirs) or values.pack(mine, _reference) == values.pack(theirs, _reference):
            continue
        if isinstance(mine, list | bytearray | deque | dict | set):
            mine.clear()
            (mine.update if isinstance(mine, dict | set) else mine.extend)(theirs)
    return result


def _reference(value: object) -> dict[str, Any]:
    if isinstance(value, Remote | _Caught):
        return {REFERENCE: (value if isinstance(value, Remote) else value._remote)._number}
    name = getattr(value, "__name__", "")
    if isinstance(name, str) and vars(builtins).get(name) is value:
        return {BUILT_IN: name}
    raise TypeError(f"the checks pass a {type(value).__name__}, which cannot cross to the program")

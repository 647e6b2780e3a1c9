"""The program, as the checks see it: something that answers questions with plain values and stand-ins."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Any

from . import values
from .candidate import (
    BUILT_IN,
    CALL_BACK,
    ENDED,
    EXCEPTION,
    EXTENDED,
    FUNCTION,
    ITERATOR,
    RAISED,
    REFERENCE,
    UNREADABLE,
    VALUE,
    is_built_in,
)
from .failures import Caught, End, class_of, raised, told
from .proxies import Extended, Remote, extended
from .values import LONGEST, MUTABLE, Channel, TooLongError

_LONGEST_NAME = 100


class Peer:
    """The connection to one program, with what the checks have of it and what it has of theirs."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        # One stand-in an object, so that two are the same where the objects are.
        self._objects: dict[int, Remote] = {}
        self._extended: dict[int, Extended] = {}
        self._exceptions: dict[int, Caught] = {}
        # Functions of the checks that the program may call, by number.
        self._lent: list[Any] = []
        # Arguments and what the program made of them, while changes are wanted.
        self._changes: list[tuple[Any, Any]] | None = None
        # What came with the last reply: the places of arguments that the result is, or that have changed, and how.
        self._notes: list[Any] = []
        # By identity: results that were arguments, for the program, and those arguments.
        self._originals: dict[int, tuple[object, object]] = {}
        self.assertions_held = 0
        # Set where nothing is to be asked any more, so that a failure can be described.
        self.is_silent = False
        # Why there is nothing more to learn; checks may have caught it as if the program had raised it.
        self.failure: Exception | None = None

    def ask(self, operation: str, *operands: object) -> Any:
        """Ask the program to do something; raises what it raised, or what ends the connection (see ``failure``)."""
        request = self._packed([operation, *operands])
        try:
            self._channel.send(request)
            return self.reply()
        except (EOFError, OSError, TooLongError, values.UnreadableError) as error:
            if told(error) is None:
                self.failure = self.failure or error
            raise

    def reply(self) -> Any:
        """Return what the program says next, whose calls of the checks' functions are made; raises as :meth:`ask`."""
        while True:
            match values.unpack(self._channel.receive(), self._referred):
                case [str(kind), value, *notes] if kind == VALUE:
                    self._notes = notes
                    return value
                case [str(kind), int(number), list(arguments), dict(keywords)] if kind == CALL_BACK:
                    if not 0 <= number < len(self._lent):
                        raise values.UnreadableError("a call of nothing")
                    self._channel.send(self._called(self._lent[number], arguments, keywords))
                case [str(kind), error, str(text), str()] if kind in (RAISED, UNREADABLE, ENDED):
                    raise End if kind == ENDED else raised(kind, error, text)
                case _:
                    raise values.UnreadableError("a reply of no known form")

    def call(self, function: Remote, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Call a function of the program with copies of the arguments, and note what it changes in them."""
        result = self.ask("call", function, [*arguments], keywords, self._changes is not None)
        for place, *content in self._notes:
            mine, theirs = [*arguments, *keywords.values()][place], (content or [result])[0]
            if type(mine) is not type(theirs) or not isinstance(mine, MUTABLE):
                continue
            if not content:
                self._originals[id(result)] = (result, self._original(mine))
            elif self._changes is not None:
                self._changes.append((mine, theirs))
        return result

    def begin_assertion(self) -> None:
        """Note from now on what calls change in lists and the like."""
        self._changes = []

    def hold_assertion(self) -> None:
        """Count an assertion that held; only now is seen what its calls changed, so not by what it compares with."""
        self.assertions_held += 1
        self._apply_changes()

    def in_place(self, function: Any) -> Any:
        """Return the function; if it is the program's, what it changes in lists and the like is seen at once."""
        if not isinstance(function, Remote):
            return function

        def call(*arguments: object, **keywords: object) -> object:
            self._changes = []
            result = function(*arguments, **keywords)
            self._apply_changes()
            return result

        return call

    def is_same(self, one: object, other: object) -> bool:
        """Return whether two are the same object, for the checks or for the program."""
        return self._original(one) is self._original(other)

    def _apply_changes(self) -> None:
        for mine, theirs in self._changes or ():
            mine.clear()
            (mine.update if isinstance(mine, dict | set) else mine.extend)(theirs)
        self._changes = None

    def _original(self, value: object) -> object:
        return self._originals.get(id(value), (value, value))[1]

    def _called(self, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> bytes:
        try:
            return self._packed([VALUE, function(*arguments, **keywords)])
        except Exception as error:
            if isinstance(error, AssertionError) and told(error) is None:
                # Whatever the program makes of it.
                self.failure = self.failure or error
            if self.failure is not None:
                raise
            nearest = next(base for base in type(error).__mro__ if isinstance(base, Caught) or is_built_in(base))
            return self._packed([RAISED, nearest, [*error.args]])

    def _packed(self, message: list[object]) -> bytes:
        packed = values.pack(message, self._reference, _extended_reference)
        if len(packed) > LONGEST:
            raise ValueError(f"the checks pass a value of {len(packed)} bytes")
        return packed

    def _reference(self, value: Any) -> dict[str, Any]:
        if isinstance(value, Remote | Caught):
            return {REFERENCE: (value if isinstance(value, Remote) else value._remote)._number}
        name = getattr(value, "__name__", type(value).__name__)
        if isinstance(name, str) and vars(builtins).get(name) is value:
            return {BUILT_IN: name}
        if isinstance(value, Iterator):
            return {ITERATOR: [self._lend(value.__next__), name]}
        if callable(value):
            return {FUNCTION: [self._lend(value), name]}
        raise TypeError(f"the checks pass a {type(value).__name__}, which cannot cross to the program")

    def _lend(self, function: Any) -> int:
        if function not in self._lent:
            self._lent.append(function)
        return self._lent.index(function)

    def _referred(self, key: str, content: Any) -> Remote | Extended | Caught:
        number, kind, *more = content
        number, kind = int(number), str(kind)[:_LONGEST_NAME]
        if key == REFERENCE:
            return self._objects.setdefault(number, Remote(self, number, kind, *map(int, more)))
        if key == EXTENDED:
            if number not in self._extended:
                self._extended[number] = extended(Remote(self, number, kind), kind, *more)
            return self._extended[number]
        if key != EXCEPTION:
            raise KeyError(key)
        if number not in self._exceptions:
            self._exceptions[number] = class_of(Remote(self, number, "type"), kind, *more)
        return self._exceptions[number]


def _extended_reference(value: object, content: object) -> object:
    return {REFERENCE: value._remote._number} if isinstance(value, Extended) else content

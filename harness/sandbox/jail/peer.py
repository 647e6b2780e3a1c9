"""The program, as the checks see it: something that answers with plain values and stand-ins."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Any

from . import protocol, values
from .candidate import is_built_in
from .failures import RemoteException, RemoteStopIteration, as_exception, exception_class, remote_failure
from .protocol import LONGEST, RAISED, REFERENCE, VALUE, Channel, TooLongError, UnreadableError
from .proxies import Extended, Remote, extend_value
from .values import MUTABLE

_LONGEST_NAME = 100


class Peer:
    """Connection to one program, with the objects of each side that the other one refers to."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        # One stand-in for each object, so that ``is`` holds as in the program.
        self._objects: dict[int, Remote] = {}
        self._extended: dict[int, Extended] = {}
        self._exceptions: dict[int, RemoteException] = {}
        # Functions of the checks that the program may call, by number.
        self._exported: list[Any] = []
        # Arguments and what the program made of them, while changes are wanted.
        self._changes: list[tuple[Any, Any]] | None = None
        # What came with the last reply: the places of arguments that the result is, or that have changed, and how.
        self._notes: list[Any] = []
        # By identity: results that were arguments, for the program, and those arguments.
        self._originals: dict[int, tuple[object, object]] = {}
        self.assertions_held = 0
        # Set to describe a failure without asking the program any more.
        self.is_silent = False
        # What ended the connection; checks may have caught it like an exception of the program.
        self.failure: Exception | None = None

    def ask(self, operation: str, *operands: object) -> Any:
        """Have the program do something; raise what it raised, or what ends the connection (see ``failure``)."""
        request = self._pack([operation, *operands])
        try:
            self._channel.send(request)
            return self.receive_reply()
        except (EOFError, OSError, TooLongError, UnreadableError) as error:
            if remote_failure(error) is None:
                self.failure = self.failure or error
            raise

    def receive_reply(self) -> Any:
        """Return the program's next value, after its calls of the checks' functions; raise as :meth:`ask` does."""
        while True:
            match values.unpack(self._channel.receive(), self._resolve):
                case [str(kind), value, *notes] if kind == VALUE:
                    self._notes = notes
                    return value
                case [str(kind), int(number), list(arguments), dict(keywords)] if kind == protocol.CALL_BACK:
                    if not 0 <= number < len(self._exported):
                        raise UnreadableError("a call of nothing")
                    self._channel.send(self._call_exported(self._exported[number], arguments, keywords))
                case [str(kind), error, str(text), str()] if kind in (RAISED, protocol.UNREADABLE, protocol.EXHAUSTED):
                    raise RemoteStopIteration if kind == protocol.EXHAUSTED else as_exception(kind, error, text)
                case _:
                    raise UnreadableError("a reply of no known form")

    def call(self, function: Remote, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Call a function of the program with copies of the arguments, and note what it changes in them."""
        result = self.ask("call", function, [*arguments], keywords, self._changes is not None)
        for place, *content in self._notes:
            argument, changed = [*arguments, *keywords.values()][place], (content or [result])[0]
            if type(argument) is not type(changed) or not isinstance(argument, MUTABLE):
                continue
            if not content:
                self._originals[id(result)] = (result, self._original(argument))
            elif self._changes is not None:
                self._changes.append((argument, changed))
        return result

    def begin_assertion(self) -> None:
        """Note from now on what calls change in lists and the like."""
        self._changes = []

    def end_assertion(self) -> None:
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

    def is_same(self, left: object, right: object) -> bool:
        """Return whether two are the same object, for the checks or for the program."""
        return self._original(left) is self._original(right)

    def _apply_changes(self) -> None:
        for argument, changed in self._changes or ():
            argument.clear()
            (argument.update if isinstance(argument, dict | set) else argument.extend)(changed)
        self._changes = None

    def _original(self, value: object) -> object:
        return self._originals.get(id(value), (value, value))[1]

    def _call_exported(self, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> bytes:
        try:
            return self._pack([VALUE, function(*arguments, **keywords)])
        except Exception as error:
            if isinstance(error, AssertionError) and remote_failure(error) is None:
                # It decides, whatever the program makes of it.
                self.failure = self.failure or error
            if self.failure is not None:
                raise
            bases = type(error).__mro__
            nearest = next(base for base in bases if isinstance(base, RemoteException) or is_built_in(base))
            return self._pack([RAISED, nearest, [*error.args]])

    def _pack(self, message: list[object]) -> bytes:
        packed = values.pack(message, self._refer, _refer_to_extended)
        if len(packed) > LONGEST:
            raise ValueError(f"the checks pass a value of {len(packed)} bytes")
        return packed

    def _refer(self, value: Any) -> dict[str, Any]:
        if isinstance(value, Remote | RemoteException):
            return {REFERENCE: (value if isinstance(value, Remote) else value._remote)._number}
        name = getattr(value, "__name__", type(value).__name__)
        if isinstance(name, str) and vars(builtins).get(name) is value:
            return {protocol.BUILT_IN: name}
        if isinstance(value, Iterator):
            return {protocol.ITERATOR: [self._export(value.__next__), name]}
        if callable(value):
            return {protocol.FUNCTION: [self._export(value), name]}
        raise TypeError(f"the checks pass a {type(value).__name__}, which cannot cross to the program")

    def _export(self, function: Any) -> int:
        if function not in self._exported:
            self._exported.append(function)
        return self._exported.index(function)

    def _resolve(self, key: str, content: Any) -> Remote | Extended | RemoteException:
        number, kind, *more = content
        number, kind = int(number), str(kind)[:_LONGEST_NAME]
        if key == REFERENCE:
            return self._objects.setdefault(number, Remote(self, number, kind, *map(int, more)))
        if key == protocol.EXTENDED:
            if number not in self._extended:
                self._extended[number] = extend_value(Remote(self, number, kind), kind, *more)
            return self._extended[number]
        if key != protocol.EXCEPTION_CLASS:
            raise KeyError(key)
        if number not in self._exceptions:
            self._exceptions[number] = exception_class(Remote(self, number, "type"), kind, *more)
        return self._exceptions[number]


def _refer_to_extended(value: object, content: object) -> object:
    return {REFERENCE: value._remote._number} if isinstance(value, Extended) else content

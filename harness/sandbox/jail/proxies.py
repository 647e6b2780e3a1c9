"""What the checks hold in place of objects that stay with the program."""

from __future__ import annotations

import builtins

from . import values
from .candidate import BUILT_IN, ENDED, RAISED, REFERENCE, UNREADABLE, VALUE
from .channel import LONGEST, Channel, TooLongError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Their meaning to the interpreter is not "something went wrong": inside a check they could end a loop early.
_NEVER_RAISED = (StopIteration, StopAsyncIteration, GeneratorExit)


class ProgramError(Exception):
    """Stands for an exception that the checks cannot raise themselves."""


class Peer:
    """The program, as the checks see it: something that answers questions with plain values.

    A question never contains what the checks expect: operators and comparisons are not among them.

    Attributes:
        is_silent: Set where nothing is to be asked any more, so that a failure can be described.
        failure: Why the connection is of no more use; checks may have caught it as if the program had raised it.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.is_silent = False
        self.failure: Exception | None = None

    def ask(self, operation: str, *operands: object) -> Any:
        """Asks the program to do something.

        Raises:
            Exception: Whatever the program raised, as the nearest built-in class; ``told`` of it says what and where.
            EOFError: The program has ended.
            channel.TooLongError: The reply is too long.
            values.UnreadableError: The reply is no value.
            ValueError: The operands are too long.
        """
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
        """Waits for what the program says next; raises as :meth:`ask`."""
        received = values.unpack(self._channel.receive(), self._referred)
        match received:
            case [str(kind), value] if kind == VALUE:
                return value
            case [str(kind), str(name), str(text), str()] if kind in (RAISED, UNREADABLE, ENDED):
                raise _End if kind == ENDED else _raised(kind, name, text)
        raise values.UnreadableError("a reply of no known form")

    def _referred(self, key: str, content: Any) -> Remote:
        if key != REFERENCE:
            raise KeyError(key)
        number, kind = content
        return Remote(self, int(number), str(kind)[:100])


class _End(Exception):  # noqa: N818  an end is no error
    """An iterator of the program has no more."""


class Told(Exception):  # noqa: N818  carried along, never raised
    """What the program said of its failure.

    Attributes:
        kind: How its reply started.
        text: The exception and its place, for people.
    """

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text


def told(error: BaseException) -> Told | None:
    """What the program said, where an exception came from it."""
    found = error.__cause__
    return found if isinstance(found, Told) else None


def _raised(kind: str, name: str, text: str) -> BaseException:
    found = getattr(builtins, name, None)
    usable = isinstance(found, type) and issubclass(found, BaseException) and not issubclass(found, _NEVER_RAISED)
    try:
        error: BaseException = found(text) if found is not None and usable else ProgramError(text)
    except TypeError:
        # Such as UnicodeDecodeError, which wants five arguments.
        error = ProgramError(text)
    error.__cause__ = Told(kind, text)
    return error


class Remote:
    """An object that stays with the program; equal to itself only.

    Calls, attributes, items, iteration, length, truth and text are the program's to decide, as they are where it
    returns a value. Comparison is not: the other side of it may be what the checks expect.
    """

    __slots__ = ("_kind", "_number", "_peer")

    def __init__(self, peer: Peer, number: int, kind: str) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_kind", kind)

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        """Calls the program's function; raises as :meth:`Peer.ask`."""
        return self._peer.ask("call", self, list(arguments), keywords)

    def __getattr__(self, name: str) -> Any:
        return self._peer.ask("attribute", self, name)

    def __setattr__(self, name: str, value: object) -> None:
        self._peer.ask("set_attribute", self, name, value)

    def __getitem__(self, key: object) -> Any:
        return self._peer.ask("item", self, key)

    def __setitem__(self, key: object, value: object) -> None:
        self._peer.ask("set_item", self, key, value)

    def __iter__(self) -> Iterator[Any]:
        iterator = self._peer.ask("iterate", self)
        while True:
            try:
                yield self._peer.ask("next", iterator)
            except _End:
                return

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
        return isinstance(other, Remote) and other._number == self._number

    def __hash__(self) -> int:
        return hash(self._number)

    def __reduce__(self) -> str:
        raise TypeError(f"a {self._kind} of the program cannot be copied")


def _reference(value: object) -> dict[str, Any]:
    if isinstance(value, Remote):
        return {REFERENCE: value._number}
    name = getattr(value, "__name__", "")
    if isinstance(name, str) and vars(builtins).get(name) is value:
        return {BUILT_IN: name}
    raise TypeError(f"the checks pass a {type(value).__name__}, which cannot cross to the program")

"""The program as its checks see it: plain values, and references to objects that stay in the program's process."""

from __future__ import annotations

import functools
from typing import Any

from . import protocol, values
from .protocol import LONGEST, Channel, NotPlainError, TooLongError, UnreadableError

_LONGEST_NAME = 100
# Operations on an object that the program performs. None has an operand that may be an expected value.
_ASKED = "getattr setattr getitem setitem delitem len bool iter str repr neg pos abs invert instancecheck"
# Operations that would show the program a value of the checks, or let it decide a comparison.
_REFUSED = """
    lt le gt ge add radd sub rsub mul rmul matmul rmatmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod
    pow rpow lshift rlshift rshift rrshift and rand or ror xor rxor round index int float complex enter exit
    await aiter delattr reduce_ex"""


class ProgramError(Exception):
    """Stands in for an exception that the checks cannot construct."""


class ProgramFailure(Exception):  # noqa: N818  a cause, never raised
    """First word of the program's reply, and one line about the exception and where it was raised."""


class RemoteProgram:
    """A program in another process, which performs the operations of its checks."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        # One reference per object, by number, so that ``is`` works.
        self._references: dict[int, Any] = {}
        self._extended: dict[int, Extended] = {}
        # Arguments that calls of the present statement have changed, with their new values.
        self._changes: list[tuple[Any, Any]] = []
        self.assertions_held = 0
        # Set before a failure is described, so that the program is not asked any more.
        self.is_silent = False
        # The error that ended the connection; the checks may have caught it.
        self.failure: Exception | None = None

    def ask(self, operation: str, *operands: Any) -> Any:
        """Request an operation. Raises the program's exception or the error that ends the connection (``failure``)."""
        request = values.pack([operation, *operands], _refer)
        try:
            if len(request) > LONGEST:
                raise TooLongError(f"{len(request)} bytes of arguments")
            self._channel.send(request)
            return self.receive_reply()
        except (EOFError, OSError, TooLongError, UnreadableError) as error:
            if not isinstance(error.__cause__, ProgramFailure):
                self.failure = self.failure or error
            raise

    def receive_reply(self) -> Any:
        """Return the program's next value. Raises like :meth:`ask`."""
        match values.unpack(self._channel.receive(), self._resolve):
            case [protocol.VALUE, value]:
                return value
            case [protocol.TOO_LONG, str(reason)]:
                raise TooLongError(reason)
            # Not a subclass of str, which could not be reported.
            case [
                protocol.RAISED | protocol.UNREADABLE as word,
                type_,
                list(arguments),
                dict(attributes),
                text,
            ] if type(text) is str:
                raise _exception(word, type_, arguments, attributes, text)
            case _:
                raise UnreadableError("a reply of no known form")

    def call(self, function: Reference, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call a function of the program with copies of the arguments. Record the changes that it makes to them."""
        match self.ask("call", function, [*arguments], keywords):
            case [result, list(changes)]:
                passed = dict(enumerate([*arguments, *keywords.values()]))
                for change in changes:
                    match change:
                        case [int(index), changed] if index in passed:
                            self._changes.append((passed[index], changed))
                        case _:
                            raise UnreadableError("a change of no argument")
                return result
            case _:
                raise UnreadableError("a reply of no known form")

    def begin_statement(self) -> None:
        self._changes = []

    def end_statement(self) -> None:
        """Apply the recorded changes to mutable arguments, after all comparisons of the statement."""
        changes, self._changes = self._changes, []  # statements of a called function end before its caller's
        for argument, changed in changes:
            if type(argument) is type(changed) and isinstance(argument, values.MUTABLE):
                argument.clear()
                (argument.update if isinstance(argument, dict | set) else argument.extend)(changed)

    def end_assertion(self) -> None:
        self.assertions_held += 1
        self.end_statement()

    def _resolve(self, key: str, parts: Any) -> Any:
        if key == protocol.SUBCLASS:
            reference, value = parts
            extended = _extended(reference, value)
            # A container may have changed since it was sent before.
            is_constant = isinstance(value, int | float | str | bytes)
            return self._extended.setdefault(reference._number, extended) if is_constant else extended
        number, name, detail = parts
        number, name = int(number), str(name)[:_LONGEST_NAME]
        if number not in self._references:
            if key == protocol.EXCEPTION_CLASS:
                self._references[number] = type(name, tuple(map(_raisable, detail)), {"_number": number})
            elif key == protocol.REFERENCE:
                self._references[number] = Reference(self, number, name, None if detail is None else int(detail))
        return self._references[number]


class Reference:
    """An object of the program. Equality is decided here. The program performs only calls and ``_ASKED`` operations."""

    __slots__ = ("_class", "_name", "_number", "_program")
    _program: RemoteProgram
    _number: int
    _name: str
    _class: int | None  # the number of its class, if the class defines equality

    def __init__(self, program: RemoteProgram, number: int, name: str, class_number: int | None) -> None:
        # Not ``setattr``, which the program performs.
        for slot, value in (("_program", program), ("_number", number), ("_name", name), ("_class", class_number)):
            object.__setattr__(self, slot, value)

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        return self._program.call(self, arguments, keywords)

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if not isinstance(other, Reference):
            raise NotPlainError(f"a {self._name} of the program is compared with a value")
        is_equal = False
        if self._class is not None and self._class == other._class:
            attributes, others = (self._program.ask("attributes", one) for one in (self, other))
            # Without attributes only the program could say that they are equal.
            is_equal = attributes is not None and bool(attributes == others)
        if (self._program.ask("eq", self, other) is True) is not is_equal:
            raise NotPlainError(f"a {self._name} of the program whose == and attributes do not agree")
        return is_equal

    def __hash__(self) -> int:
        # Not the hash of the number itself: a set with both would compare the reference with the number.
        return hash(("object", self._number if self._class is None else self._class))


def _asking(operation: str) -> Any:
    def ask(reference: Reference, *operands: object) -> Any:
        if reference._program.is_silent:
            return f"<{reference._name} of the program>"
        return reference._program.ask(operation, reference, *operands)

    return ask


def _refusing(operation: str) -> Any:
    def refuse(reference: Reference, *_: object) -> Any:
        raise NotPlainError(f"{operation} of a {reference._name} of the program")

    return refuse


for _names, _method in ((_ASKED, _asking), (_REFUSED, _refusing)):
    for _name in _names.split():
        setattr(Reference, f"__{_name}__", _method(_name))


class Extended:
    """An instance of a program's class that extends a plain type. If mutable, only its plain value may be used."""

    _reference: Reference

    def __getattr__(self, name: str) -> Any:
        if "_reference" not in vars(self):
            raise NotPlainError(f"{name} of a copy of a {type(self).__name__} of the program")
        return getattr(self._reference, name)

    def __str__(self) -> str:
        return str(self._reference)

    def __repr__(self) -> str:
        return repr(self._reference)


def _extended(reference: Reference, value: Any) -> Extended:
    base: Any = next((base for base in values.EXTENDABLE.values() if isinstance(value, base)), None)
    if base is None or isinstance(value, bool | Extended):
        raise TypeError("no value that a class can extend")
    type_: Any = type(value)
    extended: Extended = base.__new__(_extended_class(reference._name, type_), value)
    if isinstance(value, values.MUTABLE):
        base.__init__(extended, value)
    else:
        extended._reference = reference
    return extended


@functools.lru_cache(maxsize=64)
def _extended_class(name: str, type_: type) -> Any:
    return type(name, (Extended, type_), {})


def is_same(left: object, right: object) -> bool:
    """Whether two objects are identical. Raises NotPlainError if they may be copies of the same object."""
    if left is not right and type(left) is type(right) and isinstance(left, values.MUTABLE):
        raise NotPlainError(f"whether two values are the same {type(left).__name__}")
    return left is right


def _refer(value: Any, written: object) -> object:
    """Convert an object for a request: an object of the program to its number, others to ``written``."""
    reference = value._reference if isinstance(value, Extended) else value
    if isinstance(reference, Reference) or (isinstance(value, type) and "_number" in vars(value)):
        return {protocol.REFERENCE: reference._number}
    if written is None:
        raise NotPlainError(f"the checks pass a {type(value).__name__}")
    return written


def _raisable(type_: Any) -> type[BaseException]:
    return type_ if isinstance(type_, type) and issubclass(type_, BaseException) else ProgramError


def _exception(word: str, type_: object, arguments: list[Any], attributes: dict[Any, Any], text: str) -> BaseException:
    """Build an exception of the program as the checks see it, with its one-line text as cause."""
    try:
        error = _raisable(type_)(*arguments)
    except Exception:
        # Such as UnicodeDecodeError, which needs five arguments.
        error = ProgramError(text)
    error.__dict__.update(attributes)
    error.__cause__ = ProgramFailure(word, text)
    return error

"""The process of the program: run it, then reply to what its checks ask.

It holds the program and nothing else: no check, no expected value, no verdict. Whatever it sends is taken for a value,
a failure or the call of a function that the checks passed to it, so code that finds the connection and replies by
itself gains nothing over returning a value.
"""

from __future__ import annotations

import _thread
import builtins
import contextlib
import gc
import json
import marshal
import operator
import os
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from . import protocol, values
from .protocol import LONGEST, RAISED, REFERENCE, VALUE, Channel
from .values import MUTABLE

# Parts of an order by the name of their source in tracebacks.
_PARTS = {f"<{part}>": part for part in (protocol.SETUP, protocol.PROGRAM, protocol.CHECKS)}
_MODULE = ModuleType(protocol.MODULE)
_REHEARSED = "from typing import List\n\ndef f(x, y):\n    return [x, (y, True), {x: None}]\n"
_REHEARSALS = 10
_LONGEST_MESSAGE = 300
# Of a failure with its arguments and attributes; a longer one is reported by one line.
_LONGEST_FAILURE = 1 << 16


def prepare() -> None:
    """Make this process, and with it every child, look as if it was started for a program named ``solution``."""
    package = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    # Dataclasses and pickle look for it in ``sys.modules``.
    sys.modules[protocol.MODULE] = sys.modules["__main__"] = _MODULE
    sys.argv, sys.orig_argv = [""], []
    # Some shells set it.
    os.environ.pop("PWD", None)


def rehearse() -> None:
    """Do before the fork, on a program of our own, what every process does after it, so that it need not copy it."""
    call = json.dumps(["call", {REFERENCE: 0}, [1, [2.5, "x"]], {"dict": []}, True]).encode()
    for _ in range(_REHEARSALS):
        program = _RunningProgram({}, None)
        program.start("", _REHEARSED, ["f"], "")
        for _ in range(_REHEARSALS):
            program.reply(call)


def run(channel: Channel) -> NoReturn:
    """Run the program that arrives first, then serve requests until the other side is gone."""
    # Bound now, as the program may replace them.
    end, flush, quiet = os._exit, sys.stdout.flush, contextlib.suppress
    send, receive = channel.send, channel.receive
    try:
        send(protocol.CONFINED)
        program = _RunningProgram(_MODULE.__dict__, channel)
        reply = program.start(*marshal.loads(receive(protocol.LONGEST_ORDER)))  # noqa: S302  from our own process
        while True:
            # A program that closed its output has nothing to flush.
            with quiet(OSError, ValueError):
                flush()
            send(reply)
            reply = program.reply(receive())
    finally:
        end(0)


def _fields(record: Any) -> object:
    """Return what two equal objects have alike, as far as the class does not say otherwise."""
    if not hasattr(type(record), "__dataclass_fields__"):
        return object.__getstate__(record)
    fields = __import__("dataclasses").fields(record)
    return [getattr(record, field.name) for field in fields if field.compare]


_OPERATIONS: dict[str, Callable[..., object]] = {
    "attribute": getattr,
    "item": operator.getitem,
    "iterate": iter,
    "next": next,
    "length": len,
    "truth": bool,
    "set_attribute": setattr,
    "set_item": operator.setitem,
    "delete_item": operator.delitem,
    "text": str,
    "representation": repr,
    "instance": isinstance,
    "fields": _fields,
    **{name: getattr(operator, name) for name in ("eq", *protocol.UNARY, *protocol.BINARY, *protocol.ORDERINGS)},
}


class _RunningProgram:
    """The objects of a program, and what is done with them on request."""

    def __init__(self, namespace: dict[str, Any], channel: Channel | None) -> None:
        self._namespace = namespace
        self._channel = channel
        # Objects that the checks know, by number, and numbers by identity.
        self._objects: list[object] = []
        self._numbers: dict[int, int] = {}
        # Functions of the checks, by number.
        self._imported: dict[int, Callable[..., object]] = {}
        # Threads of a program may call back, too.
        self._lock = _thread.RLock()

    def start(self, setup: str, source: str, names: list[str], show: str) -> bytes:
        """Run set-up and program; return a reply with the values of those names and the text of the shown one."""
        try:
            setup_code, code = [
                compile(text, f"<{part}>", "exec", dont_inherit=True)
                for part, text in ((protocol.SETUP, setup), (protocol.PROGRAM, source))
            ]
        except BaseException as error:
            return self._pack_failure(protocol.UNREADABLE, error)
        gc.enable()
        if "random" in source:
            # What is drawn must not differ between two runs; the name itself stays unbound for the program.
            __import__("random").seed(0)
        try:
            exec(setup_code, self._namespace)  # noqa: S102  the purpose of this process
            exec(code, self._namespace)  # noqa: S102
            bound = {name: self._namespace[name] for name in names if name in self._namespace}
            return self._pack([VALUE, [bound, self._show(show) if show else None]])
        except BaseException as error:
            return self._pack_failure(RAISED, error)

    def reply(self, request: bytes) -> bytes:
        """Return the reply to a packed request."""
        return self._perform(*values.unpack(request, self._resolve))

    def _perform(self, operation: str, *operands: Any) -> bytes:
        try:
            if operation == "call":
                return self._call(*operands)
            return self._pack([VALUE, _OPERATIONS[operation](*operands)])
        except StopIteration as error:
            return self._pack_failure(protocol.EXHAUSTED if operation == "next" else RAISED, error)
        except BaseException as error:
            return self._pack_failure(RAISED, error)

    def _call(self, function: Any, arguments: list[Any], keywords: dict[str, Any], with_changes: bool) -> bytes:
        """Reply with the result, the places of arguments that it is and, on request, of those that have changed."""
        every = enumerate([*arguments, *keywords.values()])
        mutable = [(place, argument) for place, argument in every if isinstance(argument, MUTABLE)]
        before = [self._state(argument) for _, argument in mutable] if with_changes else []
        result = function(*arguments, **keywords)
        notes = [[*item] for item, state in zip(mutable, before, strict=False) if self._state(item[1]) != state]
        notes += [[place] for place, argument in mutable if argument is result]
        reply = self._pack([VALUE, result, *notes])
        # Without notes if they are too long, as of a large table that a function fills.
        return reply if len(reply) <= LONGEST else self._pack([VALUE, result])

    def _state(self, value: Any) -> bytes:
        # Much faster than packing, but for built-in types only.
        with contextlib.suppress(ValueError):
            return marshal.dumps(value, 2)
        return self._pack(value)

    def _pack(self, value: object) -> bytes:
        return values.pack(value, self._refer, self._refer_to_extended)

    def _call_back(self, number: int, arguments: tuple[object, ...], keywords: dict[str, object]) -> Any:
        """Have the checks call a function of theirs, and answer what they ask meanwhile."""
        channel: Any = self._channel
        with self._lock:
            channel.send(self._pack([protocol.CALL_BACK, number, [*arguments], keywords]))
            while True:
                match values.unpack(channel.receive(), self._resolve):
                    case [kind, value] if kind == VALUE:
                        return value
                    case [kind, error, arguments] if kind == RAISED:
                        raise error(*arguments)
                    case [operation, *operands]:
                        channel.send(self._perform(operation, *operands))

    def _show(self, name: str) -> str:
        if name not in self._namespace:
            raise NameError(f"name {name!r} is not defined")
        if callable(value := self._namespace[name]):
            raise TypeError(f"{name} is a function, not a value")
        return str(value)[: protocol.LONGEST_SHOWN]

    def _refer(self, value: Any) -> dict[str, Any]:
        kind: Any = type(value)
        if issubclass(kind, type) and issubclass(value, BaseException) and not is_built_in(value):
            bases = [base for base in value.__bases__ if issubclass(base, BaseException)]
            packed = [base.__name__ if is_built_in(base) else self._refer(base) for base in bases]
            # The program may have put anything there.
            place = [text if isinstance(text, str) else "" for text in (value.__module__, value.__qualname__)]
            return {protocol.EXCEPTION_CLASS: [self._number(value), value.__name__, packed, *place]}
        # Whether the class defines equality, as dataclasses do.
        is_record = isinstance(kind.__eq__, FunctionType)
        return {REFERENCE: [self._number(value), kind.__name__, *([self._number(kind)] if is_record else [])]}

    def _refer_to_extended(self, value: object, content: object) -> dict[str, Any]:
        return {protocol.EXTENDED: [self._number(value), type(value).__name__, content]}

    def _number(self, value: object) -> int:
        # An object in the list stays alive, so no other one has its identity.
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        return number

    def _pack_failure(self, kind: str, error: BaseException) -> bytes:
        try:
            text, part = describe(error)
        except BaseException:
            return json.dumps([kind, "Exception", "", ""]).encode()
        with contextlib.suppress(BaseException):
            named = type(error).__name__ if is_built_in(type(error)) else type(error)
            packed = self._pack([kind, [named, [*error.args], vars(error), str(error)], text, part])
            if len(packed) <= _LONGEST_FAILURE:
                return packed
        nearest = next((base.__name__ for base in type(error).__mro__ if is_built_in(base)), "Exception")
        return json.dumps([kind, nearest, text, part]).encode()

    def _resolve(self, key: str, content: Any) -> object:
        if key == protocol.BUILT_IN:
            return getattr(builtins, content)
        if key == REFERENCE:
            return self._objects[content]
        number, name = content
        if key == protocol.ITERATOR:
            return self._iterate(number)
        if number not in self._imported:

            def function(*arguments: object, **keywords: object) -> object:
                return self._call_back(number, arguments, keywords)

            function.__name__ = function.__qualname__ = name
            self._imported[number] = function
        return self._imported[number]

    def _iterate(self, number: int) -> Iterator[object]:
        with contextlib.suppress(StopIteration):
            while True:
                yield self._call_back(number, (), {})


def is_built_in(kind: type) -> bool:
    """Return whether a class is the built-in one of its name."""
    return getattr(builtins, kind.__name__, None) is kind


def describe(error: BaseException, *, briefly: bool = False) -> tuple[str, str]:
    """Return one line about an exception, and the innermost part that raised it; run foreign code unless brief.

    The part, one of set-up, program and checks, is empty for an exception from elsewhere.
    """
    # The interpreter's message about an overflow of its stack depends on where it occurred.
    message = error.msg if isinstance(error, SyntaxError) else "" if isinstance(error, RecursionError) else error
    text = type(error).__name__
    if not briefly:
        text = f"{text}: {message}".partition("\n")[0][:_LONGEST_MESSAGE].removesuffix(": ")
    part, line = "", 0
    if isinstance(error, SyntaxError) and error.filename in _PARTS:
        part, line = _PARTS[error.filename], error.lineno or 0
    trace = None if part else error.__traceback__
    while trace is not None:
        if frame_part := _PARTS.get(trace.tb_frame.f_code.co_filename):
            part, line = frame_part, trace.tb_lineno
        trace = trace.tb_next
    return (f"{text} ({part}, line {line})" if part else text), part

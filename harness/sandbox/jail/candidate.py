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

from . import values
from .values import LONGEST, LONGEST_ORDER, MUTABLE, Channel

# The first message: confined, or why not. No foreign code has run by then.
CONFINED, UNCONFINED = b"+", b"-"
# How a reply starts; and what is none, but asks the checks to call a function of theirs before there is one.
VALUE, RAISED, UNREADABLE, ENDED = "value", "raised", "unreadable", "ended"
CALL_BACK = "call_back"
# What is known of an object on the other side: of the program's, of the checks'.
REFERENCE, EXTENDED, EXCEPTION = "object", "extended", "exception"
BUILT_IN, FUNCTION, ITERATOR = "built_in", "function", "iterator"
MODULE = "solution"
# The parts of an order in their sequence; each is also the name its source has in tracebacks.
SETUP, PROGRAM, CHECKS = "setup", "program", "checks"
_PARTS = {f"<{part}>": part for part in (SETUP, PROGRAM, CHECKS)}

_MODULE = ModuleType(MODULE)
_REHEARSED = "from typing import List\n\ndef f(x, y):\n    return [x, (y, True), {x: None}]\n"
_REHEARSALS = 10
LONGEST_SHOWN = 4096
_LONGEST_MESSAGE = 300
# Of a failure; where it is longer, the one line about it has to do.
_LONGEST_FAILURE = 1 << 16


def prepare() -> None:
    """Make this process, and with it every child, look as if it was started for a program named ``solution``."""
    package = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    # A module that is in ``sys.modules``, where dataclasses and pickle look for it.
    sys.modules[MODULE] = sys.modules["__main__"] = _MODULE
    sys.argv, sys.orig_argv = [""], []
    # Some starters of processes add it.
    os.environ.pop("PWD", None)


def rehearse() -> None:
    """Do before the fork, on a program of our own, what every process does after it, so that it need not copy it."""
    call = json.dumps(["call", {REFERENCE: 0}, [1, [2.5, "x"]], {"dict": []}, True]).encode()
    for _ in range(_REHEARSALS):
        program = _Program("", _REHEARSED, ["f"], "", {}, None)
        program.start()
        for _ in range(_REHEARSALS):
            program.reply(call)


def run(channel: Channel) -> NoReturn:
    """Run the program that arrives first, then serve requests until the other side is gone."""
    # Bound now: afterwards the names could lead to whatever the program put there.
    end, flush, quiet = os._exit, sys.stdout.flush, contextlib.suppress
    send, receive = channel.send, channel.receive
    try:
        send(CONFINED)
        setup, source, names, show = marshal.loads(receive(LONGEST_ORDER))  # noqa: S302  from our own process
        program = _Program(setup, source, names, show, _MODULE.__dict__, channel)
        reply = program.start()
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


# Of one or two objects of the program. With no operator and no comparison does it hear of a value that the checks have:
# it may be what they expect.
OF_ONE = ("neg", "pos", "invert", "abs")
OF_TWO = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor")
ORDERINGS = ("lt", "le", "gt", "ge")
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
    **{name: getattr(operator, name) for name in ("eq", *OF_ONE, *OF_TWO, *ORDERINGS)},
}


class _Program:
    def __init__(
        self, setup: str, source: str, names: list[str], show: str, namespace: dict[str, Any], channel: Channel | None
    ) -> None:
        self._names = names
        self._show = show
        self._sources = {SETUP: setup, PROGRAM: source}
        self._namespace = namespace
        self._objects: list[object] = []
        self._numbers: dict[int, int] = {}
        self._lent: dict[int, Callable[..., object]] = {}
        self._operations = {**_OPERATIONS}
        self._channel = channel
        # Threads of a program may call back, too.
        self._turn = _thread.RLock()

    def start(self) -> bytes:
        try:
            setup, program = [
                compile(source, f"<{part}>", "exec", dont_inherit=True) for part, source in self._sources.items()
            ]
        except BaseException as error:
            return self._failure(UNREADABLE, error)
        gc.enable()
        if "random" in self._sources[PROGRAM]:
            # What is drawn must not differ between two runs; the name itself stays unbound for the program.
            __import__("random").seed(0)
        try:
            exec(setup, self._namespace)  # noqa: S102  the purpose of this process
            exec(program, self._namespace)  # noqa: S102
            found = {name: self._namespace[name] for name in self._names if name in self._namespace}
            return self._packed([VALUE, [found, self._shown()]])
        except BaseException as error:
            return self._failure(RAISED, error)

    def reply(self, request: bytes) -> bytes:
        return self._done(*values.unpack(request, self._object))

    def _done(self, operation: str, *operands: Any) -> bytes:
        try:
            if operation == "call":
                return self._called(*operands)
            return self._packed([VALUE, self._operations[operation](*operands)])
        except StopIteration as error:
            return self._failure(ENDED if operation == "next" else RAISED, error)
        except BaseException as error:
            return self._failure(RAISED, error)

    def _called(self, function: Any, arguments: list[Any], keywords: dict[str, Any], is_told: bool) -> bytes:
        """Reply with the result, and with the places of arguments that it is or, if it is told, that have changed."""
        passed = [
            (place, one) for place, one in enumerate([*arguments, *keywords.values()]) if isinstance(one, MUTABLE)
        ]
        before = [self._state(one) for _, one in passed] if is_told else []
        result = function(*arguments, **keywords)
        notes = [[*one] for one, state in zip(passed, before, strict=False) if self._state(one[1]) != state]
        notes += [[place] for place, one in passed if one is result]
        reply = self._packed([VALUE, result, *notes])
        # Of a table that a function fills, say, the checks need not hear.
        return reply if len(reply) <= LONGEST else self._packed([VALUE, result])

    def _state(self, value: Any) -> bytes:
        # Much faster, but only for built-in types.
        with contextlib.suppress(ValueError):
            return marshal.dumps(value, 2)
        return self._packed(value)

    def _packed(self, value: object) -> bytes:
        return values.pack(value, self._reference, self._extended)

    def _call_back(self, number: int, arguments: tuple[object, ...], keywords: dict[str, object]) -> Any:
        """Have the checks call a function of theirs, and answer what they ask meanwhile."""
        channel: Any = self._channel
        with self._turn:
            channel.send(self._packed([CALL_BACK, number, [*arguments], keywords]))
            while True:
                match values.unpack(channel.receive(), self._object):
                    case [kind, value] if kind == VALUE:
                        return value
                    case [kind, error, arguments] if kind == RAISED:
                        raise error(*arguments)
                    case [operation, *operands]:
                        channel.send(self._done(operation, *operands))

    def _shown(self) -> str | None:
        if not self._show:
            return None
        if self._show not in self._namespace:
            raise NameError(f"name {self._show!r} is not defined")
        if callable(value := self._namespace[self._show]):
            raise TypeError(f"{self._show} is a function, not a value")
        return str(value)[:LONGEST_SHOWN]

    def _reference(self, value: Any) -> dict[str, Any]:
        kind: Any = type(value)
        if issubclass(kind, type) and issubclass(value, BaseException) and not is_built_in(value):
            bases = [base for base in value.__bases__ if issubclass(base, BaseException)]
            written = [base.__name__ if is_built_in(base) else self._reference(base) for base in bases]
            # Where it comes from, as far as it tells: any text, or no text at all.
            place = [one if isinstance(one, str) else "" for one in (value.__module__, value.__qualname__)]
            return {EXCEPTION: [self._number(value), value.__name__, written, *place]}
        # Whether the class says itself what is equal, dataclasses included.
        is_record = isinstance(kind.__eq__, FunctionType)
        return {REFERENCE: [self._number(value), kind.__name__, *([self._number(kind)] if is_record else [])]}

    def _extended(self, value: object, content: object) -> dict[str, Any]:
        return {EXTENDED: [self._number(value), type(value).__name__, content]}

    def _number(self, value: object) -> int:
        # An object in the list stays alive, so its identity stays its own.
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        return number

    def _failure(self, kind: str, error: BaseException) -> bytes:
        try:
            text, part = describe(error)
        except BaseException:
            return json.dumps([kind, "Exception", "", ""]).encode()
        with contextlib.suppress(BaseException):
            found = type(error).__name__ if is_built_in(type(error)) else type(error)
            what = [found, [*error.args], vars(error), str(error)]
            whole = self._packed([kind, what, text, part])
            if len(whole) <= _LONGEST_FAILURE:
                return whole
        nearest = next((base.__name__ for base in type(error).__mro__ if is_built_in(base)), "Exception")
        return json.dumps([kind, nearest, text, part]).encode()

    def _object(self, key: str, content: Any) -> object:
        if key == BUILT_IN:
            return getattr(builtins, content)
        if key == REFERENCE:
            return self._objects[content]
        number, name = content
        if key == ITERATOR:
            return self._iterator(number)
        if number not in self._lent:

            def function(*arguments: object, **keywords: object) -> object:
                return self._call_back(number, arguments, keywords)

            function.__name__ = function.__qualname__ = name
            self._lent[number] = function
        return self._lent[number]

    def _iterator(self, number: int) -> Iterator[object]:
        with contextlib.suppress(StopIteration):
            while True:
                yield self._call_back(number, (), {})


def is_built_in(kind: type) -> bool:
    """Return whether a class is the built-in one of its name."""
    return getattr(builtins, kind.__name__, None) is kind


def describe(error: BaseException, *, briefly: bool = False) -> tuple[str, str]:
    """One line about an exception, and the innermost part that raised it (or ""); runs foreign code unless brief."""
    # How the interpreter words an overflow of its stack depends on where in itself it met it.
    message = error.msg if isinstance(error, SyntaxError) else "" if isinstance(error, RecursionError) else error
    text = type(error).__name__
    if not briefly:
        text = f"{text}: {message}".partition("\n")[0][:_LONGEST_MESSAGE].removesuffix(": ")
    part, line = "", 0
    if isinstance(error, SyntaxError) and error.filename in _PARTS:
        part, line = _PARTS[error.filename], error.lineno or 0
    trace = None if part else error.__traceback__
    while trace is not None:
        found = _PARTS.get(trace.tb_frame.f_code.co_filename)
        part, line = (found, trace.tb_lineno) if found else (part, line)
        trace = trace.tb_next
    return (f"{text} ({part}, line {line})" if part else text), part

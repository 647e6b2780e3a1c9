"""The process of the program: run it, then reply to the requests of its checks.

It holds no check, no expected value and no verdict. Whatever it sends counts as a value or an exception, so code
that finds the connection and replies by itself gains nothing over returning a value.
"""

import builtins
import contextlib
import gc
import json
import marshal
import operator
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from . import protocol, values
from .protocol import LONGEST, RAISED, REFERENCE, VALUE, Channel, TooLongError
from .values import MUTABLE

# Sources of a job by their file name in tracebacks.
_SOURCES = {f"<{source}>": source for source in (protocol.SETUP, protocol.PROGRAM, protocol.CHECKS)}
_MODULE = ModuleType(protocol.MODULE)
_LONGEST_MESSAGE = 300
_LONGEST_FAILURE = 1 << 16  # maximum bytes of an exception; if it is longer, only its text is sent


def hide_suite() -> None:
    """Make this process and its children look as if they had been started for a program named ``solution``."""
    package = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    # Dataclasses and pickle look for it in ``sys.modules``.
    sys.modules[protocol.MODULE] = sys.modules["__main__"] = _MODULE
    sys.argv, sys.orig_argv = [""], []
    # Some shells set PWD.
    os.environ.pop("PWD", None)


def warm_up() -> None:
    """Run once before the fork what every child runs, so that children copy less memory."""
    program = _RunningProgram({})
    program.start("", "def f(x, y): return [x, (y, True), {x: None}]", ["f"], "")
    program.reply(b'["call", {"object": 0}, [1, [2.5, "x"]], {"dict": []}]')


def run(channel: Channel) -> NoReturn:
    """Run the program of the first message, then reply to requests until the grader is gone."""
    # Bound now, as the program may replace them.
    end, send, receive = os._exit, channel.send, channel.receive
    try:
        send(protocol.CONFINED)
        program = _RunningProgram(_MODULE.__dict__)
        reply = program.start(*marshal.loads(receive(protocol.LONGEST_JOB)))  # noqa: S302  from our own process
        while True:
            send(reply)
            reply = program.reply(receive())
    finally:
        end(0)


def _attributes(record: Any) -> object:
    """Return the attributes that are equal in equal objects. For dataclasses, only the compared fields."""
    if not hasattr(type(record), "__dataclass_fields__"):
        return object.__getstate__(record)
    fields = __import__("dataclasses").fields(record)
    return [getattr(record, field.name) for field in fields if field.compare]


# Requests of the checks; operands are objects and values.
_OPERATIONS: dict[str, Callable[..., object]] = {
    **{name: getattr(builtins, name) for name in ("getattr", "setattr", "len", "bool", "iter", "str", "repr", "abs")},
    **{name: getattr(operator, name) for name in ("getitem", "setitem", "delitem", "neg", "pos", "invert", "eq")},
    "instancecheck": lambda type_, instance: isinstance(instance, type_),
    "attributes": _attributes,
}


class _RunningProgram:
    """The namespace and the objects of a program."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        # Objects that were sent, by number, and their numbers by identity.
        self._objects: list[object] = []
        self._numbers: dict[int, int] = {}

    def start(self, setup: str, source: str, names: list[str], show: str) -> bytes:
        """Run set-up and program. Reply with the values of ``names`` and the text of the variable ``show``, if any."""
        try:
            setup_code, code = [
                compile(text, f"<{name}>", "exec", dont_inherit=True)
                for name, text in ((protocol.SETUP, setup), (protocol.PROGRAM, source))
            ]
        except BaseException as error:
            return self._pack_failure(protocol.UNREADABLE, error)
        gc.enable()
        if "random" in source:
            # Seeded, so that two runs draw the same numbers. The name ``random`` stays unbound.
            __import__("random").seed(0)
        try:
            exec(setup_code, self._namespace)  # noqa: S102  the purpose of this process
            exec(code, self._namespace)  # noqa: S102
            bound = {name: self._namespace[name] for name in names if name in self._namespace}
            return self._pack([VALUE, [bound, self._show(show) if show else None]])
        except BaseException as error:
            return self._pack_failure(RAISED, error)

    def reply(self, request: bytes) -> bytes:
        """Perform a packed request and return the packed reply."""
        operation, *operands = values.unpack(request, self._resolve)
        try:
            if operation == "call":
                return self._call(*operands)
            return self._pack([VALUE, _OPERATIONS[operation](*operands)])
        except BaseException as error:
            return self._pack_failure(RAISED, error)

    def _call(self, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> bytes:
        """Call a function. Return its result and, by index, the arguments that it has changed."""
        passed = enumerate([*arguments, *keywords.values()])
        mutable = [
            (index, argument, self._state(argument)) for index, argument in passed if isinstance(argument, MUTABLE)
        ]
        result = function(*arguments, **keywords)
        changes = [[index, argument] for index, argument, state in mutable if self._state(argument) != state]
        reply = self._pack([VALUE, [result, changes]])
        # Changes that are too long are left out, such as a large table that a function fills.
        return reply if len(reply) <= LONGEST else self._pack([VALUE, [result, []]])

    def _state(self, value: Any) -> bytes:
        # Much faster than packing, but works for built-in types only.
        with contextlib.suppress(ValueError):
            return marshal.dumps(value, 2)
        return values.pack(value, self._refer, reads_iterators=False)

    def _pack(self, value: object) -> bytes:
        return values.pack(value, self._refer)

    def _show(self, name: str) -> str:
        if name not in self._namespace:
            raise NameError(f"name {name!r} is not defined")
        if callable(value := self._namespace[name]):
            raise TypeError(f"{name} is a function, not a value")
        return str(value)[: protocol.LONGEST_SHOWN]

    def _refer(self, value: Any, written: object = None) -> object:
        type_: Any = type(value)
        number = self._number(value)
        if issubclass(type_, type) and issubclass(value, BaseException):
            bases = [base for base in value.__bases__ if issubclass(base, BaseException)]
            packed = [{"type": [base.__name__]} if _is_built_in(base) else self._refer(base) for base in bases]
            return {protocol.EXCEPTION_CLASS: [number, value.__name__, packed]}
        # The number of the class if it defines equality, as dataclasses do.
        number_of_class = None if type_.__eq__ is object.__eq__ else self._number(type_)
        reference = {REFERENCE: [number, type_.__name__, number_of_class]}
        return reference if written is None else {protocol.SUBCLASS: [reference, written]}

    def _number(self, value: object) -> int:
        # Objects in the list stay alive, so identities are not reused.
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        return number

    def _pack_failure(self, word: str, error: BaseException) -> bytes:
        if isinstance(error, TooLongError):
            return json.dumps([protocol.TOO_LONG, str(error)]).encode()
        text = "Exception"
        with contextlib.suppress(BaseException):
            text, _ = describe(error)
            packed = self._pack([word, type(error), [*error.args], vars(error), text])
            if len(packed) <= _LONGEST_FAILURE:
                return packed
        nearest = next((base.__name__ for base in type(error).__mro__ if _is_built_in(base)), "Exception")
        return json.dumps([word, {"type": [nearest]}, [text], {"dict": []}, text]).encode()

    def _resolve(self, key: str, number: Any) -> object:
        if key != REFERENCE:
            raise KeyError(key)
        return self._objects[number]


def _is_built_in(type_: type) -> bool:
    return values.TYPES.get(type_.__name__) is type_


def describe(error: BaseException) -> tuple[str, str]:
    """Describe an exception on one line and name the innermost source that raised it: set-up, program, checks or ""."""
    # The interpreter's message about a stack overflow depends on where it occurred.
    message = error.msg if isinstance(error, SyntaxError) else "" if isinstance(error, RecursionError) else error
    text = type(error).__name__
    # A value may have no text, or more digits than Python writes.
    with contextlib.suppress(BaseException):
        text = f"{text}: {message}".partition("\n")[0][:_LONGEST_MESSAGE].removesuffix(": ")
    source, line = "", 0
    if isinstance(error, SyntaxError) and error.filename in _SOURCES:
        source, line = _SOURCES[error.filename], error.lineno or 0
    trace = None if source else error.__traceback__
    while trace is not None:
        if frame_source := _SOURCES.get(trace.tb_frame.f_code.co_filename):
            source, line = frame_source, trace.tb_lineno
        trace = trace.tb_next
    return (f"{text} ({source}, line {line})" if source else text), source

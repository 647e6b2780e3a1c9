"""The process of the program: run it, then reply to what its checks ask.

It holds the program and nothing else: no check, no expected value, no verdict. Whatever it sends is taken for a value
or for a failure, so code that finds the connection and replies by itself gains nothing over returning a value.
"""

from __future__ import annotations

import builtins
import gc
import json
import marshal
import operator
import os
import sys
from types import CodeType, ModuleType

from . import imports, values
from .channel import LONGEST_ORDER, Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

# The first message: confined, or why not. No foreign code has run by then.
CONFINED, UNCONFINED = b"+", b"-"
# How a reply starts.
VALUE, RAISED, UNREADABLE, ENDED = "value", "raised", "unreadable", "ended"
REFERENCE, BUILT_IN, EXCEPTION = "object", "built_in", "exception"
MODULE = "solution"
# The parts of an order in their sequence; each is also the name its source has in tracebacks.
SETUP, PROGRAM, CHECKS = "setup", "program", "checks"

_MODULE = ModuleType(MODULE)
_REHEARSED = "from typing import List\n\ndef f(x, y):\n    return [x, (y, True), {x: None}]\n"
_REHEARSALS = 10
LONGEST_SHOWN = 4096
_LONGEST_MESSAGE = 300
# Of a failure; where it is longer, the one line about it has to do.
_LONGEST_FAILURE = 1 << 16


def prepare() -> None:
    """Makes this process, and with it every child, look as if it was started for a program named ``solution``."""
    imports.forget_launcher()
    # A module that is in ``sys.modules``, where dataclasses and pickle look for it.
    sys.modules[MODULE] = sys.modules["__main__"] = _MODULE
    sys.argv, sys.orig_argv = [""], []
    # Some starters of processes add it.
    os.environ.pop("PWD", None)


def rehearse() -> None:
    """Does before the fork, on a program of our own, what every process does after it.

    What the interpreter builds on first use, and what it learns of code that runs often, is then there for all, and
    no process has to make it, in memory it would have to copy first.
    """
    reference = {REFERENCE: 0}
    call = json.dumps(["call", reference, [1, [2.5, "x"]], {"dict": []}]).encode()
    for _ in range(_REHEARSALS):
        program = _Program("", _REHEARSED, ["f"], "", {})
        program.start()
        for _ in range(_REHEARSALS):
            program.reply(call)


def run(channel: Channel) -> NoReturn:
    """Runs the program that arrives first, then serves requests until the other side is gone."""
    # Bound now: afterwards the names could lead to whatever the program put there.
    end, flush, send, receive = os._exit, sys.stdout.flush, channel.send, channel.receive
    try:
        send(CONFINED)
        setup, source, names, show = marshal.loads(receive(LONGEST_ORDER))  # noqa: S302  from our own process
        program = _Program(setup, source, names, show, _MODULE.__dict__)
        reply = program.start()
        while True:
            _silently(flush)
            send(reply)
            reply = program.reply(receive())
    finally:
        end(0)


def _silently(flush: Callable[[], None]) -> None:
    try:
        flush()
    except (OSError, ValueError):
        # The program closed its output: then there is nothing to flush.
        return


class _Program:
    """A program under test and the objects of its own that the checks hold references to."""

    def __init__(self, setup: str, source: str, names: list[str], show: str, namespace: dict[str, Any]) -> None:
        self._names = names
        self._show = show
        self._sources = {SETUP: setup, PROGRAM: source}
        self._namespace = namespace
        self._objects: list[object] = []
        self._numbers: dict[int, int] = {}
        self._operations: dict[str, Callable[..., object]] = {
            "call": lambda function, arguments, keywords: function(*arguments, **keywords),
            "call_in_place": lambda function, arguments, keywords: [
                function(*arguments, **keywords),
                [*arguments, *keywords.values()],
            ],
            "attribute": getattr,
            "set_attribute": setattr,
            "item": operator.getitem,
            "set_item": operator.setitem,
            "iterate": iter,
            "next": next,
            "length": len,
            "truth": bool,
            "text": str,
            "fields": _fields,
            "instance": isinstance,
        }

    def start(self) -> bytes:
        try:
            setup, program = [_compiled(part, self._sources[part]) for part in (SETUP, PROGRAM)]
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
            return values.pack([VALUE, [found, self._shown()]], self._reference)
        except BaseException as error:
            return self._failure(RAISED, error)

    def reply(self, request: bytes) -> bytes:
        operation, *operands = values.unpack(request, self._object)
        try:
            return values.pack([VALUE, self._operations[operation](*operands)], self._reference)
        except StopIteration as error:
            return self._failure(ENDED if operation == "next" else RAISED, error)
        except BaseException as error:
            return self._failure(RAISED, error)

    def _shown(self) -> str | None:
        if not self._show:
            return None
        if self._show not in self._namespace:
            raise NameError(f"name {self._show!r} is not defined")
        value = self._namespace[self._show]
        if callable(value):
            raise TypeError(f"{self._show} is a function, not a value")
        return str(value)[:LONGEST_SHOWN]

    def _reference(self, value: Any) -> dict[str, Any]:
        kind: Any = type(value)
        if issubclass(kind, type) and issubclass(value, BaseException) and not _is_built_in(value):
            bases = [base for base in value.__bases__ if issubclass(base, BaseException)]
            written = [base.__name__ if _is_built_in(base) else self._reference(base) for base in bases]
            return {EXCEPTION: [self._number(value), value.__name__, written, *_of_library(value)]}
        is_record = getattr(getattr(kind, "__dataclass_params__", None), "eq", False)
        return {REFERENCE: [self._number(value), kind.__name__, *([self._number(kind)] if is_record else [])]}

    def _number(self, value: object) -> int:
        # An object in the list stays alive, so its identity stays its own.
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        return number

    def _failure(self, kind: str, error: BaseException) -> bytes:
        """A reply that tells of an exception; describing one runs foreign code (``__str__``) and may fail itself."""
        try:
            text, part = describe(error)
        except BaseException:
            return json.dumps([kind, "Exception", "", ""]).encode()
        try:
            found = type(error).__name__ if _is_built_in(type(error)) else type(error)
            what = [found, [*error.args], vars(error), str(error)]
            whole = values.pack([kind, what, text, part], self._reference)
        except BaseException:
            whole = b""
        if 0 < len(whole) <= _LONGEST_FAILURE:
            return whole
        return json.dumps([kind, _built_in(type(error)), text, part]).encode()

    def _object(self, key: str, content: Any) -> object:
        return getattr(builtins, content) if key == BUILT_IN else {REFERENCE: self._objects}[key][content]


def _compiled(part: str, source: str) -> CodeType:
    return compile(source, f"<{part}>", "exec", dont_inherit=True)


def _fields(record: Any) -> list[object]:
    """What decides whether two instances of a dataclass are equal."""
    fields = __import__("dataclasses").fields(record)
    return [getattr(record, field.name) for field in fields if field.compare]


def _built_in(kind: type[BaseException]) -> str:
    """The name of the nearest built-in class."""
    return next((base.__name__ for base in kind.__mro__ if _is_built_in(base)), "Exception")


def _of_library(kind: type) -> list[str]:
    """Module and name of a class of the standard library, as far as the class tells."""
    module = kind.__module__
    known = isinstance(module, str) and module.partition(".")[0] in sys.stdlib_module_names
    return [module, kind.__qualname__] if known else []


def _is_built_in(kind: type) -> bool:
    return getattr(builtins, kind.__name__, None) is kind


def describe(error: BaseException) -> tuple[str, str]:
    """One line about an exception, and the part whose code raised it (may be empty).

    Raises:
        Exception: The exception cannot be put into words; :func:`name` still can.
    """
    # How the interpreter words an overflow of its stack depends on where in itself it met it.
    message = error.msg if isinstance(error, SyntaxError) else "" if isinstance(error, RecursionError) else error
    return _with_place(error, f"{type(error).__name__}: {message}".partition("\n")[0][:_LONGEST_MESSAGE])


def name(error: BaseException) -> tuple[str, str]:
    """The same as :func:`describe` without what the exception says."""
    return _with_place(error, type(error).__name__)


def _with_place(error: BaseException, text: str) -> tuple[str, str]:
    part, line = _place(error)
    text = text.removesuffix(": ")
    return (f"{text} ({part}, line {line})" if part else text), part


def _place(error: BaseException) -> tuple[str, int]:
    """Part and line that raised, the innermost one where parts call each other; empty where none is known."""
    places = {f"<{name}>": name for name in (SETUP, PROGRAM, CHECKS)}
    if isinstance(error, SyntaxError) and error.filename in places:
        return places[error.filename], error.lineno or 0
    part, line = "", 0
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name in places:
            part, line = places[name], trace.tb_lineno
        trace = trace.tb_next
    return part, line

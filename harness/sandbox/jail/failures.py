"""Exceptions of the program, as the checks see them."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from .candidate import is_built_in
from .protocol import UnreadableError

# To the interpreter these are no errors: raised inside a check they could end a loop early.
_NEVER_RAISED = (StopIteration, StopAsyncIteration, GeneratorExit)
# What these raise says how a test continues: skipped, stopped.
_TESTING = frozenset({"bdb", "doctest", "pdb", "test", "unittest"})
# Where the text of an exception is kept: no attribute that a program sets by a plain assignment.
_TEXT = "@text"


class ProgramError(Exception):
    """Stand-in for an exception that the checks cannot raise themselves."""


class RemoteStopIteration(Exception):  # noqa: N818  an end is no error
    """End of an iterator of the program."""


class _Failure(Exception):  # noqa: N818  carried along as a cause, never raised
    """First word of the program's reply, and one line about the exception and its place."""


def remote_failure(error: BaseException) -> tuple[str, str] | None:
    """Return kind and text of the program's failure that an exception came from, None if it came from elsewhere."""
    cause = error.__cause__
    return cause.args if isinstance(cause, _Failure) else None


def as_exception(kind: str, content: Any, text: str) -> BaseException:
    """Return the exception of a reply: a built-in one by its name, or by class, arguments, attributes and text."""
    match [content, [text], {}, text] if isinstance(content, str) else content:
        case [named, list(arguments), dict(attributes), str(message)]:
            pass
        case _:
            raise UnreadableError("an exception of no known form")
    try:
        error: BaseException = type.__call__(_raisable(named), *arguments)
    except Exception:
        # Such as UnicodeDecodeError, which wants five arguments.
        error = ProgramError(text)
    error.__dict__.update(attributes, **{_TEXT: message})
    error.__cause__ = _Failure(kind, text)
    return error


def exception_class(remote: object, name: str, bases: list[Any], module: object, qualified: object) -> RemoteException:
    """Return a class for a program's class of exceptions, given its stand-in, name, bases and place of definition."""
    kinds = tuple(map(_raisable, bases)) or (ProgramError,)
    members: dict[str, Any] = {"_remote": remote, "__str__": lambda error: str(error.__dict__[_TEXT])}
    original = _library_class(module, qualified)
    # The class of the library only if it has the same bases, so that nothing depends on what is loaded by now.
    if original is not None and _built_in_bases(original) == _built_in_bases(*kinds):
        kinds = (original,)
        # Arguments are kept as they are: in the program the class has already made of them what it does.
        members["__init__"] = next(filter(is_built_in, original.__mro__)).__init__  # type: ignore[misc]
    return RemoteException(name, kinds, members)


def _raisable(named: object) -> type[BaseException]:
    kind: Any = vars(builtins).get(named) if isinstance(named, str) else named
    is_known = isinstance(named, str | RemoteException) and isinstance(kind, type) and issubclass(kind, BaseException)
    return kind if is_known and not issubclass(kind, _NEVER_RAISED) else ProgramError


def _library_class(module: object, name: object) -> type[Exception] | None:
    """Return the loaded exception class of the library that a program names, if it is a plain error."""
    if not isinstance(module, str) or not isinstance(name, str) or name.startswith("_"):
        return None
    package = module.partition(".")[0]
    if package not in sys.stdlib_module_names or package in _TESTING or module not in sys.modules:
        return None
    kind: Any = vars(sys.modules[module]).get(name)
    is_known = type(kind) is type and (kind.__module__, kind.__qualname__) == (module, name)
    return kind if is_known and issubclass(kind, Exception) and not issubclass(kind, _NEVER_RAISED) else None


def _built_in_bases(*kinds: type) -> set[type]:
    return {base for kind in kinds for base in kind.__mro__ if is_built_in(base)}


class RemoteException(type):
    """Metaclass of a program's exceptions: another class for every program, so none that the checks raise."""

    _remote: Any

    def __call__(cls, *arguments: object, **keywords: object) -> Any:  # noqa: D102
        return cls._remote(*arguments, **keywords)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._remote, name)

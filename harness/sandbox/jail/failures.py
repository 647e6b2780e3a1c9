"""Exceptions of the program, as the checks see them."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from . import values
from .candidate import is_built_in

# Their meaning to the interpreter is not "something went wrong": inside a check they could end a loop early.
_NEVER_RAISED = (StopIteration, StopAsyncIteration, GeneratorExit)
# What these raise says how a test continues: skipped, stopped.
_TESTING = frozenset({"bdb", "doctest", "pdb", "test", "unittest"})


class ProgramError(Exception):
    """Stands for an exception that the checks cannot raise themselves."""


class End(Exception):  # noqa: N818  an end is no error
    """An iterator of the program has no more."""


class _Told(Exception):  # noqa: N818  carried along, never raised
    """How the program's reply started, and the exception and its place in words."""


def told(error: BaseException) -> tuple[str, str] | None:
    """Return what the program said of its failure, kind and text, where an exception came from it."""
    found = error.__cause__
    return found.args if isinstance(found, _Told) else None


def raised(kind: str, content: Any, text: str) -> BaseException:
    """Return the exception of a reply: a built-in one by its name, or by class, arguments, attributes and text."""
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


def class_of(remote: object, name: str, bases: list[Any], module: object, qualified: object) -> Caught:
    """Return a class for exceptions of a class of the program, with what it stands for, its name, bases and place."""
    kinds = tuple(map(_usable, bases)) or (ProgramError,)
    known: dict[str, Any] = {"_remote": remote, "__str__": lambda error: str(error.__dict__["_said"])}
    found = _of_library(module, qualified)
    # What its own bases say holds whether or not the module is loaded by now.
    if found is not None and _built_in_bases(found) == _built_in_bases(*kinds):
        kinds = (found,)
        # Arguments as they are: what the class itself makes of them has been made by the program.
        known["__init__"] = next(filter(is_built_in, found.__mro__)).__init__  # type: ignore[misc]
    return Caught(name, kinds, known)


def _usable(kind: object) -> type[BaseException]:
    found: Any = vars(builtins).get(kind) if isinstance(kind, str) else kind
    known = isinstance(kind, str | Caught) and isinstance(found, type) and issubclass(found, BaseException)
    return found if known and not issubclass(found, _NEVER_RAISED) else ProgramError


def _of_library(module: object, name: object) -> type[Exception] | None:
    """Return the loaded exception class of the library that a program names, if it is a plain error."""
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


class Caught(type):
    """A class of exceptions that stays with the program, another one for every program, so none the checks raise."""

    _remote: Any

    def __call__(cls, *arguments: object, **keywords: object) -> Any:  # noqa: D102
        return cls._remote(*arguments, **keywords)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._remote, name)

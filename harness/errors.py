"""The exceptions that reach a user as a single line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from harness import earlier

_NAMED = 12


class UserError(Exception):
    """Something the user can put right: the message, all that is printed, says what is wrong and what to do.

    Problems that are listed together may share a ``cure``, which is then printed once; ``problem`` is the rest.
    """

    def __init__(self, problem: str, cure: str = "") -> None:
        super().__init__(f"{problem}; {cure}" if cure else problem)
        self.problem, self.cure = problem, cure


class StoppedError(Exception):
    """Work was cancelled and has cleaned up; the message says what is kept, and how to resume."""


def printable(text: object) -> str:
    """Return a text with its control characters escaped, so that no file can fake a line of a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))


def making(target: object) -> str:
    """Return the command that makes a file of a run, for the end of a message."""
    return f"make it with `snakemake --cores all {target}`"


def check_names(noun: str, names: Iterable[str], existing: Iterable[str], where: str) -> None:
    """Raise the error of :func:`unknown` for the first name that does not exist."""
    choices = list(existing)
    for name in names:
        if name not in choices:
            raise unknown(noun, name, choices, where)


def unknown(noun: str, name: str, known: Iterable[str], where: str) -> UserError:
    """Return the error for a name that no configuration has, with the nearest known name."""
    return UserError(f"unknown {noun} {name!r}; {hint(noun, name, sorted(known))} ({noun}s: {where})")


def hint(noun: str, name: str, known: Sequence[str], otherwise: str = "") -> str:
    """Return what replaced a name of an earlier version, else the known name that is nearest to a wrong one.

    If none is near: ``otherwise``, or which names there are.
    """
    if instead := earlier.replacement(noun.rpartition(" ")[2], name):
        return f"it {instead}"
    if near := difflib.get_close_matches(name, known, n=1):
        return f"did you mean {near[0]!r}?"
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return otherwise or f"known: {', '.join(known[:_NAMED])}{more}."

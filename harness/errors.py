"""The exceptions that reach a user as a single line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can put right.

    The command line prints the message alone, without a traceback, and exits with status 2. The message therefore
    names what was found, what was expected and what to do next.
    """


class StoppedError(Exception):
    """Work was cancelled and has cleaned up; the message says what is kept, and how to resume."""


def unknown(kind: str, name: str, known: Iterable[str], where: str) -> UserError:
    """The error for a name that no configuration has, with the nearest known name.

    Args:
        kind: What the name should have been, such as ``"backbone"``.
        name: The name as given.
        known: Every valid name.
        where: The file in which valid names are declared.
    """
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(choices)}."
    return UserError(f"unknown {kind} {name!r}; {hint} ({kind}s are declared in {where})")

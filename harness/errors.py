"""The exceptions that reach a user as a single line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can put right: the message, all that is printed, says what was found and what to do."""


class StoppedError(Exception):
    """Work was cancelled and has cleaned up; the message says what is kept, and how to resume."""


def unknown(kind: str, name: str, known: Iterable[str], where: str) -> UserError:
    """Return the error for a name that no configuration has, with the nearest known name."""
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(choices)}."
    return UserError(f"unknown {kind} {name!r}; {hint} ({kind}s are declared in {where})")

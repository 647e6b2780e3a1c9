"""What programs and their checks are likely to import, loaded once before any of them is forked."""

from __future__ import annotations

import importlib

_LIKELY = (
    # Not random: it draws a new seed in every child.
    *("bisect", "collections", "copy", "functools", "heapq", "itertools", "json", "math", "operator", "re"),
    *("string", "typing"),
)


def preload() -> None:
    """Imports them; a program that does not ask for one does not see its name."""
    for name in _LIKELY:
        importlib.import_module(name)

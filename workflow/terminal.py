"""Text laid out for a terminal, whatever the text is."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap

_LINES_SHOWN = 6
_LABEL = 11
_NARROW, _WIDE = 60, 120
# What would move the cursor, change colours, or turn the direction of what follows.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Page:
    """Lays text out.

    Args:
        width: Columns.
        full: Whether long texts are shown whole, line by line as they are.
    """

    def __init__(self, width: int, *, full: bool) -> None:
        self._width = width
        self.full = full

    def entry(self, label: str, text: str) -> list[str]:
        """A text behind its label."""
        first, *rest = self.indented(text, " " * (_LABEL + 2))
        return [f"  {label + ' ':<{_LABEL}}{first.lstrip()}", *rest]

    def indented(self, text: str, indent: str, *, whole: bool = False) -> list[str]:
        """The lines of a text; the first few of them, broken at the width, unless all are wanted."""
        lines = visible(text).strip("\n").splitlines() or [""]
        if self.full:
            return [f"{indent}{line}".rstrip() for line in lines]
        broken = [f"{indent}{piece}".rstrip() for line in lines for piece in self._broken(line, len(indent))]
        if whole or len(broken) <= _LINES_SHOWN:
            return broken
        shown = broken[: _LINES_SHOWN - 1]
        return [*shown, f"{indent}... ({count(len(broken) - len(shown), 'more line')}, --full shows all)"]

    def _broken(self, line: str, indent: int) -> list[str]:
        inner = line[: min(len(line) - len(line.lstrip()), self._width // 2)]
        return textwrap.wrap(line, self._width - indent, subsequent_indent=inner) or [""]


def terminal_width() -> int:
    """Columns of the terminal, also where standard output is a pager's; within what reads well."""
    columns = shutil.get_terminal_size((0, 0)).columns
    for stream in (sys.__stderr__, sys.__stdin__):
        if columns or stream is None:
            break
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):
            continue
    return min(max(columns or 100, _NARROW), _WIDE)


def visible(text: str) -> str:
    """A text whose control characters are spelt out: what a model says must not steer a terminal."""
    return _UNSEEN.sub(lambda found: f"<U+{ord(found[0]):04X}>", text.replace("\r\n", "\n"))


def count(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A probability as printed."""
    return f"{100 * share:.1f} %"

"""Pipe tables of reports that are written as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analysis.table import md_escape as escape


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """The lines of a table and an empty one, its fields as they are given; the first columns are set flush left."""
    rule = ["---"] * left + ["--:"] * (len(heads) - left)
    return [*(f"| {' | '.join(line)} |" for line in ([escape(head) for head in heads], rule, *rows)), ""]

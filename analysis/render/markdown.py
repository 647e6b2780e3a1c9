"""Markdown with a pipe table, for pull requests and terminals."""

from __future__ import annotations

import re

from analysis.tables import Entry, Mark, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def render(table: Table) -> str:
    """The text of the file: warning, caption, table, notes, provenance."""
    heads = [
        *table.heads,
        *(f"{group.title} {title}" for group in table.groups for title in group.columns),
    ]
    rule = ["---"] * len(table.heads) + ["--:"] * (len(heads) - len(table.heads))
    body = [[*map(escape, row.labels), *map(_entry, row.entries)] for row in table.rows]
    warning = [f"> **{escape(table.warning)}**", ""] if table.warning else []
    grid = [f"| {' | '.join(line)} |" for line in ([escape(head) for head in heads], rule, *body)]
    details = "; ".join(f"{group.title} {group.detail}" for group in table.groups if group.detail)
    notes = [f"- {escape(note)}" for note in (*table.notes, *([f"{details}."] if details else []))]
    origin = "; ".join(f"{name}: {value}" for name, value in table.provenance)
    return "\n".join([*warning, escape(table.caption), "", *grid, "", *notes, "", f"Provenance: {escape(origin)}", ""])


def escape(text: str) -> str:
    """Text that no Markdown reader takes for markup."""
    return _SPECIAL.sub(r"\\\1", text)


def _entry(entry: Entry) -> str:
    text = escape(entry.text)
    if entry.mark is Mark.BEST:
        text = f"**{text}**"
    elif entry.mark is Mark.SECOND:
        text = f"<u>{text}</u>"
    beside = f" ({entry.beside})" if entry.beside else ""
    below = f" [{entry.below}]" if entry.below else ""
    return f"{text}{entry.sign}{beside}{escape(below)}"

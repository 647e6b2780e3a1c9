"""A table as a reader sees it, and its files: LaTeX, CSV, Markdown and HTML, the same bytes for the same table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from analysis.exhibit import BEST, SECOND, Entry, Exhibit, csv, grid, line_count, md_escape, provenance_text
from analysis.html import render
from analysis.latex import latex

# In HTML this label stands below the one before it, so that a narrow screen has room for numbers.
_SECOND_LINE = "LLM"


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Exhibit):
    """A table as printed, ``shown`` with an :class:`Entry` each, and what is said below it."""

    shown: pd.DataFrame  # index: section (a rule between two), labels; columns: heading, smaller line below it, title
    notes: tuple[str, ...]  # legend and footnotes, one sentence or two each

    def contents(self) -> Mapping[str, str]:
        """Return LaTeX, CSV, Markdown and HTML by file ending."""
        tex = latex(self, self.shown, self.notes)
        return {"tex": tex, "csv": csv(self.frame, self.warning), "md": markdown(self), "html": html(self)}


def lay_out(
    rows: Iterable[tuple[str, ...]],
    heads: Sequence[str],
    groups: Mapping[tuple[str, str], Mapping[str, Sequence[Entry]]],
) -> pd.DataFrame:
    """Return the printed form of a table: ``rows`` are the section of each row and its labels, titled ``heads``."""
    columns = {(*group, title): list(entries) for group, titles in groups.items() for title, entries in titles.items()}
    frame = pd.DataFrame(list(zip(*columns.values(), strict=True)), dtype=object)
    frame.index = pd.MultiIndex.from_tuples(rows, names=["section", *heads])
    return frame.set_axis(pd.MultiIndex.from_tuples(columns), axis=1)


def html(table: Table) -> str:
    """Return a fragment of HTML with the table, its notes and its provenance."""
    shown = table.shown
    names = list(shown.index.names[1:])
    below = names.index(_SECOND_LINE) if _SECOND_LINE in names[1:] else 0
    return render(
        "table.html.j2",
        table=table,
        heads=_join_label(names, below),
        groups=[(*head, len(list(group))) for head, group in groupby(shown.columns, lambda column: column[:2])],
        rows=[
            (section, _join_label(labels, below), entries)
            for (section, *labels), entries in zip(shown.index, shown.to_numpy(), strict=True)
        ],
        line_count=line_count,
    )


def _join_label(labels: Sequence[str], below: int) -> list[tuple[str, str]]:
    """Return labels with a smaller second line, which is the label at an index; 0 for none."""
    small = {below - 1: labels[below]} if below else {}
    return [(label, small.get(number, "")) for number, label in enumerate(labels) if not below or number != below]


def markdown(table: Table) -> str:
    """Return warning, caption, a pipe table, notes and provenance."""
    _, *names = table.shown.index.names
    heads = [*names, *(f"{group} {title}" for group, _, title in table.shown.columns)]
    rows = [
        [*map(md_escape, labels), *map(_markdown_entry, row)]
        for (_, *labels), row in zip(table.shown.index, table.shown.to_numpy(), strict=True)
    ]
    details = dict.fromkeys(f"{group} {detail}" for group, detail, _ in table.shown.columns if detail)
    notes = [*table.notes, *([f"{'; '.join(details)}."] if details else [])]
    lines = [*([f"> **{md_escape(table.warning)}**", ""] if table.warning else []), md_escape(table.caption), ""]
    lines += [*grid(heads, rows, left=len(names)), *(f"- {md_escape(note)}" for note in notes), ""]
    return "\n".join([*lines, f"Provenance: {md_escape(provenance_text(table, full=True))}", ""])


def _markdown_entry(entry: Entry) -> str:
    form = {BEST: "**{}**", SECOND: "<u>{}</u>", "": "{}"}[entry.mark]
    text = form.format(md_escape(entry.text)) if entry.text else ""
    beside = f" ({entry.beside})" if entry.beside else ""
    below = md_escape(f" [{entry.below}]") if entry.below else ""
    return f"{text}{entry.sign}{beside}{below}"

"""A table as a reader sees it, and its files: LaTeX, CSV and Markdown, the same bytes for the same table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from analysis.exhibit import BEST, SECOND, Entry, Exhibit, csv, grid, line_count, md_escape, provenance_text
from analysis.latex import latex

# Most columns beside one another.
_COLUMNS = 16


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Exhibit):
    """A table as printed, ``shown`` with an :class:`Entry` each, and what is said below it."""

    shown: pd.DataFrame  # index: section (a rule between two), labels; columns: heading, smaller line below it, title
    notes: tuple[str, ...]  # legend and footnotes, one sentence or two each

    def parts(self) -> list[pd.DataFrame]:
        """Return the printed form cut between groups of columns: with labels sixteen at most, unless a group has more.

        The main table has sixteen. A column with texts of several lines counts twice.
        """
        counts = self.shown.map(lambda entry: min(line_count(entry.text), 2)).max()
        labels = self.shown.index.droplevel(0).to_frame().map(lambda label: min(line_count(label), 2)).max().sum()
        parts: list[list[tuple[str, str, str]]] = [[]]
        for _, group in groupby(self.shown.columns, lambda column: column[:2]):
            columns = list(group)
            if parts[-1] and labels + counts[parts[-1] + columns].sum() > _COLUMNS:
                parts.append([])
            parts[-1] += columns
        return [self.shown[columns] for columns in parts]

    def contents(self) -> Mapping[str, str]:
        """Return LaTeX, CSV and Markdown by file ending."""
        tex = latex(self, self.shown, self.parts(), self.notes)
        return {"tex": tex, "csv": csv(self.frame, self.warning), "md": markdown(self)}


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

"""A table and its files: LaTeX, CSV, Markdown and HTML. All files are deterministic."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

import pandas as pd

from analysis.exhibit import (
    BEST,
    SECOND,
    Entry,
    Exhibit,
    csv,
    grid,
    line_count,
    md_escape,
    provenance_text,
    render,
    two_lines,
)
from analysis.latex import WIDTHS, latex

# Width in points at 7 pt beyond which HTML and Markdown split a table.
_WIDEST = 600.0
# Widths in points at 7 pt: narrow, wide and other letters, the longest line, the gap between columns.
_NARROW, _WIDE, _LETTER, _LONGEST, _BETWEEN = 2.3, 5.5, 4.0, 128.0, 4.4


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Exhibit):
    """A table as printed: ``shown`` has one :class:`Entry` per cell; ``notes`` are printed below the table."""

    shown: pd.DataFrame  # index: section (a rule between two), labels; columns: heading, smaller line below it, title
    notes: tuple[str, ...]  # legend and footnotes

    def contents(self) -> Mapping[str, str]:
        forms = zip(("tex", "column.tex"), WIDTHS, strict=True)
        tex = {ending: latex(self, _parts(self.shown, WIDTHS[kind]), self.notes, kind) for ending, kind in forms}
        return {**tex, "csv": csv(self.frame, self.warning), "md": markdown(self), "html": html(self)}


def labels_of(rows: Iterable[tuple[str, ...]], heads: Sequence[str]) -> pd.MultiIndex:
    """Return the labels of a table from section and labels of each row, and the titles of the labels."""
    return pd.MultiIndex.from_tuples(rows, names=["section", *heads])


def lay_out(labels: pd.MultiIndex, groups: Mapping[tuple[str, str], Mapping[str, Sequence[Entry]]]) -> pd.DataFrame:
    """Return the printed form of a table."""
    columns = {(*group, title): list(entries) for group, titles in groups.items() for title, entries in titles.items()}
    frame = pd.DataFrame(list(zip(*columns.values(), strict=True)), dtype=object)
    frame.index = labels
    return frame.set_axis(pd.MultiIndex.from_tuples(columns), axis=1)


def _parts(shown: pd.DataFrame, points: float) -> list[pd.DataFrame]:
    """Split a table into the fewest parts of a maximum width at 7 pt, if possible between groups of columns."""
    groups = [list(columns) for _, columns in groupby(shown.columns, lambda column: column[:2])]
    if len(groups) == 1:
        groups = [[column] for column in shown.columns]
    for number in range(1, len(groups) + 1):
        size = math.ceil(len(groups) / number)
        cut = [shown[[*chain(*groups[at : at + size])]] for at in range(0, len(groups), size)]
        if all(_width(part) <= points for part in cut):
            return cut
    return [part for group in cut for part in (_parts(group, points) if group.shape[1] > 1 else [group])]


def _width(shown: pd.DataFrame) -> float:
    """Estimate the width of a table in points at 7 pt."""
    names = list(shown.index.names[1:])
    labels = [two_lines(names, labels) for labels in (names, *(labels for _, *labels in shown.index))]
    columns = [[*chain(*column)] for column in zip(*labels, strict=True)]
    for name, column in shown.items():
        lines = ((f"{entry.text} {entry.beside}", f"[{entry.below}]") for entry in column)
        columns.append([name[2], *chain(*lines)])
    return sum(_BETWEEN + max(map(_points, texts)) for texts in columns)


def _points(text: str) -> float:
    narrow = sum(letter in " .,:;[]()|il–" for letter in text)
    wide = sum(letter.isupper() or letter in "+−×≤" for letter in text)
    points = _NARROW * narrow + _WIDE * wide + _LETTER * (len(text) - narrow - wide)
    return min(points, _LONGEST) if line_count(text) > 1 else points


def html(table: Table) -> str:
    names = list(table.shown.index.names[1:])
    return render(
        "table.html.j2",
        table=table,
        heads=two_lines(names, names),
        labels=[(section, two_lines(names, labels)) for section, *labels in table.shown.index],
        parts=[
            (part, [(*head, len(list(group))) for head, group in groupby(part, lambda column: column[:2])])
            for part in _parts(table.shown, _WIDEST)
        ],
        line_count=line_count,
    )


def markdown(table: Table) -> str:
    _, *names = table.shown.index.names
    details = dict.fromkeys(f"{group} {detail}" for group, detail, _ in table.shown.columns if detail)
    notes = [*table.notes, *([f"{'; '.join(details)}."] if details else [])]
    lines = [*([f"> **{md_escape(table.warning)}**", ""] if table.warning else []), md_escape(table.caption), ""]
    for part in _parts(table.shown, _WIDEST):
        heads = [*names, *(f"{group} {title}" for group, _, title in part)]
        rows = [
            [*map(md_escape, labels), *map(_markdown_entry, row)]
            for (_, *labels), row in zip(part.index, part.to_numpy(), strict=True)
        ]
        lines += grid(heads, rows, left=len(names))
    lines += [*(f"- {md_escape(note)}" for note in notes), ""]
    return "\n".join([*lines, f"Provenance: {md_escape(provenance_text(table, full=True))}", ""])


def _markdown_entry(entry: Entry) -> str:
    form = {BEST: "**{}**", SECOND: "<u>{}</u>", "": "{}"}[entry.mark]
    text = form.format(md_escape(entry.text)) if entry.text else ""
    beside = f" ({entry.beside})" if entry.beside else ""
    below = md_escape(f" [{entry.below}]") if entry.below else ""
    return f"{text}{entry.sign}{beside}{below}"

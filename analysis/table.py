"""A table as a reader sees it, and its files: LaTeX, CSV and Markdown, the same bytes for the same table."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pandas as pd

from analysis.provenance import warning
from harness.files import write_atomically

NOT_RUN = "–"
DAGGER = "†"
FAR = "‡"
ALL_CALLS = "All calls"
YES, NO = "●", "○"
BEST, SECOND = "best", "second"
# What is printed of the provenance: all of it, which the comments of a LaTeX fragment have, is longer than the table.
_PRINTED = ("run", "preset", "cells", "seeds")
# Points: the width of a page in print, of what is shrunk to it, of a letter, of a small one, and between two columns.
_PAGE, _MOST, _LETTER, _SMALL_LETTER, _GAP = 480, 600, 4.0, 3.4, 5
# Points that the rows of a page take, and letters in a line of a longer text.
_HEIGHT, _LONG = 480, 28


#: A format such as ``"{:.2f}"``, or a function from a number to text.
Form: TypeAlias = str | Callable[[float], str]


class Entry(NamedTuple):
    """One number as printed."""

    text: str = ""  # the number itself, or NOT_RUN; empty where there is no number
    mark: str = ""  # BEST in bold, SECOND underlined
    sign: str = ""  # a footnote sign such as DAGGER
    beside: str = ""  # a smaller figure next to it, such as a difference
    below: str = ""  # a smaller figure on a second line, such as an interval


def format_series(values: pd.Series, form: Form) -> pd.Series:
    """Return numbers as text, by a format such as ``"{:.2f}"`` or a function; empty for a missing number."""
    write = form.format if isinstance(form, str) else form
    return pd.Series(["" if pd.isna(value) else write(value) for value in values], values.index, dtype=object)


def entries(values: pd.Series, form: Form | None = None, missing: str = "", **parts: pd.Series | str) -> list[Entry]:
    """Return a column of entries: values in a format, or texts if there is none, with further parts of :class:`Entry`.

    An entry without a value shows ``missing`` and no further part.
    """
    text = values if form is None else format_series(values, form)
    frame = pd.DataFrame({"text": text.to_numpy()}, dtype=object)
    for name, part in parts.items():
        frame[name] = part if isinstance(part, str) else part.to_numpy()
    return [Entry(**row) if row["text"] else Entry(missing) for row in frame.to_dict("records")]


@dataclass(frozen=True, eq=False, kw_only=True)
class Exhibit(ABC):
    """A table or figure with everything that must stand around it."""

    label: str  # short ASCII name for cross references
    caption: str  # what it shows, without the warning of a simulated run
    simulated: bool  # any number is from simulated backbones; every file says so, and no argument silences it
    provenance: Mapping[str, str]  # name and value of whatever identifies the run
    frame: pd.DataFrame  # the tidy form of the same numbers

    @property
    def warning(self) -> str:
        """Return the sentence about simulated backbones, or nothing for a run on real ones."""
        return warning(self.simulated)

    @abstractmethod
    def contents(self) -> Mapping[str, str | bytes]:
        """Return the contents of its files by their endings."""


def write(exhibit: Exhibit, folder: Path, name: str) -> list[Path]:
    """Write a table or figure in every format, each file whole or not at all, and return the files."""
    paths = {folder / f"{name}.{ending}": content for ending, content in exhibit.contents().items()}
    for path, content in paths.items():
        write_atomically(path, content)
    return list(paths)


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Exhibit):
    """A table as printed, ``shown`` with an :class:`Entry` each, and what is said below it."""

    shown: pd.DataFrame  # index: section (a rule between two), labels; columns: heading, smaller line below it, title
    notes: tuple[str, ...]  # legend and footnotes, one sentence or two each

    def parts(self, most: float) -> list[tuple[float, pd.DataFrame]]:
        """Return the printed form cut between groups of columns, each part behind its width in points.

        No part is wider than ``most``, unless it is a single group.
        """
        labels = sum(_points(self.shown.index.get_level_values(name)) for name in self.shown.index.names[1:])
        parts: list[tuple[float, list[tuple[str, str, str]]]] = [(labels, [])]
        for _, group in groupby(self.shown.columns, lambda column: column[:2]):
            columns = list(group)
            wider = sum(_points([column[2]], self.shown[column]) for column in columns)
            width, before = parts.pop()
            is_full = bool(before) and width + wider > most
            parts += [(width, before), (labels + wider, columns)] if is_full else [(width + wider, before + columns)]
        return [(width, self.shown[columns]) for width, columns in parts]

    def contents(self) -> Mapping[str, str]:
        """Return LaTeX, CSV and Markdown by file ending."""
        return {"tex": latex(self), "csv": csv(self.frame, self.warning), "md": markdown(self)}


def _points(labels: Iterable[str], entries: Iterable[Entry] = ()) -> float:
    """Return about how wide a column of labels and entries is in print."""
    lines = [_LETTER * len(label) for label in labels]
    for entry in entries:
        beside = len(entry.sign + entry.beside) + 0.5
        lines += [_LETTER * min(len(entry.text), _LONG) + _SMALL_LETTER * beside, _SMALL_LETTER * len(entry.below)]
    return max(lines, default=0.0) + _GAP


def section_starts(shown: pd.DataFrame) -> list[int]:
    """Return the indices of the rows that begin a section, but for the first; a rule stands before each."""
    sections = shown.index.get_level_values(0)
    return [place for place in range(1, len(sections)) if sections[place] != sections[place - 1]]


def _pages(shown: pd.DataFrame) -> list[slice]:
    """Return which rows fit on a page together, cut where a section ends."""
    lines = [max(max(1 + (entry.below > ""), len(entry.text) / _LONG) for entry in row) for row in shown.to_numpy()]
    pages, starts = [0], [*section_starts(shown), len(shown)]
    for start, end in pairwise(starts):
        if sum(3 + 8 * math.ceil(line) for line in lines[pages[-1] : end]) > _HEIGHT:
            pages.append(start)
    return [slice(start, end) for start, end in zip(pages, [*pages[1:], len(shown)], strict=True)]


def lay_out(
    rows: Iterable[tuple[str, ...]],
    heads: Sequence[str],
    groups: Mapping[tuple[str, str], Mapping[str, Sequence[Entry]]],
) -> pd.DataFrame:
    """Return the printed form of a table: ``rows`` are the section of each row and its labels, titled ``heads``."""
    index = pd.MultiIndex.from_tuples(rows, names=["section", *heads])
    columns = {(*group, title): list(entries) for group, titles in groups.items() for title, entries in titles.items()}
    names = pd.MultiIndex.from_tuples(columns)
    return pd.DataFrame(list(zip(*columns.values(), strict=True)), dtype=object).set_axis(index).set_axis(names, axis=1)


def marks(values: Iterable[float | None]) -> pd.Series:
    """Return marks of the best and second best of a column, as printed; none where all values are equal, or one alone.

    Equal values share a mark.
    """
    column = pd.Series(values, dtype=float)
    names = {1: BEST, 2: SECOND} if column.nunique() > 1 else {}
    ranks = column.rank(method="dense", ascending=False)
    return pd.Series([names.get(rank, "") for rank in ranks], column.index, dtype=object)


def number(value: float, digits: int, sign: str = "") -> str:
    """Return a number with a true minus, with ``"+"`` for every sign, and no sign on what prints as zero."""
    text = f"{value:{sign}.{digits}f}"
    return (text if float(text) else text.lstrip("+-")).replace("-", "−")


def format_cost(value: float, decimals: int = 2) -> str:
    """Format a cost with at least ``decimals`` decimals, and more if needed for two significant digits."""
    digits = 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{max(decimals, digits)}f}"


def signed(points: float, digits: int = 2) -> str:
    """Return percentage points with their sign, such as ``"+1.20"``."""
    return number(points, digits, "+")


def csv(frame: pd.DataFrame, warning: str) -> str:
    """Return a tidy CSV, after a comment line with the warning, which readers skip with ``comment="#"``."""
    flags = {name: column.map({True: "true", False: "false"}) for name, column in frame.items() if _is_flag(column)}
    text: str = frame.assign(**flags).to_csv(index=False, float_format="%.10g", lineterminator="\n")
    return f"# {warning}\n{text}" if warning else text


def _is_flag(column: pd.Series) -> bool:
    return (
        column.dtype != float and len(column.dropna()) > 0 and all(isinstance(value, bool) for value in column.dropna())
    )


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
    return "\n".join(
        [
            *([f"> **{md_escape(table.warning)}**", ""] if table.warning else []),
            md_escape(table.caption),
            "",
            *grid(heads, rows, left=len(names)),
            *(f"- {md_escape(note)}" for note in notes),
            "",
            f"Provenance: {md_escape(provenance_text(table, full=True))}",
            "",
        ]
    )


def latex(table: Table) -> str:
    """Return a LaTeX fragment: a ``table*`` for each part of a table, the last with the notes."""
    parts = [(width, part[page]) for page in _pages(table.shown) for width, part in table.parts(_MOST)]
    has_all_columns = parts[0][1].shape[1] == table.shown.shape[1]
    run = rf"\item Provenance: {latex_escape(provenance_text(table))}."
    notes = [*(rf"\item {latex_escape(note)}" for note in table.notes), run]
    # An entry above a smaller figure, deep enough to touch nothing.
    entry = r"\providecommand{\entry}[2]{\vtop{\hbox{\strut#1}\kern1.5pt\hbox{\tiny\vrule width 0pt depth 3pt#2}}}"
    lines = [*latex_comments(table, "booktabs,multirow,graphicx,threeparttable"), entry]
    for place, (width, part) in enumerate(parts, start=1):
        titles = ", ".join(dict.fromkeys(group for group, *_ in part.columns if group and not has_all_columns))
        of_these = f" with {latex_escape(titles)}" if titles else ""
        continued = [r"\addtocounter{table}{-1}", rf"\caption{{Continued{of_these}.}}"]
        end = [r"\begin{tablenotes}[flushleft]\scriptsize", *notes, r"\end{tablenotes}"]
        lines += [
            r"\begin{table*}[t]",
            r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
            r"\begin{threeparttable}",
            *(latex_caption(table, "tab") if place == 1 else continued),
            r"\scriptsize\setlength{\tabcolsep}{2pt}",
            _tabular(part, width),
            *(end if place == len(parts) else []),
            r"\end{threeparttable}}",
            r"\end{table*}",
        ]
    return "\n".join([*lines, ""])


def _tabular(part: pd.DataFrame, width: float) -> str:
    """Return the lines of a table as wide as the text, or as its columns need where they are wider."""
    body = part.map(_latex_entry)
    _, *names = body.index.names
    body.index = pd.MultiIndex.from_tuples([tuple(map(latex_escape, labels)) for _, *labels in body.index])
    rows = body.style.hide(axis="columns").to_latex(multirow_align="t").splitlines()[1:-1]
    for place in reversed(section_starts(part)):
        rows.insert(place, r"\midrule")
    heads, rules, at = [[""] * len(names), [""] * len(names)], [], len(names) + 1
    for (title, detail), group in groupby(part.columns, lambda column: column[:2]):
        span = len(list(group))
        for head, text in zip(heads, (title, detail), strict=True):
            head.append(rf"\multicolumn{{{span}}}{{c}}{{{latex_escape(text)}}}" if text else " &" * (span - 1))
        rules += [rf"\cmidrule(lr){{{at}-{at + span - 1}}}"] if title else []
        at += span
    titles = map(latex_escape, [*names, *(title for *_, title in part.columns)])
    kind, to, space = "tabular", "", ""
    if width <= _PAGE:
        kind, to = "tabular*", rf"{{\ifdim\textwidth<{_PAGE}pt {_PAGE}pt\else\textwidth\fi}}"
        space = r"\extracolsep{\fill}"
    return "\n".join(
        [
            rf"\begin{{{kind}}}{to}{{@{{{space}}}{'l' * (at - 1)}@{{}}}}",
            r"\toprule",
            *(rf"{' & '.join(head)} \\" for head in heads if "multicolumn" in "".join(head)),
            *rules,
            rf"{' & '.join(titles)} \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            rf"\end{{{kind}}}",
        ]
    )


def latex_comments(exhibit: Exhibit, packages: str) -> list[str]:
    """Return the comments at the head of a LaTeX fragment."""
    return [
        *([f"% {exhibit.warning}"] if exhibit.warning else []),
        rf"% Needs \usepackage{{{packages}}}.",
        f"% Provenance: {latex_escape(provenance_text(exhibit, full=True))}",
    ]


def latex_caption(exhibit: Exhibit, kind: str, *sentences: str) -> list[str]:
    """Return the caption with the warning of a simulated run and further sentences, and a label of a kind."""
    warning = rf"\textbf{{{latex_escape(exhibit.warning)}.}} " if exhibit.warning else ""
    text = " ".join(map(latex_escape, (exhibit.caption, *sentences)))
    return [rf"\caption{{{warning}{text}}}", rf"\label{{{kind}:{exhibit.label}}}"]


_LIGATURES = re.compile(r"(?<=[-'`?!])(?=[-'`])")
_LATEX = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "{}$&#%_"},
    # At the start of a row these would be taken for an argument of the line break before it.
    **{letter: f"{{{letter}}}" for letter in "[]*"},
    "\0": "{}",
    "\1": r"$\lambda_c$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "–": "--",
    "“": "``",
    "”": "''",
    "−": "$-$",
    "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$",
    "●": r"$\bullet$",
    "○": r"$\circ$",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "λ": r"$\lambda$",
    "φ": r"$\phi$",
}


def latex_escape(text: str) -> str:
    """Return a text that LaTeX prints unchanged; a letter outside the known ones becomes its code point."""
    apart = _LIGATURES.sub("\0", text.replace("\0", " ").replace("\1", " ").replace("λ_c", "\1"))
    return "".join(_LATEX.get(letter, letter if " " <= letter <= "~" else _unknown(letter)) for letter in apart)


def _unknown(letter: str) -> str:
    return " " if letter.isspace() else f"{{[}}U+{ord(letter):04X}{{]}}"


def _latex_entry(entry: Entry) -> str:
    form = {BEST: r"\textbf{{{}}}", SECOND: r"\underline{{{}}}", "": "{}"}[entry.mark]
    text = form.format(latex_escape(entry.text)) if entry.text else ""
    if len(entry.text) > _LONG:
        text = rf"\parbox[t]{{{_LETTER * _LONG:.0f}pt}}{{\raggedright\strut {text}\strut}}"
    small = latex_escape(entry.sign) + latex_escape(entry.beside)
    first = rf"{text}{{\tiny\,{small}}}" if small else text
    if not entry.below:
        return first
    return rf"\entry{{{first}}}{{{latex_escape(entry.below)}}}"


def _markdown_entry(entry: Entry) -> str:
    form = {BEST: "**{}**", SECOND: "<u>{}</u>", "": "{}"}[entry.mark]
    text = form.format(md_escape(entry.text)) if entry.text else ""
    beside = f" ({entry.beside})" if entry.beside else ""
    below = md_escape(f" [{entry.below}]") if entry.below else ""
    return f"{text}{entry.sign}{beside}{below}"


def md_escape(text: str) -> str:
    """Return a text that no Markdown reader takes for markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", text)


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """Return the lines of a pipe table and an empty one, its fields as given, the first columns flush left."""
    rule = ["---"] * left + ["--:"] * (len(heads) - left)
    return [*(f"| {' | '.join(line)} |" for line in ([md_escape(head) for head in heads], rule, *rows)), ""]


def provenance_text(exhibit: Exhibit, full: bool = False) -> str:
    """Return what identifies the run in one line, in full or as far as a reader of print needs it."""
    return "; ".join(f"{name}: {value}" for name, value in exhibit.provenance.items() if full or name in _PRINTED)

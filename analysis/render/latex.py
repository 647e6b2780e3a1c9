"""A LaTeX fragment: one ``table*`` that needs booktabs, multirow and graphicx and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from analysis.tables import Entry, Mark, Row, Table

_LIGATURES = re.compile(r"(?<=[-'`?!])(?=[-'`])")
_ESCAPES = {
    "\0": "{}",
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    # At the start of a row these would be taken for an argument of the line break before it.
    "[": "{[}",
    "*": "{*}",
    "–": "--",
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
_MARKS = {Mark.NONE: "{}", Mark.BEST: r"\textbf{{{}}}", Mark.SECOND: r"\underline{{{}}}"}


def render(table: Table) -> str:
    """The text of the fragment.

    The table keeps its natural width where that fits the text and shrinks to the width of the text elsewhere.
    """
    return "\n".join(
        [
            *([f"% {table.warning}"] if table.warning else []),
            r"% Needs \usepackage{booktabs,multirow,graphicx}.",
            r"\begin{table*}[t]",
            r"\centering",
            *_caption(table),
            r"\scriptsize",
            r"\setlength{\tabcolsep}{2pt}",
            r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{@{{}}{_alignment(table)}@{{}}}}",
            r"\toprule",
            *_header(table),
            r"\midrule",
            *_body(table.rows, _width_beside(table.rows)),
            r"\bottomrule",
            r"\end{tabular}}",
            *_footer(table),
            r"\end{table*}",
            "",
        ]
    )


def escape(text: str) -> str:
    """Text that LaTeX prints as it stands; a letter outside the known ones becomes its code point."""
    apart = _LIGATURES.sub("\0", text)
    return "".join(_ESCAPES.get(letter, letter if " " <= letter <= "~" else _unknown(letter)) for letter in apart)


def _unknown(letter: str) -> str:
    return " " if letter.isspace() else f"{{[}}U+{ord(letter):04X}]"


def _alignment(table: Table) -> str:
    """Numbers with small print stand at the left, so that it starts below them."""
    alignment = "l" * 2 + "c" * (len(table.heads) - 2)
    columns = zip(*(row.entries for row in table.rows), strict=True)
    for group in table.groups:
        own = [next(columns) for _ in group.columns]
        letters = ("l" if any(entry.below for entry in column) else "c" for column in own)
        alignment += r"@{\hspace{8pt}}" + "".join(letters)
    return alignment


def _header(table: Table) -> Iterator[str]:
    """Three lines: the groups, their details in small print, the columns."""
    blank = " & " * (len(table.heads) - 1)
    groups = [(len(group.columns), group) for group in table.groups]
    titles = [rf"\multicolumn{{{width}}}{{c}}{{{escape(group.title)}}}" for width, group in groups]
    details = [rf"\multicolumn{{{width}}}{{c}}{{\tiny {escape(group.detail)}}}" for width, group in groups]
    yield f"{blank} & {' & '.join(titles)} \\\\[-1pt]"
    yield f"{blank} & {' & '.join(details)} \\\\"
    yield "".join(_rules(table))
    columns = [escape(title) for group in table.groups for title in group.columns]
    yield f"{' & '.join([*map(escape, table.heads), *columns])} \\\\"


def _rules(table: Table) -> Iterator[str]:
    first = len(table.heads) + 1
    for group in table.groups:
        last = first + len(group.columns) - 1
        yield rf"\cmidrule(lr){{{first}-{last}}}"
        first = last + 1


def _width_beside(rows: Sequence[Row]) -> float:
    """Room for the small figures beside numbers, in em of their size, so that the numbers stay in line."""
    return 0.55 * max(len(entry.sign + entry.beside) for row in rows for entry in row.entries)


def _body(rows: Sequence[Row], beside: float) -> Iterator[str]:
    for place, (_, section) in enumerate(groupby(rows, key=lambda row: row.section)):
        if place:
            yield r"\midrule"
        for _, same in groupby(section, key=lambda row: row.labels[0]):
            yield from _same_label(list(same), beside)


def _same_label(rows: Sequence[Row], beside: float) -> Iterator[str]:
    """Rows that share their first label, which is centred over all their printed lines."""
    height = sum(1 + _has_second_line(row) for row in rows)
    label = escape(rows[0].labels[0])
    first = rf"\multirow{{{height}}}{{*}}{{{label}}}" if len(rows) > 1 else label
    for row in rows:
        numbers = [_number(entry, beside) for entry in row.entries]
        end = r"\\[-1pt]" if _has_second_line(row) else r"\\"
        yield f"{' & '.join([first, *map(escape, row.labels[1:]), *numbers])} {end}"
        if _has_second_line(row):
            below = [rf"{{\tiny {escape(entry.below)}}}" if entry.below else "" for entry in row.entries]
            yield f"{' & ' * (len(row.labels) - 1)} & {' & '.join(below)} \\\\"
        first = ""


def _has_second_line(row: Row) -> bool:
    return any(entry.below for entry in row.entries)


def _number(entry: Entry, beside: float) -> str:
    text = _MARKS[entry.mark].format(escape(entry.text)) if entry.text else ""
    small = escape(entry.sign) + escape(entry.beside)
    if not entry.below and not entry.beside:
        return text + small
    return rf"{text}{{\tiny\makebox[{beside:.1f}em][l]{{\,{small}}}}}"


def _caption(table: Table) -> Iterator[str]:
    warning = rf"\textbf{{{escape(table.warning)}.}} " if table.warning else ""
    yield rf"\caption{{{warning}{escape(table.caption)}}}"
    yield rf"\label{{tab:{table.label}}}"
    yield r"\smallskip"


def _footer(table: Table) -> Iterator[str]:
    origin = "; ".join(f"{name}: {value}" for name, value in table.provenance)
    yield r"\par\smallskip"
    yield r"\begin{minipage}{\textwidth}\scriptsize\raggedright"
    yield from (escape(note) for note in table.notes)
    yield rf"\par Provenance: {escape(origin)}."
    yield r"\end{minipage}"

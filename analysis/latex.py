"""LaTeX fragments of tables and captions, with escaping."""

import re
from collections.abc import Sequence
from itertools import groupby

import pandas as pd

from analysis.exhibit import BEST, SECOND, Entry, Exhibit, line_count, provenance_text, section_starts, two_lines

#: Widths of a table in points. Figures have the same: 6.8 and 3.3 inches.
WIDTHS = {"table*": 491.0, "table": 238.0}


def latex(table: Exhibit, parts: Sequence[pd.DataFrame], notes: Sequence[str], kind: str) -> str:
    """Return a LaTeX fragment at 7 pt: one float of a kind of :data:`WIDTHS` per part, then the notes."""
    notes = [*notes, f"Provenance: {provenance_text(table)}."]
    # An entry with a second line below it, deep enough not to touch the next row.
    entry = r"\providecommand{\gmrentry}[2]{\vtop{\hbox{\strut#1}\kern1pt\hbox{\vrule width 0pt depth 4pt#2}}}"
    lines = [*latex_comments(table, "booktabs,multirow,adjustbox"), entry]
    end = [r"\par\smallskip\parbox{\linewidth}{\scriptsize", *(rf"{latex_escape(note)}\par" for note in notes), "}"]
    floats = [
        [
            r"\begin{adjustbox}{max width=\linewidth,max totalheight=0.8\textheight,center}",
            r"\scriptsize\setlength{\tabcolsep}{2.2pt}%",
            *_tabular(part),
            r"\end{adjustbox}",
        ]
        for part in parts
    ]
    if kind == "table":  # One column has no room for both.
        floats.append(end)
    else:
        floats[-1] += end
    captions = [latex_caption(table, "tab"), *[[r"\addtocounter{table}{-1}", r"\caption{Continued.}"]] * len(parts)]
    for caption, content in zip(captions, floats, strict=False):
        lines += [rf"\begin{{{kind}}}[t]", *caption, *content, rf"\end{{{kind}}}"]
    return "\n".join([*lines, ""])


def _tabular(part: pd.DataFrame) -> list[str]:
    body = part.map(_latex_entry)
    names = list(part.index.names[1:])
    joined = [two_lines(names, labels) for _, *labels in part.index]
    body.index = pd.MultiIndex.from_tuples(
        [tuple(_stacked(_latex_text(label), _latex_text(below)) for label, below in labels) for labels in joined]
    )
    names = [name for name, _ in two_lines(names, names)]
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
    return [
        rf"\begin{{tabular}}{{@{{}}{'l' * (at - 1)}@{{}}}}",
        r"\toprule",
        *(rf"{' & '.join(head)} \\" for head in heads if "multicolumn" in "".join(head)),
        *rules,
        rf"{' & '.join(titles)} \\",
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]


def latex_comments(exhibit: Exhibit, packages: str) -> list[str]:
    return [
        *([f"% {exhibit.warning}"] if exhibit.warning else []),
        rf"% Needs \usepackage{{{packages}}}.",
        f"% Provenance: {latex_escape(provenance_text(exhibit, full=True))}",
    ]


def latex_caption(exhibit: Exhibit, kind: str, *sentences: str) -> list[str]:
    """Return caption and label. A simulated run's warning comes first."""
    warning = rf"\textbf{{{latex_escape(exhibit.warning)}.}} " if exhibit.warning else ""
    text = " ".join(map(latex_escape, (exhibit.caption, *sentences)))
    # Tables of several presets may stand in one document.
    label = "-".join(filter(None, (exhibit.provenance.get("preset"), exhibit.label)))
    return [rf"\caption{{{warning}{text}}}", rf"\label{{{kind}:{re.sub('[^A-Za-z0-9]+', '-', label)}}}"]


_LIGATURES = re.compile(r"(?<=[-'`?!])(?=[-'`])")
_LATEX = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "{}$&#%_"},
    # At the start of a row, LaTeX takes these for an argument of the line break.
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
    "↑": r"$\uparrow$",
    "●": r"$\bullet$",
    "○": r"$\circ$",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "λ": r"$\lambda$",
    "φ": r"$\phi$",
}


def latex_escape(text: str) -> str:
    """Escape for LaTeX. Unknown characters become their code point."""
    apart = _LIGATURES.sub("\0", text.replace("\0", " ").replace("\1", " ").replace("λ_c", "\1"))
    return "".join(_LATEX.get(letter, letter if " " <= letter <= "~" else _unknown(letter)) for letter in apart)


def _unknown(letter: str) -> str:
    return " " if letter.isspace() else f"{{[}}U+{ord(letter):04X}{{]}}"


def _latex_text(text: str, form: str = "{}") -> str:
    """Escape and format a text; a long one is set in a paragraph box."""
    escaped = form.format(latex_escape(text)) if text else ""
    return rf"\parbox[t]{{16em}}{{\raggedright\strut {escaped}\strut}}" if line_count(text) > 1 else escaped


def _latex_entry(entry: Entry) -> str:
    form = {BEST: r"\textbf{{{}}}", SECOND: r"\underline{{{}}}", "": "{}"}[entry.mark]
    text = _latex_text(entry.text, form)
    small = latex_escape(entry.sign) + latex_escape(entry.beside)
    first = rf"{text}\,{small}" if small else text
    return _stacked(first, latex_escape(f"[{entry.below}]") if entry.below else "")


def _stacked(first: str, below: str) -> str:
    return rf"\gmrentry{{{first}}}{{{below}}}" if below else first

"""The report as HTML, Markdown and CSV files; the same bytes for the same report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from analysis.claims.lines import Line, line
from analysis.claims.report import LABEL, Report
from analysis.claims.verdicts import Consistency, Verdict
from analysis.table import csv, environment
from analysis.table import md_escape as escape
from harness.files import write_atomically

_TEMPLATE = Path(__file__).with_name("report.html.j2")
_AGAINST = (Consistency.INCONSISTENT, Consistency.PARTLY, Verdict.CONTRADICTED)
_VERDICT_HEADS = ("In print", "Simulation shows", "In this run")


def write(report: Report, folder: Path) -> list[Path]:
    """Write ``claims.html``, ``claims.md`` and ``claims.csv``, each whole or not at all.

    Returns:
        The files written.
    """
    texts = {".html": html(report), ".md": markdown(report), ".csv": csv(pd.DataFrame(report.records), report.warning)}
    for ending, text in texts.items():
        write_atomically(folder / f"{LABEL}{ending}", text)
    return [folder / f"{LABEL}{ending}" for ending in texts]


def html(report: Report) -> str:
    """One page that needs nothing else: no script, no font, no style sheet, no picture."""
    sections = list(_sections(report))
    template = environment().from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        report=report, sections=sections, heads=_heads(report), words=_VERDICT_HEADS, against=_AGAINST
    )


def markdown(report: Report) -> str:
    """Warning, summary, a table a section, notes, provenance."""
    warning = [f"> **{escape(report.warning)}**", ""] if report.warning else []
    found = [*warning, f"# {escape(report.title)}", "", *_spaced(map(escape, report.summary))]
    for section, lines in _sections(report):
        found += [f"## {escape(section)}", "", *_table(report, lines), ""]
    found += [f"- {escape(note)}" for note in report.notes]
    if report.provenance:
        origin = "; ".join(f"{name}: {value}" for name, value in report.provenance.items())
        found += ["", f"Provenance: {escape(origin)}"]
    return "\n".join([*found, ""])


def _heads(report: Report) -> list[str]:
    run = ["Measured", *(["Simulation shows"] if report.simulated else []), "In this run"] if report.cells else []
    return ["The paper says", "Its own numbers", "In print", *run]


def _sections(report: Report) -> Iterator[tuple[str, list[Line]]]:
    for section, judged in report.sections.items():
        yield section, [line(one, report) for one in judged]


def _table(report: Report, lines: Sequence[Line]) -> Iterator[str]:
    heads = _heads(report)
    yield f"| {' | '.join(heads)} |"
    yield f"| {' | '.join(['---'] * len(heads))} |"
    for one in lines:
        says = [f"{escape(one.says)} ({escape(one.place)}; {escape(one.key)})", *map(escape, one.remarks)]
        run = [_cell(one.measured), *([one.shown] if report.simulated else []), one.verdict] if report.cells else []
        yield f"| {' | '.join(['<br>'.join(says), _cell(one.printed), one.in_print, *run])} |"


def _cell(texts: Iterable[str]) -> str:
    return "<br>".join(map(escape, texts))


def _spaced(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (text, "")

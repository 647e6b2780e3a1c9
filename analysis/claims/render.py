"""The report as HTML, Markdown and CSV files; the same bytes for the same report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.claims.declared import ROUNDING, Claim
from analysis.claims.judge import Consistency, Judged, Outcome, Part, Verdict
from analysis.claims.report import LABEL, Report, label
from analysis.table import DAGGER, NOT_RUN, csv, environment
from analysis.table import md_escape as escape
from harness.files import write_atomically

_TEMPLATE = Path(__file__).with_name("report.html.j2")
_AGAINST = (Consistency.INCONSISTENT, Consistency.PARTLY, Verdict.CONTRADICTED)
_VERDICT_HEADS = ("In print", "Simulation shows", "In this run")
# More parts than these are summed up, and only those are shown that are not as the rest.
_SHOWN_PARTS = 6
# In units of the last digit: what rounding leaves open is shown from here.
_SHOWN_WIDTH = 4
_SHOWN_MISSING = 160
_MINUS = "−"
_DIGITS = {"price": 5, "nats": 3, "roles": 0}
_SUFFIX = {"%": " %"}


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


@dataclass(frozen=True, slots=True)
class Line:
    """One claim.

    Attributes:
        printed: What the paper's own numbers give, one text a part.
        in_print: The verdict on them.
        measured: What the run gives, one text a part, and what is missing.
        shown: What a simulation showed; empty otherwise.
        verdict: On the run.
        remarks: What must hold, and the note of the claim.
    """

    key: str
    says: str
    place: str
    printed: tuple[str, ...]
    in_print: str
    measured: tuple[str, ...]
    shown: str
    verdict: str
    remarks: tuple[str, ...]


def line(judged: Judged, report: Report) -> Line:
    """The texts of one claim."""
    shown = judged.outcome if judged.outcome in (Outcome.HOLDS, Outcome.FAILS, Outcome.UNDECIDED) else ""
    return Line(
        key=judged.claim.key,
        says=judged.claim.says,
        place=judged.claim.place,
        printed=tuple(_printed(judged, report)),
        in_print=judged.consistency,
        measured=tuple(_measured(judged, report)) if report.cells else (),
        shown=shown if report.simulated else "",
        verdict=judged.verdict if report.cells else "",
        remarks=tuple(_remarks(judged)),
    )


def _printed(judged: Judged, report: Report) -> Iterator[str]:
    odd = [part for part in judged.parts if part.consistency is not Consistency.CONSISTENT]
    if judged.consistency is Consistency.NOT_CHECKABLE:
        yield "no number printed"
        return
    if len(judged.parts) > _SHOWN_PARTS:
        yield f"{len(judged.parts) - len(odd)} of {len(judged.parts)} parts consistent"
    for part in odd if len(judged.parts) > _SHOWN_PARTS else judged.parts:
        ending = f" ({part.consistency})" if judged.consistency is Consistency.PARTLY else ""
        yield _named(part, judged, report, _value_in_print(part, judged.claim) + ending)


def _value_in_print(part: Part, claim: Claim) -> str:
    if part.computed is None:
        return NOT_RUN
    value, low, high = part.computed
    # What only rounding can explain needs a digit more.
    digits = _digits(claim) + (claim.tolerance == ROUNDING)
    is_wide = high - low > _SHOWN_WIDTH * 10.0**-digits or claim.tolerance == ROUNDING
    allowed = f" {_interval(low, high, digits)}" if is_wide else ""
    said = "" if part.stated is None else f", stated {part.stated:.6g}"
    return f"{number(value, digits)}{_SUFFIX.get(claim.unit, '')}{allowed}{said}"


def _measured(judged: Judged, report: Report) -> Iterator[str]:
    if judged.outcome is Outcome.NO_RESULT:
        return
    mixed = len({part.finding.outcome for part in judged.parts}) > 1
    for part in judged.parts:
        if part.finding.value is not None:
            ending = f" ({part.finding.outcome})" if mixed else ""
            yield _named(part, judged, report, _value_in_run(part, judged.claim) + ending)
    yield from dict.fromkeys(part.finding.reason for part in judged.parts if part.finding.reason)
    missing = dict.fromkeys(what for part in judged.parts for what in part.finding.missing)
    if missing:
        yield _short(f"missing: {'; '.join(missing)}")


def _value_in_run(part: Part, claim: Claim) -> str:
    finding, digits = part.finding, _digits(claim)
    if finding.value is None:
        return NOT_RUN
    sign = DAGGER if finding.calibrated else ""
    text = f"{number(finding.value, digits)}{_SUFFIX.get(claim.unit, '')}{sign}"
    if finding.interval is not None:
        text += f" {_interval(*finding.interval, digits)}"
    if part.covers is not None and part.stated is not None:
        text += f", {part.stated:.6g} {'inside' if part.covers else 'outside'}"
    whole = "" if finding.all_calls is None else number(finding.all_calls, digits)
    return f"{text}; all calls: {whole}" if whole not in ("", number(finding.value, digits)) else text


def _named(part: Part, judged: Judged, report: Report, text: str) -> str:
    name = label(part, report.titles) if len(judged.parts) > 1 else ""
    return f"{name}: {text}" if name else text


def _remarks(judged: Judged) -> Iterator[str]:
    regions = dict.fromkeys(str(part.region) for part in judged.parts if part.region is not None)
    if regions:
        words = {**_SUFFIX, "points": " points", "steps": " steps", "nats": " nats"}
        yield f"Holds where {' or '.join(regions)}{words.get(judged.claim.unit, '')}.".replace("-", _MINUS)
    if judged.claim.note:
        yield judged.claim.note


def _short(text: str) -> str:
    """A claim about the whole main table may miss a hundred cells."""
    return text if len(text) <= _SHOWN_MISSING else f"{text[:_SHOWN_MISSING].rsplit(';', 1)[0]}; the CSV has all"


def _digits(claim: Claim) -> int:
    return _DIGITS.get(claim.unit, 2)


def _interval(low: float, high: float, digits: int) -> str:
    return f"[{number(low, digits)}, {number(high, digits)}]"


def number(value: float, digits: int) -> str:
    """With a true minus, and no sign on what prints as zero."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", _MINUS)

"""The report as HTML, Markdown and CSV files; the same bytes for the same report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.claims.declared import ROUNDING, Claim
from analysis.claims.judge import Consistency, Judged, Outcome, Part
from analysis.claims.report import DECIDED, Report
from analysis.table import DAGGER, NOT_RUN, csv, environment
from analysis.table import md_escape as escape
from harness.files import write_atomically

_TEMPLATE = Path(__file__).with_name("report.html.j2")
# More parts than these are summed up, and only those are shown that are not as the rest.
_SHOWN_PARTS = 6
# In units of the last digit: what rounding leaves open is shown from here.
_SHOWN_WIDTH = 4
_SHOWN_MISSING = 160
_DIGITS = {"price": 5, "nats": 3, "roles": 0}
_WORDS = {"%": " %", "points": " points", "steps": " steps", "nats": " nats"}


def write(report: Report, folder: Path) -> list[Path]:
    """Write ``claims.html``, ``claims.md`` and ``claims.csv``, each whole or not at all.

    Returns:
        The files written.
    """
    texts = {"html": html(report), "md": markdown(report), "csv": csv(pd.DataFrame(report.records), report.warning)}
    paths = {folder / f"claims.{ending}": text for ending, text in texts.items()}
    for path, text in paths.items():
        write_atomically(path, text)
    return list(paths)


def html(report: Report) -> str:
    """One page that needs nothing else: no script, no font, no style sheet, no picture."""
    template = environment().from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(report=report, heads=_heads(report), line=line)


def markdown(report: Report) -> str:
    """Warning, summary, a table a section, notes, provenance."""
    heads = _heads(report)
    warning = [f"> **{escape(report.warning)}**", ""] if report.warning else []
    found = [*warning, f"# {escape(report.title)}", ""]
    for sentence in report.summary:
        found += [escape(sentence), ""]
    for section, judged in report.sections.items():
        found += [f"## {escape(section)}", "", f"| {' | '.join(heads)} |", f"| {' | '.join(['---'] * len(heads))} |"]
        for one in (line(each, report) for each in judged):
            says = [f"{escape(one['says'])} ({escape(one['place'])}; {escape(one['key'])})"]
            first = "<br>".join([*says, *map(escape, one["remarks"])])
            rest = [field if isinstance(field, str) else "<br>".join(map(escape, field)) for field in one["fields"]]
            found.append(f"| {' | '.join([first, *rest])} |")
        found.append("")
    found += [f"- {escape(note)}" for note in report.notes]
    if report.provenance:
        origin = "; ".join(f"{name}: {value}" for name, value in report.provenance.items())
        found += ["", f"Provenance: {escape(origin)}"]
    return "\n".join([*found, ""])


def _heads(report: Report) -> list[str]:
    run = ["Measured", *(["Simulation shows"] if report.run.simulated else []), "In this run"] if report.cells else []
    return ["The paper says", "Its own numbers", "In the paper", *run]


def line(judged: Judged, report: Report) -> dict[str, Any]:
    """What a line says of one claim; ``fields`` are of the columns after the first, a list where a part has its own."""
    claim, fields = judged.claim, [list(_printed(judged, report)), judged.consistency.value]
    if report.cells:
        shown = [judged.outcome if judged.outcome in DECIDED else ""] if report.run.simulated else []
        fields += [list(_measured(judged, report)), *shown, judged.verdict]
    return {
        "key": claim.key,
        "says": claim.says,
        "place": claim.place,
        "remarks": list(_remarks(judged)),
        "fields": fields,
    }


def _printed(judged: Judged, report: Report) -> Iterator[str]:
    odd = [part for part in judged.parts if part.consistency is not Consistency.CONSISTENT]
    if judged.consistency is Consistency.NOT_CHECKABLE:
        yield "no number printed"
        return
    if len(judged.parts) > _SHOWN_PARTS:
        yield f"{len(judged.parts) - len(odd)} of {len(judged.parts)} parts consistent"
    for part in odd if len(judged.parts) > _SHOWN_PARTS else judged.parts:
        ending = f" ({part.consistency})" if judged.consistency is Consistency.PARTLY else ""
        yield _named(part, judged, report, _value_in_paper(part, judged.claim) + ending)


def _value_in_paper(part: Part, claim: Claim) -> str:
    if part.computed is None:
        return NOT_RUN
    value, low, high = part.computed
    # What only rounding can explain needs a digit more.
    digits = _digits(claim) + (claim.tolerance == ROUNDING)
    is_wide = high - low > _SHOWN_WIDTH * 10.0**-digits or claim.tolerance == ROUNDING
    allowed = f" {_interval((low, high), digits)}" if is_wide else ""
    said = "" if part.stated is None else f", stated {part.stated:.6g}"
    return f"{_amount(value, claim, digits)}{allowed}{said}"


def _measured(judged: Judged, report: Report) -> Iterator[str]:
    if judged.outcome is Outcome.NO_RESULT:
        return
    mixed = len({part.outcome for part in judged.parts}) > 1
    for part in judged.parts:
        if part.value is not None:
            ending = f" ({part.outcome})" if mixed else ""
            yield _named(part, judged, report, _value_in_run(part, judged.claim, part.value) + ending)
    yield from dict.fromkeys(part.reason for part in judged.parts if part.reason)
    missing = dict.fromkeys(what for part in judged.parts for what in part.missing)
    if missing:
        text = f"missing: {'; '.join(missing)}"
        # A claim about the whole main table may miss a hundred cells.
        short = len(text) <= _SHOWN_MISSING
        yield text if short else f"{text[:_SHOWN_MISSING].rsplit(';', 1)[0]}; the CSV has all"


def _value_in_run(part: Part, claim: Claim, value: float) -> str:
    digits = _digits(claim)
    text = _amount(value, claim, digits) + (DAGGER if part.calibrated else "")
    if part.interval is not None:
        text += f" {_interval(part.interval, digits)}"
    if part.covers is not None and part.stated is not None:
        text += f", {part.stated:.6g} {'inside' if part.covers else 'outside'}"
    whole = "" if part.all_calls is None else number(part.all_calls, digits)
    return f"{text}; all calls: {whole}" if whole not in ("", number(value, digits)) else text


def _named(part: Part, judged: Judged, report: Report, text: str) -> str:
    name = report.label(part) if len(judged.parts) > 1 else ""
    return f"{name}: {text}" if name else text


def _remarks(judged: Judged) -> Iterator[str]:
    regions = dict.fromkeys(str(part.region) for part in judged.parts if part.region is not None)
    if regions:
        yield f"Holds where {' or '.join(regions)}{_WORDS.get(judged.claim.unit, '')}.".replace("-", "−")
    if judged.claim.note:
        yield judged.claim.note


def _digits(claim: Claim) -> int:
    return _DIGITS.get(claim.unit, 2)


def _amount(value: float, claim: Claim, digits: int) -> str:
    return number(value, digits) + (" %" if claim.unit == "%" else "")


def _interval(ends: Sequence[float], digits: int) -> str:
    return f"[{', '.join(number(end, digits) for end in ends)}]"


def number(value: float, digits: int) -> str:
    """With a true minus, and no sign on what prints as zero."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")

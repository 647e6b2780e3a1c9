"""The report on all claims as HTML, Markdown and CSV files; the same bytes for the same claims and cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.claims.declared import ROUNDING, Claim
from analysis.claims.judge import Consistency, Judged, Outcome, Part, judge
from analysis.claims.measured import Run, Seeds
from analysis.claims.statements import CLAIMS
from analysis.frames import Results
from analysis.markdown import grid
from analysis.notes import settings
from analysis.provenance import by_server, provenance, table_run_id, warning
from analysis.published import Published, load
from analysis.results import Cell, short
from analysis.source import Source
from analysis.table import DAGGER, NOT_RUN, csv, environment
from analysis.table import md_escape as escape
from analysis.timings import read_timings
from harness.files import write_atomically
from harness.runner import config

_DECIDED = (Outcome.HOLDS, Outcome.FAILS, Outcome.UNDECIDED)
_TEMPLATE = Path(__file__).with_name("report.html.j2")
# More parts than these are summed up, and only those are shown that are not as the rest.
_SHOWN_PARTS = 6
# In units of the last digit: what rounding leaves open is shown from here.
_SHOWN_WIDTH = 4
_SHOWN_MISSING = 160
_DIGITS = {"price": 5, "nats": 3, "roles": 0}
_WORDS = {"%": " %", "points": " points", "steps": " steps", "nats": " nats"}
_PRINT_NOTE = (
    "In the paper: the value that the paper's own numbers give; in brackets what the numbers before rounding allow. "
    "Consistent: it is what the paper says, within the tolerance of the claim. Partly: so for some parts only. Not "
    "checkable: the paper prints no number for it."
)
_RUN_NOTE = (
    "Measured: mean over seeds and questions with a 95 % percentile bootstrap interval, in which all methods share the "
    "questions drawn; costs are of a test question. Reproduced: the whole interval is where the claim says. "
    "Contradicted: the whole interval is elsewhere. Undecided: it contains the border, or there is none. Not run: a "
    "cell is missing. A claim of several parts needs all of them."
)
_VALUE_NOTE = (
    "Where the paper names a value, a run must show its direction; whether the interval contains the value is said "
    "as well. docs/claims.md has the margins. About the paper only: arithmetic that no run can support."
)


@dataclass(frozen=True)
class Report:
    """Every claim, judged.

    Attributes:
        judged: In the order of the declaration.
        published: Names for what the claims are about.
        cells: The finished cells; none where the paper alone was judged.
        run: The same cells, timings, and the seeds there ought to be.
    """

    judged: tuple[Judged, ...]
    published: Published
    cells: tuple[Cell, ...] = ()
    run: Run = field(default_factory=Run)

    @property
    def warning(self) -> str:
        """The sentence about simulated backbones, or nothing."""
        return warning(self.run.simulated)

    @property
    def title(self) -> str:
        """The title of the report."""
        against = f" and the run {self.cells[0].run.preset!r}" if self.cells else ""
        return f"The statements of the paper, compared with its own numbers{against}"

    @property
    def sections(self) -> Mapping[str, Sequence[Judged]]:
        """The claims by section, in the order of first appearance."""
        names = dict.fromkeys(one.claim.section for one in self.judged)
        return {name: [one for one in self.judged if one.claim.section == name] for name in names}

    @property
    def summary(self) -> tuple[str, str]:
        """The number of claims by verdict, a sentence a side."""
        in_paper = f"In the paper: {_counted(one.consistency for one in self.judged)}."
        if not self.cells:
            return in_paper, "No finished cell: no run was judged."
        shown = _counted(one.outcome for one in self.judged if one.outcome in _DECIDED) or "none"
        simulated = f" The simulated ones: {shown}." if self.run.simulated else ""
        return in_paper, f"In this run: {_counted(one.verdict for one in self.judged)}.{simulated}"

    @property
    def notes(self) -> list[str]:
        """Notes for the reader."""
        if not self.cells:
            return [_PRINT_NOTE]
        asked = f"Seeds: {self.run.seeds}. A statement that lacks one of its seeds is not run."
        fitted = (
            f"{DAGGER}: rests on cells whose accuracies, lengths and costs were fitted to the paper; that a statement "
            "about them holds is not evidence."
        )
        calibrated = any(part.calibrated for one in self.judged for part in one.parts)
        changed = settings(Results(self.cells, self.published)).strip()
        found = [_PRINT_NOTE, _RUN_NOTE, _VALUE_NOTE, asked, fitted if calibrated else "", changed]
        return [note for note in found if note]

    @property
    def provenance(self) -> dict[str, str]:
        """The identity of the run."""
        return {**provenance(self.cells), "timings": str(len(self.run.timings))} if self.cells else {}

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """Titles by key of benchmarks, methods and backbones."""
        methods = {key: entry.title for key, entry in config.methods().items()}
        return {**methods, **self.published.benchmarks, **self.published.backbones}

    def label(self, part: Part) -> str:
        """What tells a part from the others; empty for the only one."""
        named = (one for value in part.variables.values() for one in (value if isinstance(value, tuple) else (value,)))
        return ", ".join(self.titles.get(one, one) for one in named if isinstance(one, str))

    @property
    def records(self) -> list[dict[str, str]]:
        """Every part of every claim, a record each.

        ``paper_verdict`` and ``outcome`` are of the part, ``claim_paper_verdict`` and ``verdict`` of the whole claim. A
        field is empty where there is nothing to say. What differs between the runs behind a number is joined by a
        space, hashes in short form; ``run_id`` of several is the hash over theirs.
        """
        return [self._record(one, part) for one in self.judged for part in one.parts]

    def _record(self, one: Judged, part: Part) -> dict[str, str]:
        claim, runs = one.claim, [cell.run for cell in part.cells]
        published, published_low, published_high = part.computed or (None, None, None)
        low, high = part.interval or (None, None)
        return {
            "claim": claim.key,
            "part": self.label(part),
            "section": claim.section,
            "place": claim.place,
            "says": claim.says,
            "unit": claim.unit,
            "published": _exact(published),
            "published_low": _exact(published_low),
            "published_high": _exact(published_high),
            "stated": _exact(part.stated),
            "tolerance": "" if claim.stated is None else str(claim.tolerance),
            "paper_verdict": part.consistency,
            "claim_paper_verdict": one.consistency,
            "holds": "" if part.region is None else str(part.region),
            "measured": _exact(part.value),
            "low": _exact(low),
            "high": _exact(high),
            "measured_all_calls": _exact(part.all_calls),
            "contains_published": "" if part.covers is None else str(part.covers).lower(),
            "calibrated": str(part.calibrated).lower() if runs else "",
            "outcome": part.outcome,
            "missing": "; ".join(part.missing),
            "reason": "; ".join(filter(None, (part.not_printed, part.reason))),
            "verdict": one.verdict,
            "simulated": str(self.run.simulated).lower() if runs else "",
            "note": claim.note,
            "cells": " ".join(run.cell for run in runs),
            "run_id": runs[0].run_id if len(runs) == 1 else table_run_id(part.cells) if runs else "",
            "seeds": " ".join(map(str, sorted({run.seed for run in runs}))),
            "config_hash": " ".join(sorted({short(run.config_hash) for run in runs})),
            "code": " ".join(sorted({short(run.code) for run in runs})),
            "data_checksum": " ".join(sorted({short(run.data.checksum) for run in runs})),
            "backbones": "; ".join(sorted(_backbones(part.cells))),
        }


def build(source: Source | None = None, claims: Iterable[Claim] = CLAIMS) -> Report:
    """Judge every claim.

    Args:
        source: The finished cells and timings of a preset; ``None`` or no cell judges the paper alone.
        claims: Those to judge.

    Raises:
        UserError: A cell or timing cannot be read, two of them do not go together, or the cells
            are of no preset that would tell their seeds.
    """
    published = load()
    if source is None or not source.cells:
        return Report(tuple(judge(claim, published, Run()) for claim in claims), published)
    results, seeds = source.results(), Seeds.of(source.run)
    run = Run(results.trainings, read_timings(source.timings, results.cells), seeds)
    return Report(tuple(judge(claim, published, run) for claim in claims), published, results.cells, run)


def write(report: Report, folder: Path) -> list[Path]:
    """Write ``claims.html``, ``claims.md`` and ``claims.csv``, each whole or not at all.

    Returns:
        The files written.
    """
    texts = {"html": html(report), "md": markdown(report), "csv": csv(pd.DataFrame(report.records), report.warning)}
    for ending, text in texts.items():
        write_atomically(folder / f"claims.{ending}", text)
    return [folder / f"claims.{ending}" for ending in texts]


def html(report: Report) -> str:
    """One page that needs nothing else: no script, no font, no style sheet, no picture."""
    template = environment().from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(report=report, heads=_heads(report), line=line)


def markdown(report: Report) -> str:
    """Warning, summary, a table a section, notes, provenance."""
    heads = _heads(report)
    found = [f"> **{escape(report.warning)}**", ""] if report.warning else []
    found += [f"# {escape(report.title)}", ""]
    for sentence in report.summary:
        found += [escape(sentence), ""]
    for section, judged in report.sections.items():
        rows = []
        for one in (line(each, report) for each in judged):
            says = f"{escape(one['says'])} ({escape(one['place'])}; {escape(one['key'])})"
            rest = [field if isinstance(field, str) else "<br>".join(map(escape, field)) for field in one["fields"]]
            rows.append(["<br>".join([says, *map(escape, one["remarks"])]), *rest])
        found += [f"## {escape(section)}", "", *grid(heads, rows, left=len(heads))]
    found += [f"- {escape(note)}" for note in report.notes]
    if report.provenance:
        origin = "; ".join(f"{name}: {value}" for name, value in report.provenance.items())
        found += ["", f"Provenance: {escape(origin)}"]
    return "\n".join([*found, ""])


def _heads(report: Report) -> list[str]:
    run = ["Measured", *(["Simulation shows"] if report.run.simulated else []), "In this run"] if report.cells else []
    return ["The paper says", "Its own numbers", "In print", *run]


def line(judged: Judged, report: Report) -> dict[str, Any]:
    """What a line says of one claim; ``fields`` are of the columns after the first, a list where a part has its own."""
    claim, fields = judged.claim, [list(_printed(judged, report)), judged.consistency.value]
    if report.cells:
        shown = [judged.outcome if judged.outcome in _DECIDED else ""] if report.run.simulated else []
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
        yield _named(part, judged, report, _value_in_print(part, judged.claim) + ending)


def _value_in_print(part: Part, claim: Claim) -> str:
    if part.computed is None:
        return NOT_RUN
    value, low, high = part.computed
    # What only rounding can explain needs a digit more.
    digits = _DIGITS.get(claim.unit, 2) + (claim.tolerance == ROUNDING)
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
    digits = _DIGITS.get(claim.unit, 2)
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


def _amount(value: float, claim: Claim, digits: int) -> str:
    return number(value, digits) + (" %" if claim.unit == "%" else "")


def _interval(ends: Sequence[float], digits: int) -> str:
    return f"[{', '.join(number(end, digits) for end in ends)}]"


def number(value: float, digits: int) -> str:
    """With a true minus, and no sign on what prints as zero."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def _backbones(cells: Iterable[Cell]) -> set[str]:
    named = [(key, identity) for cell in cells for key, identity in cell.run.backbones.items()]
    return {f"{key}={identity['model']}{by_server(identity)}" for key, identity in named}


def _counted(values: Iterable[str]) -> str:
    times = Counter(values)
    return ", ".join(f"{count} {value}" for value, count in sorted(times.items(), key=lambda one: (-one[1], one[0])))


def _exact(value: float | None) -> str:
    """Differences of decimals carry dust in their last digits."""
    return "" if value is None else f"{round(value, 9) + 0.0:.10g}"

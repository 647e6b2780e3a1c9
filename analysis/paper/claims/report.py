"""The report on all claims, as Markdown, CSV and HTML files. Deterministic."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.exhibit import NOT_RUN, Exhibit, csv, grid, number, provenance_text, render
from analysis.exhibit import md_escape as escape
from analysis.notes import settings
from analysis.paper.claims.declaration import CLAIMS, ROUNDING, Claim
from analysis.paper.claims.judge import (
    BY_CONSTRUCTION,
    COLUMNS,
    CONSISTENT,
    INCONSISTENT,
    NOT_CHECKABLE,
    PARTLY,
    Part,
    judge,
    not_judged,
)
from analysis.paper.claims.measured import Run, seeds_of
from analysis.paper.claims.numbers import Row
from analysis.provenance import provenance
from analysis.source import Source
from analysis.statistics import CONFIDENCE

_NUMBERS = ["published", "published_low", "published_high", "stated", "measured", "low", "high", "measured_all_calls"]
_USUAL = 100 * CONFIDENCE
# Claims with more parts than this are summarised: only exceptions are shown.
_SHOWN_PARTS = 6
# Minimum width of the rounding range, in units of the last digit, from which it is shown.
_SHOWN_WIDTH = 4
# Number of missing cells that are named; a claim may lack a hundred.
_SHOWN_MISSING = 4
_DIGITS = {"price": 5, "nats": 3, "cosine": 3, "roles": 0}
_WORDS = {"%": " %", "points": " points", "steps": " steps", "nats": " nats"}
# Beginnings of notes that do not apply to a simulated run.
_OF_REAL_RUNS = ("Measured", "Reproduced")
_PRIMARY = "Primary endpoints"


@dataclass(frozen=True, eq=False, kw_only=True)
class ClaimsReport(Exhibit):
    """Every claim, judged."""

    judged: Sequence[Sequence[Part]]  # the parts of each claim, in the order of the declaration
    notes: Sequence[str]

    @property
    def summary(self) -> tuple[str, str]:
        """Count the claims by verdict: one sentence on the paper, one on this run."""
        wholes = [parts[0] for parts in self.judged]
        counted = _counted(whole["verdict"] for whole in wholes if whole["claim_outcome"] != BY_CONSTRUCTION)
        stands = [whole["stands"] for whole in wholes if "stands" in whole]
        corrected = f" After correction {sum(stands)} of {len(stands)} secondary verdicts stand." if stands else ""
        against = [whole for whole in wholes if whole["claim_paper_verdict"] in (INCONSISTENT, PARTLY)]
        bases = _counted("implied" if whole["implied"] else "stated" for whole in against)
        return (
            f"In the paper: {_counted(whole['claim_paper_verdict'] for whole in wholes)}."
            + (f" Of those that its numbers contradict: {bases}." if against else ""),
            f"In this run: {counted}.{corrected}",
        )

    @property
    def sections(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Return the table's lines by section, one per claim. ``fields`` are its cells by column title."""
        lines: dict[str, list[Mapping[str, Any]]] = {}
        for parts in self.judged:
            whole = parts[0]
            fields = {
                "Its own numbers": list(_in_paper(parts)),
                "In print": whole["claim_paper_verdict"],
                "Measured": list(_in_run(parts)),
                "In this run": whole["verdict"],
            }
            line = {**whole, "remarks": list(_remarks(parts)), "fields": fields}
            lines.setdefault(_PRIMARY if whole["primary"] else whole["section"], []).append(line)
        return {name: lines[name] for name in sorted(lines, key=lambda name: name != _PRIMARY)}

    def contents(self) -> Mapping[str, str]:
        html = render("paper/claims/report.html.j2", report=self)
        return {"md": _markdown(self), "csv": csv(self.frame, self.warning), "html": html}


def build(source: Source, claims: Sequence[Claim] = CLAIMS) -> ClaimsReport:
    """Judge every claim by the finished cells of a preset, or by the paper alone if there are none."""
    seeds, run, changed, origin = seeds_of(source.preset), Run(), "", {}
    if source.cells:
        results = source.results()
        run = Run(results.cells_to_judge, seeds)
        changed = settings(results).strip()
        origin = dict(provenance([cell.run for cell in results.cells]))
    judged = not_judged(claims) if run.simulated else judge(claims, run)
    legend = [note for note in source.legend if not (run.simulated and note.startswith(_OF_REAL_RUNS))]
    legend.append(
        f"Seeds of a row: {_listed(seeds.usual)}; in statements about training seeds {_listed(seeds.several)}. "
        "A statement that lacks one of its seeds is not run."
    )
    return ClaimsReport(
        label="claims",
        caption=f"The statements of the paper, compared with its own numbers and the run {source.preset.name!r}",
        simulated=run.simulated,
        provenance=origin,
        frame=_frame([part for parts in judged for part in parts]),
        judged=judged,
        notes=[*legend, changed] if changed else legend,
    )


def _frame(records: Sequence[Part]) -> pd.DataFrame:
    parts = pd.DataFrame(records)
    why = parts.reindex(columns=["not_printed", "reason"]).apply(lambda row: "; ".join(row.dropna()), axis=1)
    missing = parts.reindex(columns=["missing"])["missing"].map("; ".join, na_action="ignore")
    frame = parts.reindex(columns=COLUMNS).assign(reason=why, missing=missing)
    # Remove floating-point noise, and negative zero.
    return frame.assign(**(frame[_NUMBERS].astype(float).round(9) + 0.0))


def _listed(seeds: Mapping[Row, Sequence[int]]) -> str:
    return " or ".join(sorted({"/".join(map(str, numbers)) for numbers in seeds.values()})) or "none"


def _markdown(report: ClaimsReport) -> str:
    output = [f"> **{escape(report.warning)}**", ""] if report.warning else []
    output += [f"# {escape(report.caption)}", ""]
    for sentence in report.summary:
        output += [escape(sentence), ""]
    for section, lines in report.sections.items():
        heads, rows = ["The paper says", *lines[0]["fields"]], []
        for line in lines:
            says = f"{escape(line['says'])} ({escape(line['place'])}; {escape(line['claim'])})"
            fields = line["fields"].values()
            rest = [field if isinstance(field, str) else "<br>".join(map(escape, field)) for field in fields]
            rows.append(["<br>".join([says, *map(escape, line["remarks"])]), *rest])
        output += [f"## {escape(section)}", "", *grid(heads, rows, left=len(heads))]
    output += [f"- {escape(note)}" for note in report.notes]
    if report.provenance:
        output += ["", f"Provenance: {escape(provenance_text(report, full=True))}"]
    return "\n".join([*output, ""])


def _in_paper(parts: Sequence[Part]) -> Iterator[str]:
    verdict, many = parts[0]["claim_paper_verdict"], len(parts) > _SHOWN_PARTS
    if verdict == NOT_CHECKABLE:
        yield "no number printed"
        return
    odd = [part for part in parts if part["paper_verdict"] != CONSISTENT]
    if many:
        yield f"{len(parts) - len(odd)} of {len(parts)} parts consistent"
    for part in odd if many else parts:
        ending = f" ({part['paper_verdict']})" if verdict == PARTLY else ""
        yield _label(part, parts) + (_published(part) if "published" in part else NOT_RUN) + ending


def _published(part: Part) -> str:
    # A value that only rounding explains needs one more digit.
    is_rounded = part.get("tolerance") == ROUNDING
    digits = _DIGITS.get(part["unit"], 2) + is_rounded
    low, high = part["published_low"], part["published_high"]
    is_wide = is_rounded or high - low > _SHOWN_WIDTH * 10.0**-digits
    stated = f", stated {part['stated']:.6g}" if "stated" in part else ""
    return _amount(part, part["published"], (low, high) if is_wide else (), digits) + stated


def _in_run(parts: Sequence[Part]) -> Iterator[str]:
    is_mixed = len({part["outcome"] for part in parts}) > 1
    for part in parts:
        if "measured" in part:
            yield _label(part, parts) + _measured(part) + (f" ({part['outcome']})" if is_mixed else "")
    yield from dict.fromkeys(part["reason"] for part in parts if "reason" in part)
    if not parts[0].get("stands", True):
        yield "does not stand after correction for the secondary statements"
    if missing := list(dict.fromkeys(text for part in parts for text in part.get("missing", ()))):
        more = ["the CSV has all"] if len(missing) > _SHOWN_MISSING else []
        yield f"missing: {'; '.join(missing[:_SHOWN_MISSING] + more)}"


def _measured(part: Part) -> str:
    digits = _DIGITS.get(part["unit"], 2)
    ends = (part["low"], part["high"]) if "low" in part else ()
    text = _amount(part, part["measured"], ends, digits)
    if part.get("confidence", _USUAL) != _USUAL:
        text += f" ({part['confidence']:g} %)"
    if "agrees_with_published" in part and "stated" in part:
        text += f", {part['stated']:.6g} {'agrees' if part['agrees_with_published'] else 'differs'}"
    counted = number(part["measured"], digits)
    whole = number(part["measured_all_calls"], digits) if "measured_all_calls" in part else counted
    return text if whole == counted else f"{text}; all calls: {whole}"


def _label(part: Part, parts: Sequence[Part]) -> str:
    return f"{part['part']}: " if part["part"] and len(parts) > 1 else ""


def _remarks(parts: Sequence[Part]) -> Iterator[str]:
    if parts[0]["implied"]:
        yield "Implied: an inference of ours or a second reading."
    regions = dict.fromkeys(part["holds"] for part in parts if "holds" in part)
    if regions:
        yield f"Holds where {' or '.join(regions)}{_WORDS.get(parts[0]['unit'], '')}.".replace("-", "−")
    if parts[0]["note"]:
        yield parts[0]["note"]


def _amount(part: Part, value: float, ends: Sequence[float], digits: int) -> str:
    interval = f" [{', '.join(number(end, digits) for end in ends)}]" if ends else ""
    return number(value, digits) + (" %" if part["unit"] == "%" else "") + interval


def _counted(values: Iterable[str]) -> str:
    times = Counter(values)
    return ", ".join(f"{count} {value}" for value, count in sorted(times.items(), key=lambda pair: (-pair[1], pair[0])))

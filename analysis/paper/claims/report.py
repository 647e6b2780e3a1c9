"""The report on all statements, as Markdown, CSV and HTML files. Deterministic."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from analysis.exhibit import BEST, Entry, number
from analysis.notes import of_run
from analysis.paper.claims.judge import NOT_CHECKABLE, PARTLY, VERDICTS, Judged, judge
from analysis.paper.claims.measured import ENDS, Record, Run, other_models, seeds_of
from analysis.paper.claims.statements import CLAIMS, PAPER, Claim
from analysis.provenance import provenance
from analysis.registry import Source
from analysis.statistics import CONFIDENCE
from analysis.table import Table, labels_of, lay_out

#: The columns of ``claims.csv``, a row per comparison; ``paper_verdict`` and ``verdict`` are of the whole statement.
COLUMNS = (
    *("claim", "part", "section", "place", "says", "row", "than", "benchmark", "measure", "unit", "holds", "published"),
    *("published_low", "published_high", "stated", "paper_outcome", "paper_verdict", "measured", *ENDS, "confidence"),
    *("measured_all_calls", "agrees_with_published", "outcome", "missing", "reason", "verdict"),
    *("note", "cells", "implied", "primary", "run_id", "seeds", "config_hash", "code", "data_checksum", "backbones"),
)
_NUMBERS = ["published", "published_low", "published_high", "stated", "measured", *ENDS, "measured_all_calls"]
# Minimum width of the rounding range from which it is shown.
_SHOWN_WIDTH = 0.04
# Number of missing cells that are named; a statement may lack a hundred.
_SHOWN_MISSING = 4
_DIGITS = {"nats": 3, "cosine": 3}
_AGAINST = ("inconsistent", "partly", "contradicted")


def build(source: Source, claims: Sequence[Claim] = CLAIMS) -> Table:
    """Judge every statement by the finished cells of a preset, or by the paper alone if there are none."""
    results = source.results() if source.cells else None
    run, refusal, reason = Run(), "", ""
    if results and results.simulated:
        refusal = "not judged: simulated"
    elif results:
        run = Run(results.cells_to_judge, seeds_of(source.preset))
        if others := other_models(results.cells):
            refusal, reason = "not judged: other models", f" These are not the paper's: {'; '.join(others)}."
    judged = judge(claims, run, refusal)
    return Table(
        label="claims",
        caption=f"The statements of the paper, compared with its own numbers and the run {source.preset.name!r}.",
        summary=(
            f"In the paper: {_counted(told.paper_verdict for told in judged)}.",
            f"In this run: {_counted(told.verdict for told in judged)}.{reason}",
        ),
        simulated=bool(results and results.simulated),
        provenance=provenance([cell.run for cell in results.cells]) if results else {},
        shown=_shown(sorted(judged, key=lambda told: not told.claim.primary)),
        frame=_frame(judged),
        has_latex=False,
        notes=source.legend,
        run_notes=tuple(of_run(results)) if results else (),
    )


def _shown(judged: Sequence[Judged]) -> pd.DataFrame:
    """Return the printed form: a row per statement. Verdicts against the paper are marked."""
    labels = []
    fields: dict[str, list[Entry]] = {"Its own numbers": [], "In print": [], "Measured": [], "In this run": []}
    for told in judged:
        section = "Primary endpoints" if told.claim.primary else told.claim.section
        says = f"{told.claim.says} ({told.claim.place}; {told.claim.key})"
        labels.append((section, section, " ".join([says, *_remarks(told)])))
        for name, text in (("Its own numbers", _in_paper(told)), ("Measured", _in_run(told))):
            fields[name].append(Entry("; ".join(text)))
        for name, verdict in (("In print", told.paper_verdict), ("In this run", told.verdict)):
            fields[name].append(Entry(verdict, BEST if verdict in _AGAINST else ""))
    return lay_out(labels_of(labels, ("Section", "The paper says")), {("", ""): fields})


def _frame(judged: Sequence[Judged]) -> pd.DataFrame:
    """Return a row per comparison."""
    records = [
        {"claim": told.claim.key, "part": place, "paper_verdict": told.paper_verdict, "verdict": told.verdict}
        | told.claim.model_dump(exclude={"parts"})
        | record
        for told in judged
        for place, part in enumerate(told.parts, 1)
        for record in part
    ]
    frame = pd.DataFrame(records).reindex(columns=COLUMNS)
    frame = frame.assign(missing=frame["missing"].map("; ".join, na_action="ignore"))
    # Remove floating-point noise, and negative zero.
    return frame.assign(**(frame[_NUMBERS].astype(float).round(9) + 0.0))


def _in_paper(told: Judged) -> Iterator[str]:
    if told.paper_verdict == NOT_CHECKABLE:
        yield "no number printed"
        return
    for part in told.parts:
        record = _nearest(part, "published", "paper_outcome")
        low, high = record["published_low"], record["published_high"]
        stated = f", stated {number(record['stated'], 2)}" if "stated" in record else ""
        text = _amount(record, "published", (low, high) if high - low > _SHOWN_WIDTH else ())
        ending = f" ({record['paper_outcome']})" if told.paper_verdict == PARTLY else ""
        yield _label(record, told, part) + text + stated + ending


def _in_run(told: Judged) -> Iterator[str]:
    is_mixed = len({record["outcome"] for record in told.records}) > 1
    for part in told.parts:
        if all("measured" in record for record in part):
            record = _nearest(part, "measured", "outcome")
            ending = f" ({record['outcome']})" if is_mixed else ""
            yield _label(record, told, part) + _measured(record) + ending
    yield from dict.fromkeys(record["reason"] for record in told.records if "reason" in record)
    if missing := list(dict.fromkeys(text for record in told.records for text in record.get("missing", ()))):
        more = ["the CSV has all"] * (len(missing) > _SHOWN_MISSING)
        yield f"missing: {'; '.join(missing[:_SHOWN_MISSING] + more)}"


def _nearest(part: Sequence[Record], value: str, outcome: str) -> Record:
    """Return the comparison that decides a part: one that fails, or the one nearest to the threshold."""
    sign = -1 if part[0]["holds"].startswith("below") else 1
    return min(part, key=lambda record: (list(VERDICTS).index(record[outcome]), sign * record[value]))


def _measured(record: Record) -> str:
    text = _amount(record, "measured", (record["low"], record["high"]) if "low" in record else ())
    if "low" in record and record["confidence"] != 100 * CONFIDENCE:
        text += f" ({record['confidence']:g} %)"
    if "agrees_with_published" in record:
        text += f", {number(record['stated'], 2)} {'agrees' if record['agrees_with_published'] else 'differs'}"
    if "measured_all_calls" in record:
        text += f"; all calls: {_amount(record, 'measured_all_calls')}"
    return text


def _label(record: Record, told: Judged, part: Sequence[Record]) -> str:
    """Return what distinguishes a comparison from the others of its statement, and how many its part has."""
    names = ("row", "than", "measure", "benchmark")
    varying = [name for name in names if len({each[name] for each in told.records}) > 1]
    words = ", ".join(PAPER.benchmarks.get(record[name], record[name]) for name in varying)
    count = f" (nearest of {len(part)})" if len(part) > 1 else ""
    return f"{words}{count}: " if words else ""


def _remarks(told: Judged) -> Iterator[str]:
    claim = told.claim
    if claim.implied:
        yield "Implied: an inference of ours or a second reading."
    if regions := [region for region in dict.fromkeys(record["holds"] for record in told.records) if region]:
        yield f"Holds if {' or '.join(regions)} ({told.records[0]['unit']}).".replace("-", "−")
    if claim.is_rank:
        yield "A rank: the numbers of a run get no verdict."
    if claim.note:
        yield claim.note


def _amount(record: Record, name: str, ends: Sequence[float] = ()) -> str:
    digits = _DIGITS.get(record["unit"], 2)
    interval = f" [{', '.join(number(end, digits) for end in ends)}]" if ends else ""
    return number(record[name], digits) + (" %" if record["unit"] == "%" else "") + interval


def _counted(values: Iterable[str]) -> str:
    return ", ".join(f"{count} {value}" for value, count in Counter(values).most_common())

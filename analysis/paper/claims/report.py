"""The report on all statements, each judged by the paper's own numbers and by the intervals of a run."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from analysis.exhibit import BEST, Entry, number
from analysis.frames import Results
from analysis.notes import describe_run
from analysis.paper.claims.measured import ENDS, Record, Run, compare, other_models, seeds_of
from analysis.paper.claims.statements import CLAIMS, PAPER, Claim, Comparison, Part, Side
from analysis.statistics import CONFIDENCE, TAIL
from analysis.table import Table, labels_of, lay_out
from harness.runner.layout import POOL

#: Outcomes of a comparison.
HOLDS, FAILS, UNDECIDED, ABSENT = "holds", "does not hold", "undecided", "absent"
#: Verdicts on a statement by the paper's own numbers.
CONSISTENT, PARTLY, INCONSISTENT, NOT_CHECKABLE = "consistent", "partly", "inconsistent", "not checkable"
NUMBERS_ONLY = "numbers only"
#: Verdicts on a statement by a run. It has the first of these outcomes that any of its comparisons has.
VERDICTS = {ABSENT: "not run", FAILS: "contradicted", UNDECIDED: "undecided", HOLDS: "reproduced"}
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


class Judged(NamedTuple):
    """A statement with its comparisons by part, and the verdicts of the paper's own numbers and of a run."""

    claim: Claim
    parts: Sequence[Sequence[Record]]
    paper_verdict: str
    verdict: str

    @property
    def records(self) -> list[Record]:
        return [record for part in self.parts for record in part]


def judge(claims: Sequence[Claim], run: Run, refusal: str = "") -> list[Judged]:
    """Judge every statement. The primary endpoints share a risk of 5 % (Bonferroni).

    Args:
        claims: Statements, in the order of the result.
        run: Finished cells; without any, only the paper's own numbers are judged.
        refusal: Stands in place of every verdict if the run decides nothing.
    """
    tail = TAIL / max(1, sum(claim.primary for claim in claims))
    return [_judge(claim, run, tail if claim.primary else TAIL, refusal) for claim in claims]


def _judge(claim: Claim, run: Run, tail: float, refusal: str) -> Judged:
    is_judged = not (claim.is_rank or refusal)
    expanded = [(part, comparisons) for part in claim.parts for comparisons in part.expanded()]
    tails = tail, tail / sum(len(comparisons) for _, comparisons in expanded)
    parts = [
        [_describe(part, each) | _in_paper(part, each) | _in_run(part, each, run, tails, is_judged) for each in some]
        for part, some in expanded
    ]
    outcome = conjunction({record["outcome"] for records in parts for record in records})
    verdict = NUMBERS_ONLY if claim.is_rank and outcome != ABSENT else VERDICTS[outcome]
    return Judged(claim, parts, _paper_verdict(parts), refusal or verdict)


def conjunction(outcomes: Collection[str]) -> str:
    """Return the outcome of several comparisons: it holds if all hold, and fails if one fails."""
    return next(outcome for outcome in VERDICTS if outcome in outcomes)


def _paper_verdict(parts: Sequence[Sequence[Record]]) -> str:
    outcomes = {conjunction({record["paper_outcome"] for record in records}) for records in parts}
    if ABSENT in outcomes:
        return NOT_CHECKABLE
    if not parts[0][0]["holds"]:
        return NUMBERS_ONLY
    if FAILS in outcomes:
        return PARTLY if HOLDS in outcomes else INCONSISTENT
    return CONSISTENT


def decide(part: Part, low: float, high: float, *corrected: float) -> str:
    """Return the outcome of an interval, undecided at a threshold; it fails by the corrected one, if that is given."""
    if part.at_least < low and high < part.at_most:
        return HOLDS
    low, high = corrected or (low, high)
    return FAILS if high < part.at_least or low > part.at_most else UNDECIDED


def _describe(part: Part, comparison: Comparison) -> Record:
    row, than = (*map(_name, comparison.sides), "")[:2]
    names = {"row": row, "than": than, "benchmark": comparison.benchmark, "measure": comparison.sides[0].measure}
    return names | {"unit": comparison.unit, "holds": str(part)}


def _name(side: Side) -> str:
    method, backbone = side.row
    title = PAPER.methods[method].title if method in PAPER.methods else PAPER.variants.get(method, method)
    return f"{title}, {PAPER.backbones[backbone]}"


def _in_paper(part: Part, comparison: Comparison) -> Record:
    """Compare a part with the paper's tables, as far as their rounding decides it."""
    record: Record = {} if part.stated is None else {"stated": float(part.stated)}
    if (published := comparison.published()) is None:
        return record | {"paper_outcome": ABSENT}
    value, low, high = published
    outcome = decide(part, low, high)
    if part.stated is not None:
        # Half a unit of its last digit.
        half = 0.5 * 10.0 ** -len(str(part.stated).partition(".")[2])
        outcome = outcome if low - half <= part.stated <= high + half else FAILS
    return record | {"published": value, "published_low": low, "published_high": high, "paper_outcome": outcome}


def _in_run(part: Part, comparison: Comparison, run: Run, tails: Sequence[float], is_judged: bool) -> Record:
    """Measure a comparison in a run, and judge it."""
    if not run.cells:
        return {"outcome": ABSENT, "missing": ("any cell",)}
    record = compare(run, comparison, tails, part.stated if is_judged else None)
    if "missing" in record:
        return record | {"outcome": ABSENT}
    record["confidence"] = round(100 * (1 - 2 * tails[0]), 2)
    if comparison.sides[0].measure == "cost":
        every = comparison._replace(sides=tuple(side._replace(measure="cost_total") for side in comparison.sides))
        record["measured_all_calls"] = compare(run, every)["measured"]
    ends = [record[name] for name in ENDS if name in record]
    return record | {"outcome": decide(part, *ends) if is_judged and ends else UNDECIDED}


def build(results: Results, claims: Sequence[Claim] = CLAIMS) -> Table:
    """Judge every statement by the finished cells of a preset, or by the paper alone if there are none."""
    run, refusal, reason = Run(), "", ""
    if results.simulated:
        refusal = "not judged: simulated"
    elif results.folders:
        # Pool rows are judged only if the pool is the paper's.
        cells = {key: of for key, of in results.cells_by_row.items() if not (results.has_other_pool and key[1] == POOL)}
        run = Run(cells, seeds_of(results.run))
        if others := other_models(results.cells):
            refusal, reason = "not judged: other models", f" These are not the paper's: {'; '.join(others)}."
    judged = judge(claims, run, refusal)
    caption = f"The statements of the paper, compared with its own numbers and the run {results.run.name!r}."
    return Table(
        **describe_run(results, _frame(judged), caption=caption),
        summary=(
            f"In the paper: {_counted(told.paper_verdict for told in judged)}.",
            f"In this run: {_counted(told.verdict for told in judged)}.{reason}",
        ),
        shown=_shown(sorted(judged, key=lambda told: not told.claim.primary)),
        has_latex=False,
    )


def _shown(judged: Sequence[Judged]) -> pd.DataFrame:
    """Return the printed form: a row per statement. Verdicts against the paper are marked."""
    labels = []
    fields: dict[str, list[Entry]] = {"Its own numbers": [], "In print": [], "Measured": [], "In this run": []}
    for told in judged:
        section = "Primary endpoints" if told.claim.primary else told.claim.section
        says = f"{told.claim.says} ({told.claim.place}; {told.claim.key})"
        labels.append((section, section, " ".join([says, *_remarks(told)])))
        for name, text in (("Its own numbers", _texts_of_paper(told)), ("Measured", _texts_of_run(told))):
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


def _texts_of_paper(told: Judged) -> Iterator[str]:
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


def _texts_of_run(told: Judged) -> Iterator[str]:
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

"""Judge every statement by the paper's own numbers and by the intervals of a run."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from analysis.paper.claims.measured import ENDS, Record, Run, compare
from analysis.paper.claims.statements import PAPER, Claim, Comparison, Part, Side
from analysis.statistics import TAIL

#: Outcomes of a comparison.
HOLDS, FAILS, UNDECIDED, ABSENT = "holds", "does not hold", "undecided", "absent"
#: Verdicts on a statement by the paper's own numbers.
CONSISTENT, PARTLY, INCONSISTENT, NOT_CHECKABLE = "consistent", "partly", "inconsistent", "not checkable"
NUMBERS_ONLY = "numbers only"
#: Verdicts on a statement by a run. It has the first of these outcomes that any of its comparisons has.
VERDICTS = {ABSENT: "not run", FAILS: "contradicted", UNDECIDED: "undecided", HOLDS: "reproduced"}


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

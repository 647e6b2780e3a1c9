"""Judge every part of every claim by the paper's own numbers and by a run's intervals."""

import bisect
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from analysis.paper.claims.declaration import ROUNDING, Claim, Region
from analysis.paper.claims.joint import End, interval
from analysis.paper.claims.measured import Group, Measure, Run, evaluate
from analysis.paper.claims.numbers import PAPER, AbsentError, Numbers, Ordered, Printed, Value, compute, resolve
from analysis.provenance import identity, table_run_id
from analysis.statistics import TAIL, Spread

#: Whether the paper's own numbers support a statement.
CONSISTENT, PARTLY, INCONSISTENT, NOT_CHECKABLE = "consistent", "partly", "inconsistent", "not checkable"
NOT_RUN, FAILS, UNDECIDED, NO_RESULT, HOLDS = "not run", "does not hold", "undecided", "no result of a run", "holds"
BY_CONSTRUCTION, NOT_JUDGED = "by construction", "not judged: simulated"
#: Outcomes of a part and the verdict of each. A claim has the first outcome of any of its parts; a part
#: counts as failed only if it fails after Bonferroni's correction over the parts. Statements that are
#: true by construction are not counted.
VERDICTS = {
    NOT_RUN: "not run",
    FAILS: "contradicted",
    UNDECIDED: "undecided",
    NO_RESULT: "about the paper only",
    HOLDS: "reproduced",
    BY_CONSTRUCTION: "true by construction",
}
#: The columns of ``claims.csv``; ``paper_verdict`` and ``outcome`` are of a part, ``claim_paper_verdict`` and
#: ``verdict`` of the whole claim.
COLUMNS = (
    *("claim", "part", "section", "place", "says", "unit", "published", "published_low", "published_high", "stated"),
    *("tolerance", "paper_verdict", "claim_paper_verdict", "holds", "measured", "low", "high", "confidence"),
    *("measured_all_calls", "agrees_with_published", "outcome", "missing", "reason", "verdict"),
    *("simulated", "note", "cells", "implied", "primary", "stands", "run_id", "seeds", "config_hash"),
    *("code", "data_checksum", "backbones"),
)
#: A judged part of a claim: its non-empty columns.
Part: TypeAlias = dict[str, Any]
#: The region of a part, and the spread of its value.
Evidence: TypeAlias = tuple[Region, Ordered | Spread]
_ALL_CALLS = {"cost": "cost_total"}
# Tolerance for floating-point sums of printed decimals.
_FUZZ = 1e-9


def not_judged(claims: Sequence[Claim]) -> list[list[Part]]:
    """Return the parts of each claim for a simulated run: only the paper is judged."""
    judged = judge(claims, Run())
    for part in (part for parts in judged for part in parts if part["claim_outcome"] == NOT_RUN):
        part.pop("missing", None)
        part |= {"outcome": NOT_JUDGED, "claim_outcome": NOT_JUDGED, "verdict": NOT_JUDGED}
    return judged


def judge(claims: Sequence[Claim], run: Run) -> list[list[Part]]:
    """Return the judged parts of each claim. ``stands``: whether a secondary verdict stands after correction.

    Primary endpoints share a risk of 5 % (Bonferroni). The other statements have a false discovery rate of 5 %
    (Benjamini and Hochberg).
    """
    measure = cache(run.measure)
    tail = TAIL / max(1, sum(claim.primary for claim in claims))  # one-sided risk of each primary endpoint
    judged = [_judge(claim, run, measure, tail if claim.primary else TAIL) for claim in claims]
    secondary = [parts for parts in judged if not parts[0]["primary"] and all("evidence" in part for part in parts)]
    ranks = [_rank(parts, len(secondary)) for parts in secondary]
    largest = max((rank for rank in ranks if sum(other <= rank for other in ranks) >= rank), default=0)
    for parts, rank in zip(secondary, ranks, strict=True):
        for part in parts if rank <= len(secondary) else ():
            part["stands"] = rank <= largest
    return judged


def _rank(parts: Sequence[Part], tests: int) -> int:
    """Return the smallest k for which a claim is decided at k / ``tests`` of the risk; ``tests`` + 1 if none."""
    evidence, outcome = [part["evidence"] for part in parts], parts[0]["claim_outcome"]
    shares = range(1, tests + 1)
    return 1 + bisect.bisect_left(
        shares, True, key=lambda share: outcome != UNDECIDED and outcome_of(evidence, TAIL * share / tests) == outcome
    )


def _judge(claim: Claim, run: Run, measure: Measure, tail: float) -> list[Part]:
    """Return the judged parts of a claim, each with the verdict of the whole claim."""
    parts = [_judge_part(claim, arguments, run, measure, tail) for arguments in claim.parts()]
    in_paper = {part["paper_verdict"] for part in parts}
    outcomes = {part.get("jointly", part["outcome"]) for part in parts}
    outcome = next(outcome for outcome in VERDICTS if outcome in outcomes)
    whole = {
        "claim_paper_verdict": in_paper.pop() if len(in_paper) == 1 else PARTLY,
        "verdict": VERDICTS[outcome],
        "claim_outcome": outcome,
    }
    return [part | whole for part in parts]


def _judge_part(claim: Claim, arguments: tuple[Any, ...], run: Run, measure: Measure, tail: float) -> Part:
    """Judge one part by the paper's numbers and by a run."""
    region = _of_part(claim.holds, Printed(), arguments)
    names = ("section", "place", "says", "implied", "primary", "unit", "note")
    part = {"claim": claim.key, "part": _label(arguments), **{name: getattr(claim, name) for name in names}}
    part |= _in_paper(claim, arguments, region)
    if region is None:
        return part | {"outcome": NO_RESULT}
    part["holds"] = str(region)
    if not run.cells:
        return part | {"outcome": NOT_RUN, "missing": ("any cell",)}
    value, n = evaluate(claim, arguments, measure)
    if n.missing:
        return part | {"outcome": NOT_RUN, "missing": tuple(n.missing)}
    part |= _identity(n.groups)
    if n.unknown:
        return part | {"outcome": UNDECIDED, "reason": f"nothing was drawn for {'; '.join(n.unknown)}"}
    part["measured"] = _number(value)
    if "cost" in n.measures:
        total, _ = evaluate(claim, arguments, lambda asked: measure((*asked[:3], _ALL_CALLS.get(asked[3], asked[3]))))
        part["measured_all_calls"] = _number(total)
    # Only values without sampling error can be required to be exact.
    if region.low == region.high:
        return part | {"outcome": BY_CONSTRUCTION if part["measured"] in region else FAILS}
    if not n.of_items:
        return part | {"outcome": UNDECIDED, "reason": "no interval: from a log or a clock, not from questions"}
    part |= _decide_part(claim, arguments, region, n.spread(value, claim), tail)
    printed = part.get("stated", part.get("published"))
    if "low" in part and printed is not None:
        low, high = interval(n.spread(value, claim, published=n.published_sizes))
        part["agrees_with_published"] = low.at <= printed <= high.at
    return part


def _decide_part(
    claim: Claim, arguments: tuple[Any, ...], region: Region, evidence: Ordered | Spread, tail: float
) -> Part:
    """Return the interval that decides a part, its outcome and the reason."""
    low, high = interval(evidence, tail)
    if math.isinf(low.at) and math.isinf(high.at):
        return {"outcome": UNDECIDED, "reason": "no interval: no question moves the value"}
    several = len(list(claim.parts()))
    outcome, jointly = decide(region, low, high), decide(region, *interval(evidence, tail / several))
    part: Part = {"low": low.at, "high": high.at, "confidence": round(100 * (1 - 2 * tail), 2), "outcome": outcome}
    part["evidence"] = region, evidence
    words = _deciding(region, outcome, low, high)
    if outcome == FAILS != jointly:
        part["jointly"] = UNDECIDED
        words.append(f"not after correction for {several} parts")
    if words:
        part["reason"] = "; ".join(words) if several == 1 else f"{_label(arguments)}: {'; '.join(words)}"
    return part


def _label(arguments: tuple[Any, ...]) -> str:
    titles = {key: argument.title for key, argument in PAPER.methods.items()}
    titles |= {**PAPER.variants, **PAPER.benchmarks, **PAPER.backbones}
    names = [_label(each) if isinstance(each, tuple) else titles.get(each, each) for each in arguments]
    return ", ".join(name for name in names if isinstance(name, str))


def _of_part(field: Any, n: Numbers, arguments: Sequence[Any]) -> Any:
    """Return a claim's field for one part. The field is a mapping by argument, a function, or one value."""
    if isinstance(field, Mapping):
        return field[arguments[0]]
    return field(n, *arguments) if callable(field) else field


def _in_paper(claim: Claim, arguments: Sequence[Any], region: Region | None) -> Part:
    """Compare the stated value of a part with the value that the paper's tables give."""
    stated = _of_part(claim.stated, Printed(), arguments)
    quantity = claim.quantity if claim.published is None else claim.published
    part: Part = {} if stated is None else {"stated": float(stated), "tolerance": str(claim.tolerance)}
    try:
        value, low, high = compute(lambda n: _of_part(quantity, n, arguments))
    except AbsentError as absent:
        return part | {"paper_verdict": NOT_CHECKABLE, "not_printed": f"not printed: {absent}"}
    if claim.tolerance == ROUNDING:
        agrees = low - _FUZZ <= stated <= high + _FUZZ
    else:
        agrees = stated is None or abs(value - stated) <= claim.tolerance + _FUZZ
    verdict = CONSISTENT if agrees and (region is None or value in region) else INCONSISTENT
    return part | {"published": value, "published_low": low, "published_high": high, "paper_verdict": verdict}


def _deciding(region: Region, outcome: str, low: End, high: End) -> list[str]:
    """Name the row that decides, if the claim is about the best of several."""
    against, nearest = (high, low) if math.isinf(region.high) else (low, high)
    if outcome == FAILS and against.name:
        return [f"decided by {against.name}"]
    return [f"open because of {nearest.name}"] if outcome == UNDECIDED and nearest.name else []


def _number(value: Value) -> float:
    return float(np.ravel(resolve(value))[0])


def _identity(groups: Sequence[Group]) -> Part:
    """Return the columns that identify the cells behind a part."""
    runs = [cell.run for group in groups for cell in group]
    if not runs:
        return {}
    return {
        **identity(runs),
        "simulated": any(run.simulated for run in runs),
        "cells": " ".join(run.cell for run in runs),
        "run_id": runs[0].run_id if len(runs) == 1 else table_run_id(run.run_id for run in runs),
        "config_hash": " ".join(sorted({run.config_hash for run in runs})),
        "code": " ".join(sorted({run.code for run in runs})),
        "data_checksum": " ".join(sorted({run.data.checksum for run in runs})),
    }


def outcome_of(evidence: Sequence[Evidence], tail: float = TAIL) -> str:
    """Return the outcome of a claim from all its parts, at one-sided risk ``tail``.

    It holds if every part holds. It fails if one part fails after Bonferroni's correction over the parts.
    """
    share = tail / len(evidence)
    if any(decide(region, *interval(spread, share)) == FAILS for region, spread in evidence):
        return FAILS
    holds = all(decide(region, *interval(spread, tail)) == HOLDS for region, spread in evidence)
    return HOLDS if holds else UNDECIDED


def decide(region: Region, low: End, high: End) -> str:
    """Return the outcome of an interval against a region; undecided if it touches the border."""
    if region.low < low.at and high.at < region.high:
        return HOLDS
    return FAILS if high.at < region.low or low.at > region.high else UNDECIDED

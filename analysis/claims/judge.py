"""Every part of every claim, against the paper's own numbers and a run with its intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from analysis.claims.declaration import ROUNDING, Claim, Region
from analysis.claims.joint import End, interval, spreads
from analysis.claims.measured import Measured, Run
from analysis.claims.numbers import PAPER, AbsentError, Printed, Value, compute, resolve
from analysis.finished_cells import FinishedCell, short
from analysis.provenance import by_server, table_run_id
from analysis.statistics import TAIL

#: Whether the paper's own numbers support a statement.
CONSISTENT, PARTLY, INCONSISTENT, NOT_CHECKABLE = "consistent", "partly", "inconsistent", "not checkable"
NOT_RUN, FAILS, UNDECIDED, NO_RESULT, HOLDS = "not run", "does not hold", "undecided", "no result of a run", "holds"
#: What a run shows of a part, and what that says of the paper; of a claim, the first that any of its parts has, of
#: those that do not hold only where they would not after Bonferroni's correction over the parts.
VERDICTS = {
    NOT_RUN: "not run",
    FAILS: "contradicted",
    UNDECIDED: "undecided",
    NO_RESULT: "about the paper only",
    HOLDS: "reproduced",
}
#: The columns of ``claims.csv``; ``paper_verdict`` and ``outcome`` are of a part, ``claim_paper_verdict`` and
#: ``verdict`` of the whole claim.
COLUMNS = (
    *("claim", "part", "section", "place", "says", "unit", "published", "published_low", "published_high", "stated"),
    *("tolerance", "paper_verdict", "claim_paper_verdict", "holds", "measured", "low", "high", "measured_all_calls"),
    *("agrees_with_published", "calibrated", "outcome", "missing", "reason", "verdict", "simulated", "note", "cells"),
    *("implied", "run_id", "seeds", "config_hash", "code", "data_checksum", "backbones"),
)
#: One part of a claim, judged: those of the columns in which there is something to say.
Part: TypeAlias = dict[str, Any]
# Sums of decimal fractions differ from what is printed by less than this, however they are added up.
_FUZZ = 1e-9


def judge(claims: Sequence[Claim], run: Run) -> list[list[Part]]:
    """Return the judged parts of each claim."""
    frame = run.frame(claims)
    return [_judge(claim, run, frame) for claim in claims]


def _judge(claim: Claim, run: Run, frame: pd.DataFrame) -> list[Part]:
    """Return the judged parts of a claim, each with the verdict of the whole claim."""
    words = {name: getattr(claim, name) for name in ("section", "place", "says", "implied", "unit", "note")}
    parts: list[Part] = []
    combinations = list(claim.parts())
    for arguments in combinations:
        region = _of_part(claim.holds, arguments)
        part = {"claim": claim.key, "part": _label(arguments), **words}
        part |= _in_paper(claim, arguments, region)
        printed = part.get("stated", part.get("published"))
        if region is None:
            part |= {"outcome": NO_RESULT}
        elif not run.cells:
            part |= {"holds": str(region), "outcome": NOT_RUN, "missing": ("any cell",)}
        else:
            part |= {"holds": str(region), **_in_run(claim, arguments, region, frame, printed, len(combinations))}
        parts.append(part)
    in_paper = {part["paper_verdict"] for part in parts}
    outcomes = {part.get("jointly", part["outcome"]) for part in parts}
    outcome = next(outcome for outcome in VERDICTS if outcome in outcomes)
    # Simulated backbones say nothing of the paper.
    is_simulated = run.simulated and outcome in (FAILS, UNDECIDED, HOLDS)
    whole = {
        "claim_paper_verdict": in_paper.pop() if len(in_paper) == 1 else PARTLY,
        "verdict": "simulated" if is_simulated else VERDICTS[outcome],
        "claim_outcome": outcome,
    }
    return [part | whole for part in parts]


def _label(arguments: tuple[Any, ...]) -> str:
    titles = {key: argument.title for key, argument in PAPER.methods.items()}
    titles |= {**PAPER.variants, **PAPER.benchmarks, **PAPER.backbones}
    names = (
        _label(argument) if isinstance(argument, tuple) else titles.get(argument, argument) for argument in arguments
    )
    return ", ".join(name for name in names if isinstance(name, str))


def _of_part(field: Any, arguments: Sequence[Any]) -> Any:
    """Return the value that a field of a claim has for one part: it may be by argument, computed, or one for all."""
    if isinstance(field, Mapping):
        return field[arguments[0]]
    return field(Printed(), *arguments) if callable(field) else field


def _in_paper(claim: Claim, arguments: Sequence[Any], region: Region | None) -> Part:
    """Return what the paper's own numbers say of a part: the stated and the computed value, and whether they agree."""
    stated = _of_part(claim.stated, arguments)
    part: Part = {} if stated is None else {"stated": float(stated), "tolerance": str(claim.tolerance)}
    try:
        value, low, high = compute(lambda n: (claim.published or claim.quantity)(n, *arguments))
    except AbsentError as absent:
        return part | {"paper_verdict": NOT_CHECKABLE, "not_printed": f"not printed: {absent}"}
    if claim.tolerance == ROUNDING:
        agrees = low - _FUZZ <= stated <= high + _FUZZ
    else:
        agrees = stated is None or abs(value - stated) <= claim.tolerance + _FUZZ
    verdict = CONSISTENT if agrees and (region is None or value in region) else INCONSISTENT
    return part | {"published": value, "published_low": low, "published_high": high, "paper_verdict": verdict}


def _in_run(
    claim: Claim, arguments: tuple[Any, ...], region: Region, frame: pd.DataFrame, printed: float | None, parts: int
) -> Part:
    """Return what a run says of a part: value, interval, outcome, and the cells behind it."""
    n = Measured(frame)
    value = _number(claim.quantity(n, *arguments))
    if n.missing:
        return {"outcome": NOT_RUN, "missing": n.missing}
    part = identity([cell for cells in n.used for cell in cells])
    if n.unknown:
        return part | {"outcome": UNDECIDED, "reason": f"nothing was drawn for {'; '.join(n.unknown)}"}
    part |= {"measured": value}
    if "cost" in n.measures:
        part["measured_all_calls"] = _number(claim.quantity(Measured(frame, all_calls=True), *arguments))
    # Nothing that is sampled could be required to have a single value.
    if region.low == region.high:
        return part | {"outcome": HOLDS if value in region else FAILS}
    if not n.of_items:
        return part | {"outcome": UNDECIDED, "reason": "no interval: from a log or a timing job, not from questions"}
    jackknife = n.jackknife
    sampled = claim.quantity(Measured(frame, jackknife), *arguments)
    spread = partial(jackknife.spread, are_points=True)
    joint = spreads(sampled, spread)
    low, high = interval(joint)
    if math.isinf(low.at) and math.isinf(high.at):
        return part | {"outcome": UNDECIDED, "reason": "no interval: no question moves the value"}
    outcome, jointly = (decide(region, *interval(joint, tail)) for tail in (TAIL, TAIL / parts))
    part |= {"low": low.at, "high": high.at, "outcome": outcome}
    words = _deciding(region, outcome, low, high)
    if outcome == FAILS != jointly:
        part["jointly"] = UNDECIDED
        words.append(f"not after correction for {parts} parts")
    if words:
        part["reason"] = "; ".join(words) if parts == 1 else f"{_label(arguments)}: {'; '.join(words)}"
    if printed is not None and not part["calibrated"] and not part["simulated"]:
        ends = interval(spreads(sampled, partial(spread, published=n.published_sizes)))
        part["agrees_with_published"] = ends[0].at <= printed <= ends[1].at
    return part


def _deciding(region: Region, outcome: str, low: End, high: End) -> list[str]:
    """Return which row decides, in words, where the best of several is asked for."""
    against, nearest = (high, low) if math.isinf(region.high) else (low, high)
    if outcome == FAILS and against.name:
        return [f"decided by {against.name}"]
    return [f"open because of {nearest.name}"] if outcome == UNDECIDED and nearest.name else []


def _number(value: Value) -> float:
    return float(np.ravel(resolve(value))[0])


def identity(cells: Sequence[FinishedCell]) -> Part:
    """Return the columns that identify the cells behind a statement; none if there is no cell."""
    runs = [cell.run for cell in cells]
    if not runs:
        return {}
    backbones = [(key, backbone) for run in runs for key, backbone in run.backbones.items()]
    return {
        "calibrated": any(run.calibrated for run in runs),
        "simulated": any(run.simulated for run in runs),
        "cells": " ".join(run.cell for run in runs),
        "run_id": runs[0].run_id if len(runs) == 1 else table_run_id(cells),
        "seeds": " ".join(map(str, sorted({run.seed for run in runs}))),
        "config_hash": " ".join(sorted({short(run.config_hash) for run in runs})),
        "code": " ".join(sorted({short(run.code) for run in runs})),
        "data_checksum": " ".join(sorted({short(run.data.checksum) for run in runs})),
        "backbones": "; ".join(sorted({f"{key}={used['model']}{by_server(used)}" for key, used in backbones})),
    }


def decide(region: Region, low: End, high: End) -> str:
    """Return the outcome of an interval against a region: undecided if it touches the region's border."""
    if region.low < low.at and high.at < region.high:
        return HOLDS
    return FAILS if high.at < region.low or low.at > region.high else UNDECIDED

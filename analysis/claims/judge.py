"""Every part of every claim, against the paper's own numbers and a run; intervals by percentile bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from analysis.claims.declaration import ROUNDING, Claim, Region
from analysis.claims.measured import Cells, Draw, Measured, Run
from analysis.claims.numbers import PAPER, AbsentError, Array, Printed, compute
from analysis.provenance import by_server, table_run_id
from analysis.results import Cell, short
from analysis.statistics import CONFIDENCE, resampled

#: Whether the paper's own numbers support a statement.
CONSISTENT, PARTLY, INCONSISTENT, NOT_CHECKABLE = "consistent", "partly", "inconsistent", "not checkable"
NOT_RUN, FAILS, UNDECIDED, NO_RESULT, HOLDS = "not run", "does not hold", "undecided", "no result of a run", "holds"
#: What a run shows of a part, and what that says of the paper; of a claim, the first that any of its parts has.
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
    *("contains_published", "calibrated", "outcome", "missing", "reason", "verdict", "simulated", "note", "cells"),
    *("run_id", "seeds", "config_hash", "code", "data_checksum", "backbones"),
)
#: One part of a claim, judged: those of the columns in which there is something to say.
Part: TypeAlias = dict[str, Any]
# Sums of decimal fractions differ from what is printed by less than this, however they are added up.
_FUZZ = 1e-9
_RESAMPLES = 2000
_BATCH = 200


def judge(claim: Claim, run: Run) -> list[Part]:
    """The parts of a claim, judged."""
    words = {name: getattr(claim, name) for name in ("section", "place", "says", "unit", "note")}
    parts: list[Part] = []
    for arguments in claim.parts():
        region = _of_part(claim.holds, arguments)
        part = {"claim": claim.key, "part": _label(arguments), **words}
        part |= _in_paper(claim, arguments, region)
        part |= {"outcome": NO_RESULT} if region is None else _in_run(claim, arguments, region, run)
        printed = part.get("stated", part.get("published"))
        if "low" in part and printed is not None and not part["calibrated"]:
            part["contains_published"] = part["low"] <= printed <= part["high"]
        parts.append(part)
    in_paper = {part["paper_verdict"] for part in parts}
    outcome = next(one for one in VERDICTS if one in {part["outcome"] for part in parts})
    # Simulated backbones say nothing of the paper.
    is_simulated = run.simulated and outcome in (FAILS, UNDECIDED, HOLDS)
    whole = {
        "claim_paper_verdict": in_paper.pop() if len(in_paper) == 1 else PARTLY,
        "verdict": "simulated" if is_simulated else VERDICTS[outcome],
        "claim_outcome": outcome,
    }
    return [part | whole for part in parts]


def _label(arguments: tuple[Any, ...]) -> str:
    titles = {key: one.title for key, one in PAPER.methods.items()}
    titles |= {**PAPER.variants, **PAPER.benchmarks, **PAPER.backbones}
    names = (_label(one) if isinstance(one, tuple) else titles.get(one, one) for one in arguments)
    return ", ".join(name for name in names if isinstance(name, str))


def _of_part(field: Any, arguments: Sequence[Any]) -> Any:
    if isinstance(field, Mapping):
        return field[arguments[0]]
    return field(Printed(), *arguments) if callable(field) else field


def _in_paper(claim: Claim, arguments: Sequence[Any], region: Region | None) -> Part:
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


def _in_run(claim: Claim, arguments: Sequence[Any], region: Region, run: Run) -> Part:
    def quantity(*drawn: Any, all_calls: bool = False) -> Array:
        return np.asarray(claim.quantity(Measured(run, *drawn, all_calls=all_calls), *arguments))

    n = Measured(run)
    value = float(claim.quantity(n, *arguments))
    part: Part = {"holds": str(region)}
    if n.missing or not run.cells:
        return part | {"outcome": NOT_RUN, "missing": tuple(n.missing) or ("any cell",)}
    part |= identity([cell for cells in n.used for cell in cells])
    if n.unknown:
        return part | {"outcome": UNDECIDED, "reason": f"nothing was drawn for {'; '.join(n.unknown)}"}
    # Nothing that is sampled could be required to have a single value.
    is_exact = region.low == region.high
    found = interval(tuple(n.used), quantity) if n.of_items else None
    part |= {"measured": value, "outcome": decide(region, (value, value) if is_exact else found)}
    if found:
        part |= dict(zip(("low", "high"), found, strict=True))
    elif not is_exact:
        why = "no replicate differs from another" if n.of_items else "from a log or a timing job, not from questions"
        part["reason"] = f"no interval: {why}"
    if "cost" in n.measures:
        part["measured_all_calls"] = float(quantity(all_calls=True))
    return part


def identity(cells: Sequence[Cell]) -> Part:
    """What was read; nothing where a statement is about no cell."""
    runs = [cell.run for cell in cells]
    if not runs:
        return {}
    identities = [(key, identity) for run in runs for key, identity in run.backbones.items()]
    return {
        "calibrated": any(run.calibrated for run in runs),
        "simulated": any(run.simulated for run in runs),
        "cells": " ".join(run.cell for run in runs),
        "run_id": runs[0].run_id if len(runs) == 1 else table_run_id(cells),
        "seeds": " ".join(map(str, sorted({run.seed for run in runs}))),
        "config_hash": " ".join(sorted({short(run.config_hash) for run in runs})),
        "code": " ".join(sorted({short(run.code) for run in runs})),
        "data_checksum": " ".join(sorted({short(run.data.checksum) for run in runs})),
        "backbones": "; ".join(sorted({f"{key}={one['model']}{by_server(one)}" for key, one in identities})),
    }


def decide(region: Region, interval: tuple[float, float] | None) -> str:
    """Hold an interval of a measured quantity against a region; ``None`` where none could be formed."""
    if interval is None:
        return UNDECIDED
    low, high = interval
    if low in region and high in region:
        return HOLDS
    is_under = high <= region.low and high not in region
    is_over = low >= region.high and low not in region
    return FAILS if is_under or is_over else UNDECIDED


def interval(used: Sequence[Cells], value: Callable[..., Array]) -> tuple[float, float] | None:
    """The bootstrap interval of a quantity, ``None`` where it says nothing; of two or three seeds too narrow."""
    # Items are drawn once a benchmark for all methods, seeds by measurement.
    items = {cells[0].run.benchmark: len(cells[0].items) for cells in used}
    several = [cells for cells in used if len(cells) > 1]
    if min(items.values(), default=1) == 1:
        return None

    def statistic(*drawn: Draw) -> Array:
        return value(dict(zip(items, drawn, strict=False)), dict(zip(several, drawn[len(items) :], strict=True)))

    drawn = resampled([*items.values(), *map(len, several)], statistic, _BATCH, _RESAMPLES)
    # Replicates in which nothing has a part in a ratio say nothing of it and are left out.
    present = drawn[~np.isnan(drawn)]
    if not present.size or np.ptp(present) == 0:
        return None
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(present, [tail, 100 - tail])
    return float(low), float(high)

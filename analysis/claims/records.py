"""The report as data: one record a part of a claim, all values as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from analysis.claims.judge import Finding, Judged, Part
from analysis.provenance import by_server, table_run_id
from analysis.results import Cell, Run, short

# How keys of benchmarks, methods and backbones read.
Titles: TypeAlias = Mapping[str, str]


def records(judged: Sequence[Judged], titles: Titles, *, simulated: bool) -> tuple[Mapping[str, str], ...]:
    """Every part of every claim.

    ``print_verdict`` and ``outcome`` are of the part, ``claim_print_verdict`` and ``verdict`` of the whole claim. A
    field is empty where there is nothing to say. What differs between the runs behind a number is joined by a space,
    hashes in short form; ``run_id`` of several is the hash over theirs.
    """
    return tuple(_record(one, part, titles, simulated) for one in judged for part in one.parts)


def label(part: Part, titles: Titles) -> str:
    """What tells a part from the others; empty for the only one."""
    return ", ".join(titles.get(value, value) for value in part.variables.values() if isinstance(value, str))


def _record(one: Judged, part: Part, titles: Titles, simulated: bool) -> dict[str, str]:
    claim, computed = one.claim, part.computed
    return {
        "claim": claim.key,
        "part": label(part, titles),
        "section": claim.section,
        "place": claim.place,
        "says": claim.says,
        "quantity": claim.quantity,
        "published_quantity": claim.published,
        "unit": claim.unit,
        "published": "" if computed is None else _exact(computed.value),
        "published_low": "" if computed is None else _exact(computed.low),
        "published_high": "" if computed is None else _exact(computed.high),
        "stated": "" if part.stated is None else _exact(part.stated),
        "tolerance": "" if claim.stated is None else str(claim.tolerance),
        "print_verdict": part.consistency,
        "claim_print_verdict": one.consistency,
        "holds": "" if part.region is None else str(part.region),
        **_measured(part),
        "verdict": one.verdict,
        "simulated": str(simulated).lower() if part.finding.cells else "",
        "note": claim.note,
        **_identity(part.finding),
    }


def _measured(part: Part) -> dict[str, str]:
    finding = part.finding
    interval, covers = finding.interval, part.covers
    return {
        "measured": "" if finding.value is None else _exact(finding.value),
        "low": "" if interval is None else _exact(interval.low),
        "high": "" if interval is None else _exact(interval.high),
        "measured_all_calls": "" if finding.all_calls is None else _exact(finding.all_calls),
        "contains_published": "" if covers is None else str(covers).lower(),
        "calibrated": str(finding.calibrated).lower() if finding.cells else "",
        "outcome": finding.outcome,
        "missing": "; ".join(finding.missing),
        "reason": "; ".join(filter(None, (part.reason, finding.reason))),
    }


def _identity(finding: Finding) -> dict[str, str]:
    cells = finding.cells
    return {
        "cells": " ".join(cell.run.cell for cell in cells),
        "run_id": cells[0].run.run_id if len(cells) == 1 else table_run_id(cells) if cells else "",
        "seeds": " ".join(map(str, sorted({cell.run.seed for cell in cells}))),
        "config_hash": _distinct(cells, lambda run: short(run.config_hash)),
        "code": _distinct(cells, lambda run: short(run.code)),
        "data_checksum": _distinct(cells, lambda run: short(run.data.checksum)),
        "backbones": "; ".join(sorted(_backbones(cells))),
    }


def _backbones(cells: Iterable[Cell]) -> set[str]:
    return {
        f"{key}={identity['model']}{by_server(identity)}"
        for cell in cells
        for key, identity in cell.run.backbones.items()
    }


def _distinct(cells: Iterable[Cell], of: Callable[[Run], str]) -> str:
    return " ".join(sorted({of(cell.run) for cell in cells}))


def _exact(value: float) -> str:
    """Differences of decimals carry dust in their last digits."""
    return f"{round(value, 9) + 0.0:.10g}"

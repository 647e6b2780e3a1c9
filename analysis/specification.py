"""Headline conclusions of the paper, each under every reading of what the paper leaves open that has a switch.

A conclusion is declared and judged as a claim is (:mod:`analysis.claims`); a reading puts cells in the place of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import pandas as pd
from pydantic import NonNegativeFloat

from analysis.claims.declaration import Claim, Region, claim
from analysis.claims.judge import FAILS, HOLDS, NOT_JUDGED, UNDECIDED, judge
from analysis.claims.measured import Run, by_row
from analysis.claims.numbers import (
    GMR,
    GSM_AND_HUMANEVAL,
    MASROUTER,
    ROWS,
    Number,
    Numbers,
    Ordered,
    Row,
    Value,
    least,
    mean,
    name_of,
)
from analysis.finished_cells import FinishedCell
from analysis.frames import IDENTITY, Key, Results
from analysis.published import AVERAGE
from analysis.source import Source
from harness.errors import unknown
from harness.files import Declaration, Distinct, check

#: The reading that the suite takes where the paper is silent.
TAKEN = "As taken"
#: What the interval of a conclusion says of it.
OUTCOMES = {HOLDS: "supports", UNDECIDED: "leaves open", FAILS: "contradicts"}
COLUMNS = [
    *("conclusion", "says", "unit", "holds", "published", "reading", "measured", "low", "high", "outcome", "reason"),
    *("missing", *IDENTITY, "cells"),
]
_RIVALS = tuple(row for row in ROWS if row != GMR)
_MODULES = ("role_allocator", "llm_router", "retrieval_gate", "write_gate", "halting", "memory_gates")
_conclusion = partial(claim, "Conclusions", "see docs/report.md")


def _on_both(quantity: Callable[[str], Number]) -> Number:
    return mean(*map(quantity, GSM_AND_HUMANEVAL))


@_conclusion("points")
def average(n: Numbers) -> Value:
    """GMR is ahead of the strongest other row, mean of five benchmarks."""
    return n.gain(GMR, AVERAGE)


@_conclusion("points")
def strongest(n: Numbers) -> Value:
    """GMR is ahead of the strongest other row, mean of GSM-Hard and HumanEval."""

    def lead(row: Row) -> Number:
        return _on_both(lambda benchmark: n.lead(GMR, row, benchmark))

    return Ordered(tuple(map(lead, _RIVALS)), len(_RIVALS), tuple(map(name_of, _RIVALS)))


@_conclusion("points")
def masrouter(n: Numbers) -> Value:
    """GMR is ahead of MASRouter, mean of GSM-Hard and HumanEval."""
    return _on_both(lambda benchmark: n.lead(GMR, MASROUTER, benchmark))


@_conclusion("%")
def cheaper(n: Numbers) -> Value:
    """GMR costs less than MASRouter on HumanEval."""
    return n.saving(GMR, MASROUTER, "humaneval")


@_conclusion("points")
def training(n: Numbers) -> Value:
    """Trained GMR is ahead of itself untrained, mean of GSM-Hard and HumanEval."""
    return _on_both(lambda benchmark: n.lead(GMR, "gmr_untrained", benchmark))


@_conclusion("%")
def gates(n: Numbers) -> Value:
    """The memory gates save cost, the smaller saving of GSM-Hard and HumanEval."""
    return least(*[n.saving(GMR, "gmr_no_memory_gates", benchmark) for benchmark in GSM_AND_HUMANEVAL])


@_conclusion("%")
def halting(n: Numbers) -> Value:
    """Halting saves cost, the smaller saving of GSM-Hard and HumanEval."""
    return least(*[n.saving(GMR, "gmr_no_halting", benchmark) for benchmark in GSM_AND_HUMANEVAL])


@_conclusion("points")
def ablations(n: Numbers) -> Value:
    """Each of six ablations hurts, the smallest loss by mean of GSM-Hard and HumanEval."""

    def loss(module: str) -> Number:
        return _on_both(lambda benchmark: n.lead(GMR, f"gmr_no_{module}", benchmark))

    return replace(least(*map(loss, _MODULES)), names=tuple(f"w/o {name}".replace("_", " ") for name in _MODULES))


@_conclusion("points", holds=Region(low=-2))
def roles(n: Numbers) -> Value:
    """13 of 26 roles suffice: they lose less than 2 points, mean of GSM-Hard and HumanEval."""
    return _on_both(lambda benchmark: n.lead("gmr_roles_13", GMR, benchmark))


@_conclusion("points", holds=Region(high=1))
def depth(n: Numbers) -> Value:
    """Depth saturates: on MATH φ = 10 gains less than a point over φ = 6."""
    return n.lead("gmr_depth_10", GMR, "math")


#: In the order of the figure, two a line.
CONCLUSIONS: Mapping[str, Claim] = {
    each.key: each
    for each in (strongest, masrouter, cheaper, training, gates, halting, ablations, roles, average, depth)
}


class Reading(Declaration):
    """One choice made otherwise; what is not named stays as taken."""

    of: Distinct[str]  # the conclusions it concerns
    rows: Mapping[str, str] = {}  # methods, and which others take their places
    benchmarks: Distinct[str] | None = None  # where they do; None for everywhere
    verdicts: str = "correct"  # or a secondary rule, where the benchmark has it
    costs: Literal["cost", "cost_total"] = "cost"  # of the calls that are compared (D-REPORT-2), or of all
    cost_weight: NonNegativeFloat = 0  # λ_c of the utility R - λ_c · cost of steps that takes the place of verdicts

    def apply(self, cells: Mapping[Key, Sequence[FinishedCell]]) -> dict[Key, Sequence[FinishedCell]]:
        """Return the cells of each row under the reading; a row whose other is not finished is left out."""
        read: dict[Key, Sequence[FinishedCell]] = {}
        for key in cells:
            method, backbone, benchmark = key
            is_replaced = method in self.rows and benchmark in (self.benchmarks or (benchmark,))
            other = (self.rows[method], backbone, benchmark) if is_replaced else key
            if other in cells:
                read[key] = tuple(map(self._read, cells[other]))
        return read

    def _read(self, cell: FinishedCell) -> FinishedCell:
        items = cell.items
        rewards = items.get(self.verdicts, items["correct"]).eq(True) - self.cost_weight * items["cost_steps"]
        return replace(cell, items=items.assign(correct=rewards, cost=items[self.costs]))


class SpecificationOptions(Declaration):
    """Options of the specification table in ``config/artefacts.yaml``."""

    readings: Mapping[str, Reading]


@dataclass(frozen=True)
class Specification:
    """Every conclusion under every reading that concerns it, one row each, in :data:`COLUMNS`."""

    results: Results
    points: pd.DataFrame  # ``outcome`` is of :data:`OUTCOMES`, NOT_JUDGED if simulated, missing without an interval

    @cached_property
    def shown(self) -> dict[str, pd.DataFrame]:
        """Return the points with an interval by conclusion, sorted by estimate; none without the reading taken."""
        known = self.points[self.points["outcome"].notna()]
        groups = {key: known[known["conclusion"] == key] for key in CONCLUSIONS}
        return {
            key: rows.sort_values("measured", kind="stable")
            for key, rows in groups.items()
            if rows["reading"].eq(TAKEN).any()
        }

    def left_out(self) -> Iterator[str]:
        """Yield a sentence that names conclusions without a value and readings without one somewhere, if any."""
        lacking = self.points[self.points["outcome"].isna()]
        readings = lacking.loc[lacking["conclusion"].isin(list(self.shown)), "reading"]
        if names := list(dict.fromkeys([*(key for key in CONCLUSIONS if key not in self.shown), *readings])):
            yield f"Left out, for want of cells or of an interval (the CSV says which and where): {', '.join(names)}."


def read_specification(source: Source) -> Specification:
    """Judge every conclusion under every reading that concerns it; raises UserError for a slip in the options."""
    options: SpecificationOptions = check(
        dict(source.options), SpecificationOptions, "the options of the specification table, config/artefacts.yaml"
    )
    results = source.results()
    readings = {TAKEN: Reading(of=tuple(CONCLUSIONS)), **options.readings}
    records: list[dict[str, Any]] = []
    for name, reading in readings.items():
        cells = reading.apply(results.cells_by_row)
        # A row that lacks a seed on one benchmark has no value there.
        seeds = by_row((row[:2], cell.run.seed) for row, group in cells.items() for cell in group)
        run = Run.of(CONCLUSIONS.values(), cells, seeds=seeds)
        for key in reading.of:
            if key not in CONCLUSIONS:
                raise unknown("conclusion", key, CONCLUSIONS, f"config/artefacts.yaml; named by the reading {name}")
            [[part]] = judge([CONCLUSIONS[key]], run)
            # Nothing is published of another pool than the paper's, and a simulated run is compared with nothing.
            printed = {"published": None} if results.other_pool or results.simulated else {}
            names = {"conclusion": key, "reading": name, "missing": "; ".join(part.get("missing", ()))}
            records.append({**part, **printed, **names})
    points = pd.DataFrame(records, columns=COLUMNS)
    has_interval = points["low"].notna()
    if results.simulated:
        points.loc[has_interval, "reason"] = None
        outcomes = pd.Series(NOT_JUDGED, points.index)
    else:
        outcomes = points["outcome"].map(OUTCOMES)
    return Specification(results, points.assign(outcome=outcomes.where(has_interval)))

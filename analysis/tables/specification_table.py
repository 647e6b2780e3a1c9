"""Headline conclusions of the paper, each under every reading of what the paper leaves open that has a switch.

A conclusion is declared and judged as a claim is (:mod:`analysis.claims`); a reading puts cells in the place of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pandas as pd
from pydantic import NonNegativeFloat

from analysis import columns, notes
from analysis.claims.declaration import Claim, Region, claim
from analysis.claims.judge import FAILS, HOLDS, NOT_JUDGED, UNDECIDED, judge
from analysis.claims.measured import Run, Seeds, by_row
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
from analysis.exhibit import NOT_RUN, Entry, signed
from analysis.finished_cells import FinishedCell
from analysis.frames import IDENTITY, Key, Results
from analysis.published import AVERAGE
from analysis.source import Source
from analysis.table import Table
from harness.errors import check_names
from harness.files import Declaration, Distinct, check

#: The reading that the suite takes where the paper is silent.
TAKEN = "As taken"
#: What the interval of a conclusion says of it.
OUTCOMES = {HOLDS: "supports", UNDECIDED: "leaves open", FAILS: "contradicts"}
_COLUMNS = [
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


#: By name, in the order of the table.
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


_TITLES = {
    ("Estimate", ""): ("Paper", TAKEN, "Lowest", "Highest"),
    ("Readings, the one taken included, that", ""): ("support", "leave open", "contradict"),
    ("Which of them", ""): ("contradict", "differ from the one taken"),
}


def build(source: Source) -> Table:
    """Return a row a conclusion: estimates, counts by outcome, and the readings that contradict or differ."""
    where = "the options of the specification table, config/artefacts.yaml"
    options: SpecificationOptions = check(dict(source.options), SpecificationOptions, where)
    results = source.results()
    points = judge_readings(results, options.readings)
    titles = dict(list(_TITLES.items())[: 1 if results.simulated else None])
    by_column = iter(zip(*(_entries(points[points["conclusion"] == key]) for key in CONCLUSIONS), strict=True))
    return columns.table(
        results,
        label="specification-table",
        caption=source.caption,
        rows=[("", conclusion.says.removesuffix("."), conclusion.unit) for conclusion in CONCLUSIONS.values()],
        heads=("Conclusion", "Unit"),
        groups={group: {title: next(by_column) for title in parts} for group, parts in titles.items()},
        legend=[*source.legend, *_left_out(points), *notes.seeds(results)],
        frame=points,
    )


def judge_readings(results: Results, readings: Mapping[str, Reading]) -> pd.DataFrame:
    """Return every conclusion under every reading that concerns it, one row each; UserError for an unknown one.

    The outcome is of :data:`OUTCOMES`, NOT_JUDGED if simulated, and missing without an interval.
    """
    records: list[dict[str, Any]] = []
    for name, reading in {TAKEN: Reading(of=tuple(CONCLUSIONS)), **readings}.items():
        check_names("conclusion", reading.of, CONCLUSIONS, f"config/artefacts.yaml; named by the reading {name}")
        cells = reading.apply(results.cells_by_row)
        # A row that lacks a seed on one benchmark has no value there.
        seeds = by_row((row[:2], cell.run.seed) for row, group in cells.items() for cell in group)
        run = Run.of(CONCLUSIONS.values(), cells, Seeds(seeds))
        for key in reading.of:
            [[part]] = judge([CONCLUSIONS[key]], run)
            records.append({**part, "conclusion": key, "reading": name, "missing": "; ".join(part.get("missing", ()))})
    points = pd.DataFrame(records, columns=_COLUMNS)
    has_interval = points["low"].notna()
    outcomes = points["outcome"].map(OUTCOMES)
    # Nothing is published of another pool than the paper's, and a simulated run is compared with nothing.
    if results.has_other_pool or results.simulated:
        points = points.assign(published=None)
    if results.simulated:
        points["reason"] = points["reason"].mask(has_interval)
        outcomes = pd.Series(NOT_JUDGED, points.index)
    return points.assign(outcome=outcomes.where(has_interval))


def _with_interval(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points of a conclusion that have an interval, by estimate; none without the reading taken."""
    known = points[points["outcome"].notna()].sort_values("measured", kind="stable")
    return known if known["reading"].eq(TAKEN).any() else known.head(0)


def _entries(points: pd.DataFrame) -> list[Entry]:
    """Return the entries of a conclusion in the order of the columns."""
    paper = Entry("".join(map(signed, points["published"].dropna().head(1))))
    known = _with_interval(points)
    if known.empty:
        return [paper, *[Entry(NOT_RUN)] * (sum(map(len, _TITLES.values())) - 1)]
    [taken] = known[known["reading"] == TAKEN].itertuples()
    others = known[known["outcome"] != taken.outcome]
    against = known[known["outcome"] == OUTCOMES[FAILS]]
    return [
        paper,
        Entry(signed(taken.measured), below=f"{signed(taken.low)} to {signed(taken.high)}"),
        *(Entry(signed(point["measured"]), below=point["reading"]) for point in (known.iloc[0], known.iloc[-1])),
        *(Entry(str(known["outcome"].eq(outcome).sum())) for outcome in OUTCOMES.values()),
        Entry("all" if len(against) == len(known) else ", ".join(against["reading"])),
        Entry("; ".join(f"{outcome}: {', '.join(rows['reading'])}" for outcome, rows in others.groupby("outcome"))),
    ]


def _left_out(points: pd.DataFrame) -> Iterator[str]:
    lacking: list[str] = []
    for key in CONCLUSIONS:
        own = points[points["conclusion"] == key]
        lacking.extend([key] if _with_interval(own).empty else own.loc[own["outcome"].isna(), "reading"])
    if lacking:
        names = sorted(dict.fromkeys(lacking), key=lambda name: name not in CONCLUSIONS)
        yield f"Left out, for want of cells or of an interval (the CSV says which and where): {', '.join(names)}."

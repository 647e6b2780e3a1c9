"""Every part of every claim, held against the print and against a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.claims.declared import ROUNDING, Bounds, Claim, Number, Variables
from analysis.claims.intervals import Interval, interval
from analysis.claims.measured import Measured, Replicates
from analysis.claims.printed import Computed, Printed, compute
from analysis.claims.readings import Readings, Timed
from analysis.claims.seeds import Seeds
from analysis.claims.verdicts import Consistency, Outcome, Region, Verdict, consistency, outcome, verdict
from analysis.claims.vocabulary import AbsentError
from analysis.frames import Key
from analysis.published import Published
from analysis.results import Cell

# Sums of decimal fractions differ from what is printed by less than this, however they are added up.
_FUZZ = 1e-9


@dataclass(frozen=True, slots=True)
class Run:
    """What a claim can be held against: finished cells and timings, maybe none.

    Attributes:
        seeds: Those that there ought to be.
    """

    readings: Mapping[Key, Readings] = field(default_factory=dict)
    timings: Mapping[Key, Timed] = field(default_factory=dict)
    seeds: Seeds = field(default_factory=Seeds)
    simulated: bool = False

    def measured(
        self, published: Published, replicates: Replicates | None = None, *, all_calls: bool = False
    ) -> Measured:
        """The functions over these cells."""
        return Measured(published, self.readings, self.timings, self.seeds, replicates, all_calls=all_calls)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a run has of one part.

    Attributes:
        outcome: Whether the part holds there.
        value: As measured; ``None`` where something is missing.
        all_calls: The same with the costs of all calls; ``None`` where no cost is part of it.
        interval: ``None`` where none could be formed.
        missing: What would have to be run.
        reason: Why there is no interval.
        cells: What was read.
        calibrated: Whether the accuracies, lengths and costs of any of them were fitted to the paper.
    """

    outcome: Outcome
    value: float | None = None
    all_calls: float | None = None
    interval: Interval | None = None
    missing: tuple[str, ...] = ()
    reason: str = ""
    cells: tuple[Cell, ...] = ()
    calibrated: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a claim, judged.

    Attributes:
        variables: What tells it from the other parts.
        computed: From the print; ``None`` where a number is not printed.
        stated: What the paper says it is.
        consistency: Whether the print bears it out.
        reason: What is not printed.
        region: Where it must lie; ``None`` where a run cannot bear it out.
        finding: What the run has.
    """

    variables: Variables
    computed: Computed | None
    stated: float | None
    consistency: Consistency
    reason: str
    region: Region | None
    finding: Finding

    @property
    def covers(self) -> bool | None:
        """Whether the measured interval contains the paper's number.

        ``None`` where one of the two is missing, or the one was fitted to the other.
        """
        printed = self.stated if self.stated is not None else self.computed and self.computed.value
        if printed is None or self.finding.interval is None or self.finding.calibrated:
            return None
        return self.finding.interval.low <= printed <= self.finding.interval.high


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with its parts and what they come to."""

    claim: Claim
    parts: tuple[Part, ...]
    consistency: Consistency
    outcome: Outcome
    verdict: Verdict

    @property
    def calibrated(self) -> bool:
        """Whether any part rests on what was fitted to the paper."""
        return any(part.finding.calibrated for part in self.parts)


def judge(claim: Claim, published: Published, run: Run) -> Judged:
    """Judge one claim.

    Raises:
        UserError: An expression names what does not exist, or a cell cannot be read.
    """
    parts = tuple(_part(claim, variables, published, run) for variables in claim.parts())
    found = outcome([part.finding.outcome for part in parts])
    return Judged(
        claim=claim,
        parts=parts,
        consistency=consistency([part.consistency for part in parts]),
        outcome=found,
        verdict=verdict(found, simulated=run.simulated),
    )


def _part(claim: Claim, variables: Variables, published: Published, run: Run) -> Part:
    stated = None if claim.stated is None else _number(claim.stated, variables, published)
    region = _region(claim.holds, variables, published)
    computed, reason = None, ""
    try:
        computed = compute(published, claim.published, variables)
    except AbsentError as absent:
        reason = f"not printed: {absent}"
    return Part(
        variables=variables,
        computed=computed,
        stated=stated,
        consistency=_consistency(claim, computed, stated, region),
        reason=reason,
        region=region,
        finding=_finding(claim, variables, region, published, run),
    )


def _consistency(claim: Claim, computed: Computed | None, stated: float | None, region: Region | None) -> Consistency:
    if computed is None:
        return Consistency.NOT_CHECKABLE
    agrees = stated is None or _agrees(computed, stated, claim.tolerance)
    holds = region is None or computed.value in region
    return Consistency.CONSISTENT if agrees and holds else Consistency.INCONSISTENT


def _agrees(computed: Computed, stated: float, tolerance: Number) -> bool:
    if tolerance == ROUNDING:
        return computed.low - _FUZZ <= stated <= computed.high + _FUZZ
    return abs(computed.value - stated) <= float(tolerance) + _FUZZ


def _finding(claim: Claim, variables: Variables, region: Region | None, published: Published, run: Run) -> Finding:
    if region is None:
        return Finding(Outcome.NO_RESULT)
    measured = run.measured(published)
    value = float(measured.evaluate(claim.quantity, variables))
    if measured.missing:
        return Finding(Outcome.NOT_RUN, missing=tuple(measured.missing))
    cells = tuple(cell for one in measured.used.values() for cell in one.cells)
    calibrated = any(cell.run.calibrated for cell in cells)
    if measured.unknown:
        reason = f"nothing was drawn for {'; '.join(measured.unknown)}"
        return Finding(Outcome.UNDECIDED, reason=reason, cells=cells, calibrated=calibrated)
    whole = run.measured(published, all_calls=True).evaluate(claim.quantity, variables) if measured.charged else None
    found, reason = _interval(claim, variables, published, run, measured)
    decisive = Interval(value, value) if claim.exact else found
    return Finding(
        outcome=region.decide(decisive),
        value=value,
        all_calls=None if whole is None else float(whole),
        interval=found,
        reason="" if claim.exact else reason,
        cells=cells,
        calibrated=calibrated,
    )


def _interval(
    claim: Claim, variables: Variables, published: Published, run: Run, measured: Measured
) -> tuple[Interval | None, str]:
    """The interval of a quantity, or why it has none."""
    if measured.fixed:
        return None, "no interval: from a log or a timing job, not from questions"

    def replicated(drawn: Replicates) -> NDArray[np.float64]:
        return np.asarray(run.measured(published, drawn).evaluate(claim.quantity, variables))

    found = interval(list(measured.used.values()), replicated)
    return found, "" if found else "no interval: no replicate differs from another"


def _region(bounds: Bounds | None, variables: Variables, published: Published) -> Region | None:
    if bounds is None:
        return None
    low = -math.inf if bounds.low is None else _number(bounds.low, variables, published)
    high = math.inf if bounds.high is None else _number(bounds.high, variables, published)
    return Region(low, high, bounds.closed)


def _number(value: Number, variables: Mapping[str, Any], published: Published) -> float:
    return float(Printed(published, {}).evaluate(value, variables)) if isinstance(value, str) else float(value)

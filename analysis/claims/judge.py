"""Every part of every claim, compared with the paper's own numbers and with a run.

Intervals of measured quantities are percentile bootstraps over the items of each benchmark and over training seeds.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from analysis.claims.declared import ROUNDING, Claim, Region, Variables, call
from analysis.claims.measured import Cells, Draw, Measured, Run
from analysis.claims.numbers import AbsentError, Array
from analysis.claims.printed import Computed, Printed, compute
from analysis.published import Published
from analysis.results import Cell
from analysis.statistics import CONFIDENCE, resampled

# Sums of decimal fractions differ from what is printed by less than this, however they are added up.
_FUZZ = 1e-9
_RESAMPLES = 2000
_BATCH = 200


class Consistency(enum.StrEnum):
    """Whether the paper's own numbers support a statement."""

    CONSISTENT = "consistent"
    PARTLY = "partly"
    INCONSISTENT = "inconsistent"
    NOT_CHECKABLE = "not checkable"


class Outcome(enum.StrEnum):
    """What a run shows of a statement; of a claim, the first of these that any of its parts has."""

    NOT_RUN = "not run"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    NO_RESULT = "no result of a run"
    HOLDS = "holds"


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a claim, judged.

    Attributes:
        variables: What tells it from the other parts.
        stated: What the paper says it is.
        region: Where it must be; ``None`` where a run cannot support it.
        computed: From the paper's numbers; ``None`` where one is not published, which ``not_printed`` names.
        consistency: Whether the paper's numbers support it.
        outcome: Whether it holds in the run.
        value: As measured; ``None`` where something is missing.
        all_calls: The same with the costs of all calls; ``None`` where no cost is part of it.
        interval: ``None`` where none could be formed, for a ``reason``.
        missing: What would have to be run.
        cells: What was read.
    """

    variables: Variables
    stated: float | None
    region: Region | None
    computed: Computed | None = None
    not_printed: str = ""
    consistency: Consistency = Consistency.NOT_CHECKABLE
    outcome: Outcome = Outcome.NO_RESULT
    value: float | None = None
    all_calls: float | None = None
    interval: Interval | None = None
    reason: str = ""
    missing: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()

    @property
    def calibrated(self) -> bool:
        """Whether the accuracies, lengths and costs of any of the cells were fitted to the paper."""
        return any(cell.run.calibrated for cell in self.cells)

    @property
    def covers(self) -> bool | None:
        """Whether the measured interval contains the paper's number.

        ``None`` where one of the two is missing, or the one was fitted to the other.
        """
        printed = self.stated if self.stated is not None else self.computed and self.computed.value
        if printed is None or self.interval is None or self.calibrated:
            return None
        return self.interval.low <= printed <= self.interval.high


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with its parts and what they come to."""

    claim: Claim
    parts: tuple[Part, ...]
    simulated: bool

    @property
    def consistency(self) -> Consistency:
        """That of all parts, or that they differ."""
        found = {part.consistency for part in self.parts}
        if found == {Consistency.INCONSISTENT, Consistency.NOT_CHECKABLE}:
            return Consistency.INCONSISTENT
        return found.pop() if len(found) == 1 else Consistency.PARTLY

    @property
    def outcome(self) -> Outcome:
        """It holds where every part holds, and fails where any part fails."""
        return min((part.outcome for part in self.parts), key=list(Outcome).index)

    @property
    def verdict(self) -> str:
        """What the run says of the paper; simulated backbones say nothing of it."""
        if self.outcome in (Outcome.NOT_RUN, Outcome.NO_RESULT):
            return "about the paper only" if self.outcome is Outcome.NO_RESULT else "not run"
        if self.simulated:
            return "simulated"
        return {Outcome.HOLDS: "reproduced", Outcome.FAILS: "contradicted"}.get(self.outcome, "undecided")


def judge(claim: Claim, published: Published, run: Run) -> Judged:
    """Judge one claim.

    Raises:
        UserError: A function of it names what does not exist, or a cell cannot be read.
    """
    parts = [_in_paper(claim, variables, published) for variables in claim.parts()]
    return Judged(claim, tuple(_in_run(claim, part, published, run) for part in parts), run.simulated)


def _in_paper(claim: Claim, variables: Variables, published: Published) -> Part:
    stated = _told(claim.stated, variables, published)
    part = Part(variables, None if stated is None else float(stated), _told(claim.holds, variables, published))
    try:
        computed = compute(published, lambda n: call(claim.published or claim.quantity, n, variables))
    except AbsentError as absent:
        return replace(part, not_printed=f"not printed: {absent}")
    agrees = part.stated is None or _agrees(computed, part.stated, claim.tolerance)
    holds = part.region is None or computed.value in part.region
    found = Consistency.CONSISTENT if agrees and holds else Consistency.INCONSISTENT
    return replace(part, computed=computed, consistency=found)


def _told(told: Any, variables: Variables, published: Published) -> Any:
    """What a claim states or asks: a value, or a function over the paper's numbers."""
    return call(told, Printed(published), variables) if callable(told) else told


def _agrees(computed: Computed, stated: float, tolerance: float | str) -> bool:
    if tolerance == ROUNDING:
        return computed.low - _FUZZ <= stated <= computed.high + _FUZZ
    return abs(computed.value - stated) <= float(tolerance) + _FUZZ


def _in_run(claim: Claim, part: Part, published: Published, run: Run) -> Part:
    region = part.region
    if region is None:
        return part

    def quantity(*drawn: Any, all_calls: bool = False) -> Array:
        return np.asarray(call(claim.quantity, Measured(published, run, *drawn, all_calls=all_calls), part.variables))

    measured = Measured(published, run)
    value = float(call(claim.quantity, measured, part.variables))
    if measured.missing or not run.cells:
        return replace(part, outcome=Outcome.NOT_RUN, missing=tuple(measured.missing) or ("any cell",))
    part = replace(part, cells=tuple(cell for cells in measured.used for cell in cells))
    if measured.unknown:
        reason = f"nothing was drawn for {'; '.join(measured.unknown)}"
        return replace(part, outcome=Outcome.UNDECIDED, reason=reason)
    found, reason = None, "no interval: from a log or a timing job, not from questions"
    if not measured.fixed:
        found = interval(tuple(measured.used), quantity)
        reason = "" if found else "no interval: no replicate differs from another"
    return replace(
        part,
        outcome=decide(region, Interval(value, value) if claim.exact else found),
        value=value,
        all_calls=float(quantity(all_calls=True)) if measured.charged else None,
        interval=found,
        reason="" if claim.exact else reason,
    )


def decide(region: Region, interval: Interval | None) -> Outcome:
    """Hold an interval of a measured quantity against a region; ``None`` where none could be formed."""
    if interval is None:
        return Outcome.UNDECIDED
    if interval.low in region and interval.high in region:
        return Outcome.HOLDS
    under = interval.high < region.low if region.closed else interval.high <= region.low
    over = interval.low > region.high if region.closed else interval.low >= region.high
    return Outcome.FAILS if under or over else Outcome.UNDECIDED


def interval(
    used: Sequence[Cells], value: Callable[[Mapping[str, Draw], Mapping[Cells, Draw]], Array]
) -> Interval | None:
    """The interval of a quantity over some measurements.

    Items are drawn once for each benchmark and shared by all methods, which answered the same ones; the seeds of every
    measurement that has several are drawn by themselves. With two or three seeds the interval is too narrow: a
    bootstrap of so few underestimates their spread.

    Args:
        used: What the quantity is computed from.
        value: The quantity for R replicates, shape (R,), given the drawn items and seeds as :class:`Measured` has them.

    Returns:
        ``None`` where no replicate differs from another, or a test set has a single item: then a bootstrap says
        nothing, and the interval would pretend to certainty.
    """
    items = {cells[0].run.benchmark: len(cells[0].items) for cells in used}
    several = [cells for cells in used if len(cells) > 1]
    if min(items.values(), default=1) == 1:
        return None

    def statistic(*drawn: Draw, axis: int = -1) -> Array:
        """Both kinds of draws, each of shape (R, size); the axis is always the last."""
        return value(dict(zip(items, drawn, strict=False)), dict(zip(several, drawn[len(items) :], strict=True)))

    drawn = resampled([*items.values(), *map(len, several)], statistic, _BATCH, _RESAMPLES)
    # Replicates in which nothing has a part in a ratio say nothing of it and are left out.
    present = drawn[~np.isnan(drawn)]
    if not present.size or np.ptp(present) == 0:
        return None
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(present, [tail, 100 - tail])
    return Interval(float(low), float(high))

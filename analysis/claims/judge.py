"""Every part of every claim, held against the print and against a run.

How sure a measured quantity is tells a percentile bootstrap over the items of each benchmark and over training seeds.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.claims.declared import ROUNDING, Claim, Region, Variables, call
from analysis.claims.measured import Draw, Measured, Replicates
from analysis.claims.numbers import AbsentError
from analysis.claims.printed import Computed, Printed, compute
from analysis.claims.readings import Readings, Run
from analysis.published import Published
from analysis.results import Cell
from analysis.statistics import CONFIDENCE

# Sums of decimal fractions differ from what is printed by less than this, however they are added up.
_FUZZ = 1e-9
_RESAMPLES = 2000
_BATCH = 200
_SEED = 0


class Consistency(enum.StrEnum):
    """Whether the paper's own numbers bear a statement out."""

    CONSISTENT = "consistent"
    PARTLY = "partly"
    INCONSISTENT = "inconsistent"
    NOT_CHECKABLE = "not checkable"


class Outcome(enum.StrEnum):
    """What a run shows of a statement."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"
    NO_RESULT = "no result of a run"


class Verdict(enum.StrEnum):
    """What a run says of the paper."""

    REPRODUCED = "reproduced"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"
    NO_RESULT = "about the print only"
    REHEARSED = "rehearsed"


_OF_REAL_RUNS = {
    Outcome.HOLDS: Verdict.REPRODUCED,
    Outcome.FAILS: Verdict.CONTRADICTED,
    Outcome.UNDECIDED: Verdict.UNDECIDED,
}
_OF_ANY_RUN = {Outcome.NOT_RUN: Verdict.NOT_RUN, Outcome.NO_RESULT: Verdict.NO_RESULT}


def consistency(parts: Sequence[Consistency]) -> Consistency:
    """Of a claim, from its parts: partly where some are borne out and others are not, or cannot be checked."""
    found = set(parts)
    if len(found) == 1:
        return found.pop()
    return Consistency.PARTLY if Consistency.CONSISTENT in found else Consistency.INCONSISTENT


def outcome(parts: Sequence[Outcome]) -> Outcome:
    """Of a claim, from its parts: it holds where every part holds, and fails where any part fails."""
    order = (Outcome.NOT_RUN, Outcome.FAILS, Outcome.UNDECIDED, Outcome.NO_RESULT, Outcome.HOLDS)
    return next(one for one in order if one in parts)


def verdict(found: Outcome, *, simulated: bool) -> Verdict:
    """What an outcome says of the paper; simulated backbones say nothing of it, whatever the outcome."""
    if found in _OF_ANY_RUN:
        return _OF_ANY_RUN[found]
    return Verdict.REHEARSED if simulated else _OF_REAL_RUNS[found]


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


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
        UserError: A function of it names what does not exist, or a cell cannot be read.
    """
    parts = tuple(_part(claim, variables, published, run) for variables in claim.parts())
    found = outcome([part.finding.outcome for part in parts])
    in_print = consistency([part.consistency for part in parts])
    return Judged(claim, parts, in_print, found, verdict(found, simulated=run.simulated))


def _part(claim: Claim, variables: Variables, published: Published, run: Run) -> Part:
    stated = None if claim.stated is None else float(_told(claim.stated, variables, published))
    region = _told(claim.holds, variables, published)
    computed, reason = None, ""
    try:
        computed = compute(published, lambda n: call(claim.printed, n, variables))
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


def _agrees(computed: Computed, stated: float, tolerance: float | str) -> bool:
    if tolerance == ROUNDING:
        return computed.low - _FUZZ <= stated <= computed.high + _FUZZ
    return abs(computed.value - stated) <= float(tolerance) + _FUZZ


def _finding(claim: Claim, variables: Variables, region: Region | None, published: Published, run: Run) -> Finding:
    if region is None:
        return Finding(Outcome.NO_RESULT)
    measured = Measured(published, run)
    value = float(call(claim.quantity, measured, variables))
    if measured.missing:
        return Finding(Outcome.NOT_RUN, missing=tuple(measured.missing))
    cells = tuple(cell for one in measured.used.values() for cell in one.cells)
    calibrated = any(cell.run.calibrated for cell in cells)
    if measured.unknown:
        reason = f"nothing was drawn for {'; '.join(measured.unknown)}"
        return Finding(Outcome.UNDECIDED, reason=reason, cells=cells, calibrated=calibrated)
    whole = call(claim.quantity, Measured(published, run, all_calls=True), variables) if measured.charged else None
    found, reason = None, "no interval: from a log or a timing job, not from questions"
    if not measured.fixed:
        found = interval(
            list(measured.used.values()),
            lambda drawn: np.asarray(call(claim.quantity, Measured(published, run, drawn), variables)),
        )
        reason = "" if found else "no interval: no replicate differs from another"
    decisive = Interval(value, value) if claim.exact else found
    return Finding(
        outcome=decide(region, decisive),
        value=value,
        all_calls=None if whole is None else float(whole),
        interval=found,
        reason="" if claim.exact else reason,
        cells=cells,
        calibrated=calibrated,
    )


def _told(told: Any, variables: Variables, published: Published) -> Any:
    """What a claim states or asks: a value, or a function over the print."""
    return call(told, Printed(published), variables) if callable(told) else told


def decide(region: Region, interval: Interval | None) -> Outcome:
    """Hold an interval of a measured quantity against a region; ``None`` where none could be formed."""
    if interval is None:
        return Outcome.UNDECIDED
    if interval.low in region and interval.high in region:
        return Outcome.HOLDS
    below = interval.high < region.low if region.closed else interval.high <= region.low
    above = interval.low > region.high if region.closed else interval.low >= region.high
    return Outcome.FAILS if below or above else Outcome.UNDECIDED


def interval(used: Sequence[Readings], value: Callable[[Replicates], NDArray[np.float64]]) -> Interval | None:
    """The interval of a quantity over some measurements.

    Items are drawn once for each benchmark and shared by all methods, which answered the same ones; the seeds of every
    measurement that has several are drawn by themselves. With two or three seeds the interval is too narrow: a
    bootstrap of so few underestimates their spread.

    Args:
        used: What the quantity is computed from.
        value: The quantity for R replicates, shape (R,).

    Returns:
        ``None`` where no replicate differs from another, or a test set has a single item: then a bootstrap says
        nothing, and the interval would pretend to certainty.
    """
    from scipy.stats import DegenerateDataWarning, bootstrap

    items = {one.key[2]: one.n for one in used}
    several = [one.trainings for one in used if len(one.seeds) > 1]
    counts = [*items.values(), *(len(one.seeds) for one in used if len(one.seeds) > 1)]
    if not items or min(items.values()) == 1:
        return None

    def statistic(*drawn: Draw, axis: int = -1) -> NDArray[np.float64]:
        """Both kinds of draws, each of shape (R, size); the axis is always the last."""
        whole = [one.astype(np.int64) for one in drawn]
        chosen = Replicates(dict(zip(items, whole, strict=False)), dict(zip(several, whole[len(items) :], strict=True)))
        return value(chosen)

    with warnings.catch_warnings():
        # A quantity without spread is told apart below.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        found = bootstrap(
            [np.arange(count) for count in counts],
            statistic,
            n_resamples=_RESAMPLES,
            batch=_BATCH,
            vectorized=True,
            paired=False,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(_SEED),
        )
    return _ends(np.asarray(found.bootstrap_distribution))


def _ends(drawn: NDArray[np.float64]) -> Interval | None:
    """Replicates in which nothing has a part in a ratio say nothing of it and are left out."""
    present = drawn[~np.isnan(drawn)]
    if not present.size or np.ptp(present) == 0:
        return None
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(present, [tail, 100 - tail])
    return Interval(float(low), float(high))

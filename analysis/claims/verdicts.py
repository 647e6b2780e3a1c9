"""What is said of a claim: by the print about itself, and by a run about the print."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.claims.intervals import Interval


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


@dataclass(frozen=True, slots=True)
class Region:
    """The values for which a claim holds.

    Attributes:
        low: Lower end.
        high: Upper end.
        closed: Whether the ends belong to it.
    """

    low: float = -math.inf
    high: float = math.inf
    closed: bool = False

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high if self.closed else self.low < value < self.high

    def __str__(self) -> str:
        if math.isinf(self.low) or math.isinf(self.high):
            return f"> {self.low:g}" if math.isinf(self.high) else f"< {self.high:g}"
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"

    def decide(self, interval: Interval | None) -> Outcome:
        """Hold an interval of a measured quantity against the region; ``None`` where none could be formed."""
        if interval is None:
            return Outcome.UNDECIDED
        if interval.low in self and interval.high in self:
            return Outcome.HOLDS
        below = interval.high < self.low if self.closed else interval.high <= self.low
        above = interval.low > self.high if self.closed else interval.low >= self.high
        return Outcome.FAILS if below or above else Outcome.UNDECIDED

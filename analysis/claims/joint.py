"""Intervals of what holds of several values at once, such as being ahead of the best of some rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from analysis.claims.numbers import Array, Leading, Ordered, Value
from analysis.statistics import TAIL, Spread

Measure: TypeAlias = Callable[[Array], Spread]


class End(NamedTuple):
    """An end of an interval, with the name of its row where several were compared."""

    at: float
    name: str = ""


@dataclass(frozen=True)
class Joint:
    """Spreads of several values, of which the one in ``place`` counts, from 1 for the largest."""

    parts: tuple[Joint | Spread, ...]
    place: int
    names: tuple[str, ...]
    gaps: tuple[
        Spread, ...
    ] = ()  # for :class:`Leading`, whose score counts instead of the place: best score minus each

    def end(self, is_high: bool, tail: float) -> End:
        """Return one end of the interval that misses with probability ``tail``.

        The largest of n is surely above a border where one of them is at ``tail / n``, and below it where each is at
        ``tail``. In general (Benjamini and Heller, Biometrics 64, 2008, after Bonferroni) the one in place k is above
        where k are at ``tail / (n + 1 - k)``, and below where n + 1 - k are at ``tail / k``.
        """
        if self.gaps:
            # Half of the risk is that of leaving out the one of the highest true score.
            share = tail / 2 / max(1, len(self.gaps) - 1)
            possible = [end(gap, False, share).at <= 0 for gap in self.gaps]
            ends = [
                candidate
                for candidate, is_possible in zip(self._ends(is_high, tail / 2), possible, strict=True)
                if is_possible
            ]
            return max(ends) if is_high else min(ends)
        several = self.place if is_high else len(self.parts) + 1 - self.place
        return sorted(self._ends(is_high, tail / several), reverse=True)[self.place - 1]

    def _ends(self, is_high: bool, tail: float) -> list[End]:
        ends = [end(part, is_high, tail) for part in self.parts]
        return [
            End(end_of_part.at, end_of_part.name or name) for end_of_part, name in zip(ends, self.names, strict=True)
        ]


def spreads(value: Value, measure: Measure) -> Joint | Spread:
    """Return the spread of a value; of an ordered value those of all its parts."""
    if not isinstance(value, Ordered):
        return measure(np.atleast_1d(value))
    parts = tuple(spreads(part, measure) for part in value.values)
    gaps: tuple[Spread, ...] = ()
    if isinstance(value, Leading):
        best = max(value.scores, key=lambda score: float(np.ravel(score)[0]))
        gaps = tuple(measure(np.atleast_1d(best - score)) for score in value.scores)
    return Joint(parts, value.place, value.names or ("",) * len(parts), gaps)


def end(spread: Joint | Spread, is_high: bool, tail: float) -> End:
    """Return one end of an interval; infinite where nothing is known of the spread."""
    if isinstance(spread, Joint):
        return spread.end(is_high, tail)
    if spread.counts or 0 < spread.variance < math.inf:
        return End(spread.ends(tail)[is_high])
    return End(math.inf if is_high else -math.inf)


def interval(spread: Joint | Spread, tail: float = TAIL) -> tuple[End, End]:
    """Return both ends of an interval."""
    return end(spread, False, tail), end(spread, True, tail)

"""Intervals of what holds of several values at once, such as being ahead of the best of some rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from analysis.claims.numbers import Array, Leading, Ordered, Value
from analysis.statistics import TAIL, Number, Spread

Measure: TypeAlias = Callable[[Array], Spread]


class End(NamedTuple):
    """An end of an interval, of one sample or of each of many, with the name of its row where several were compared."""

    at: Number
    name: str = ""


@dataclass(frozen=True)
class Joint:
    """Spreads of several values, of which the one in ``place`` counts, from 1 for the largest."""

    parts: tuple[Joint | Spread, ...]
    place: int
    names: tuple[str, ...]
    # For :class:`Leading`, whose score counts instead of the place: best score minus each.
    gaps: tuple[Spread, ...] = ()

    def end(self, is_high: bool, tail: float) -> End:
        """Return one end of the interval that misses with probability ``tail``.

        The largest of n is surely above a border where one of them is at ``tail / n``, and below it where each is at
        ``tail``. In general (Benjamini and Heller, Biometrics 64, 2008, after Bonferroni) the one in place k is above
        where k are at ``tail / (n + 1 - k)``, and below where n + 1 - k are at ``tail / k``.
        """
        if self.gaps:
            # Half of the risk is that of leaving out the one of the highest true score.
            share = tail / 2 / max(1, len(self.gaps) - 1)
            ignored = -math.inf if is_high else math.inf
            ends = [
                candidate._replace(at=np.where(end(gap, False, share).at <= 0, candidate.at, ignored)[()])
                for gap, candidate in zip(self.gaps, self._ends(is_high, tail / 2), strict=True)
            ]
            return _in_place(ends, 1 if is_high else len(ends))
        several = self.place if is_high else len(self.parts) + 1 - self.place
        return _in_place(self._ends(is_high, tail / several), self.place)

    def _ends(self, is_high: bool, tail: float) -> list[End]:
        ends = [end(part, is_high, tail) for part in self.parts]
        return [End(part.at, part.name or name) for part, name in zip(ends, self.names, strict=True)]


def _in_place(ends: Sequence[End], place: int) -> End:
    """Return the end in a place, from 1 for the largest; of many samples that of each, without a name."""
    by_name = sorted(ends, key=lambda each: each.name, reverse=True)
    at = np.stack([each.at for each in by_name])
    order = np.argsort(-at, axis=0, kind="stable")[place - 1]
    return End(np.take_along_axis(at, order[np.newaxis], axis=0)[0]) if order.ndim else by_name[int(order)]


def spreads(value: Value, measure: Measure) -> Joint | Spread:
    """Return the spread of a value; of an ordered value those of all its parts."""
    if not isinstance(value, Ordered):
        return measure(np.atleast_1d(value))
    parts = tuple(spreads(part, measure) for part in value.values)
    gaps: tuple[Spread, ...] = ()
    if isinstance(value, Leading):
        scores = np.stack(np.broadcast_arrays(*map(np.atleast_1d, value.scores)))
        best = np.take_along_axis(scores, scores[..., :1].argmax(axis=0)[np.newaxis], axis=0)[0]
        gaps = tuple(measure(best - score) for score in scores)
    return Joint(parts, value.place, value.names or ("",) * len(parts), gaps)


def end(spread: Joint | Spread, is_high: bool, tail: float) -> End:
    """Return one end of an interval; infinite where nothing is known of the spread."""
    if isinstance(spread, Joint):
        return spread.end(is_high, tail)
    infinite = math.inf if is_high else -math.inf
    if spread.counts or spread.share_of:
        return End(spread.ends(tail)[is_high])
    is_known = (spread.variance > 0) & (spread.variance < math.inf)
    return End(np.where(is_known, spread.ends(tail)[is_high], infinite)[()])


def interval(spread: Joint | Spread, tail: float = TAIL) -> tuple[End, End]:
    """Return both ends of an interval."""
    return end(spread, False, tail), end(spread, True, tail)

"""Intervals for the best or k-th of several values, such as the lead over the best of some rows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from analysis.paper.claims.numbers import Array, Leading, Ordered, Value
from analysis.statistics import TAIL, Spread

Measure: TypeAlias = Callable[[Array], Spread]


class End(NamedTuple):
    """End of an interval. ``name`` is the row that decides, if several rows are compared."""

    at: float
    name: str = ""


def spreads(value: Value, measure: Measure) -> Ordered | Spread:
    """Replace each number of a value by its spread; scores become best score minus each."""
    if not isinstance(value, Ordered):
        return measure(np.atleast_1d(value))
    values = tuple(spreads(each, measure) for each in value.values)
    if not isinstance(value, Leading):
        return replace(value, values=values)
    scores = np.stack(np.broadcast_arrays(*map(np.atleast_1d, value.scores)))
    best = scores[scores[:, 0].argmax()]
    return replace(value, values=values, scores=tuple(measure(best - score) for score in scores))


def interval(spread: Ordered | Spread, tail: float = TAIL) -> tuple[End, End]:
    """Return both ends of an interval with error probability ``tail`` on either side."""
    return _end(spread, False, tail), _end(spread, True, tail)


def _end(spread: Ordered | Spread, is_high: bool, tail: float) -> End:
    """Return one end of an interval; infinite if the spread is unknown.

    The maximum of n exceeds a bound if any candidate does at level ``tail / n``, and is below it if each is at level
    ``tail``. In general (Benjamini and Heller, Biometrics 64, 2008, after Bonferroni) the value of rank k is above if
    k are at level ``tail / (n + 1 - k)``, and below if n + 1 - k are at level ``tail / k``.
    """
    infinite = math.inf if is_high else -math.inf
    if isinstance(spread, Spread):
        is_known = 0 < spread.variance < math.inf or spread.counts or spread.share_of
        return End(spread.ends(tail)[is_high] if is_known else infinite)
    size = len(spread.values)
    if isinstance(spread, Leading):
        # Half of the risk is for excluding the value with the highest true score.
        share = tail / 2 / max(1, size - 1)
        ends = [
            candidate if _end(gap, False, share).at <= 0 else candidate._replace(at=-infinite)
            for gap, candidate in zip(spread.scores, _ends(spread, is_high, tail / 2), strict=True)
        ]
        return _ranked(ends, 1 if is_high else size)
    return _ranked(_ends(spread, is_high, tail / (spread.rank if is_high else size + 1 - spread.rank)), spread.rank)


def _ends(spread: Ordered, is_high: bool, tail: float) -> list[End]:
    names = spread.names or ("",) * len(spread.values)
    ends = [_end(each, is_high, tail) for each in spread.values]
    return [End(end.at, end.name or name) for end, name in zip(ends, names, strict=True)]


def _ranked(ends: Sequence[End], rank: int) -> End:
    """Return the end of a rank, from 1 for the largest."""
    return sorted(ends, reverse=True)[rank - 1]

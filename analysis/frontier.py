"""The Pareto frontier of accuracy and cost: the points that no other point beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Point(NamedTuple):
    """What a question costs, and how often the answer is right.

    Attributes:
        cost: Lower is better.
        accuracy: Higher is better.
    """

    cost: float
    accuracy: float


def frontier(points: Sequence[Point]) -> list[int]:
    """The points that no other beats, as places in ``points``, by rising cost.

    A point is beaten by one that is at least as good in both respects and better in one. Equal points do not beat
    each other, so they are in or out together.
    """
    found: list[int] = []
    for place in sorted(range(len(points)), key=lambda place: (points[place].cost, -points[place].accuracy)):
        last = points[found[-1]] if found else None
        if last is None or points[place].accuracy > last.accuracy or points[place] == last:
            found.append(place)
    return found


def outline(points: Sequence[Point], until: float) -> list[Point]:
    """The frontier as a line of steps: the best accuracy that a cost can buy, from the cheapest point on.

    Args:
        points: Points.
        until: Cost at which the line ends.

    Returns:
        Its corners; an upright step has two.
    """
    best = [points[place] for place in frontier(points)]
    corners = best[:1]
    for point in best[1:]:
        corners += [Point(point.cost, corners[-1].accuracy), point]
    return [*corners, Point(max(until, corners[-1].cost), corners[-1].accuracy)] if corners else []

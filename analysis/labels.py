"""Where labels go so that they do not lie over each other; the same places for the same points, every time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_DIRECTIONS = 16
_DISTANCES = (1.0, 1.6, 2.3, 3.1)
# Overlaps weigh by their area; a label also costs its distance, so that it stays near where nothing is in the way.
_DISTANCE_WEIGHT = 0.25
_OUTSIDE_WEIGHT = 10


class Box(NamedTuple):
    """A rectangle about a centre."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        across = (self.width + other.width) / 2 - abs(self.x - other.x)
        along = (self.height + other.height) / 2 - abs(self.y - other.y)
        return max(0.0, min(across, self.width, other.width)) * max(0.0, min(along, self.height, other.height))

    def outside(self, room: Box) -> float:
        """The area of it that is not in the room."""
        return self.width * self.height - self.overlap(room)


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Places on a line at least ``gap`` apart, in the order of the wanted ones and together as near to them as can be.

    Neighbours that are too close move apart by the same distance, around the mean of what they want.
    """
    order = sorted(range(len(wanted)), key=lambda place: (wanted[place], place))
    # A block of neighbours: the sum of where its first would have to be, and how many they are.
    blocks: list[tuple[float, int]] = []
    for place in order:
        blocks.append((wanted[place], 1))
        while len(blocks) > 1 and _start(blocks[-1]) < _start(blocks[-2]) + gap * blocks[-2][1]:
            (later, more), (total, count) = blocks.pop(), blocks.pop()
            blocks.append((total + later - gap * count * more, count + more))
    found = [_start(block) + gap * number for block in blocks for number in range(block[1])]
    return [place for _, place in sorted(zip(order, found, strict=True))]


def beside(
    points: Sequence[tuple[float, float]], markers: Sequence[float], size: tuple[float, float], room: Box
) -> list[Box]:
    """A place beside each point for a label of a given size, one after the other, where least is in the way.

    Args:
        points: Centres of the markers.
        markers: Their widths.
        size: Width and height of a label.
        room: Where labels may be.
    """
    placed = [Box(*point, width, width) for point, width in zip(points, markers, strict=True)]
    found: list[Box] = []
    for own in placed:
        found.append(min(_around(own, size), key=lambda place: _cost(place, own, [*placed, *found], room)))
    return found


def _start(block: tuple[float, int]) -> float:
    total, count = block
    return total / count


def _around(marker: Box, size: tuple[float, float]) -> Iterator[Box]:
    width, height = size
    for distance in _DISTANCES:
        for turn in range(_DIRECTIONS):
            angle = math.tau * turn / _DIRECTIONS
            across = distance * (marker.width + width) / 2 * math.cos(angle)
            along = distance * (marker.height + height) / 2 * math.sin(angle)
            yield Box(marker.x + across, marker.y + along, width, height)


def _cost(place: Box, marker: Box, obstacles: Sequence[Box], room: Box) -> float:
    covered = sum(place.overlap(other) for other in obstacles) + _OUTSIDE_WEIGHT * place.outside(room)
    return covered + _DISTANCE_WEIGHT * math.dist((place.x, place.y), (marker.x, marker.y))

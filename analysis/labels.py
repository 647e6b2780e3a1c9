"""Placement of labels without overlap; the same places for the same points, every time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_TURNS = 2 * np.pi * np.arange(16) / 16
_DIRECTIONS = np.column_stack([np.cos(_TURNS), np.sin(_TURNS)])
# From a marker's centre to a label at its side, beyond half the label.
_GAP = 5.0
_DISTANCES = (1.0, 1.3, 1.7, 2.3, 3.1)
# Overlaps weigh by their area; a label also costs its distance, so that it stays near where nothing is in the way.
_DISTANCE_WEIGHT = 0.25
_OUTSIDE_WEIGHT = 10

Array = NDArray[np.float64]


def places(
    points: ArrayLike, sizes: Sequence[tuple[float, float]], obstacles: ArrayLike, room: Sequence[float]
) -> Array:
    """The centres of labels for points, shape (n, 2), each in turn where least is in the way.

    Sizes are width and height of each label; obstacles, such as markers, and the room for labels are boxes: centre,
    width and height, shape (m, 4) and (4,).
    """
    taken = list(np.asarray(obstacles, dtype=float))
    found = []
    for centre, size in zip(np.asarray(points, dtype=float), np.asarray(sizes, dtype=float), strict=True):
        reach = size / 2 + _GAP
        around = np.concatenate([centre + distance * reach * _DIRECTIONS for distance in _DISTANCES])
        outside = np.prod(size) - _overlap(around, size, np.array(room))
        cost = sum(_overlap(around, size, box) for box in taken) + _OUTSIDE_WEIGHT * outside
        best = around[np.argmin(cost + _DISTANCE_WEIGHT * np.linalg.norm(around - centre, axis=1))]
        taken.append(np.array([*best, *size]))
        found.append(best)
    return np.array(found)


def _overlap(centres: Array, size: Array, box: Array) -> Array:
    """The area that labels share with a box (centre, width and height)."""
    shared = (size + box[2:]) / 2 - np.abs(centres - box[:2])
    return np.clip(np.minimum(shared, np.minimum(size, box[2:])), 0, None).prod(axis=1)

"""Placement of labels without overlap; the same places for the same points, every time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

_TURNS = 2 * np.pi * np.arange(16) / 16
_DIRECTIONS = np.column_stack([np.cos(_TURNS), np.sin(_TURNS)])
_DISTANCES = (1.0, 1.6, 2.3, 3.1)
# Overlaps weigh by their area; a label also costs its distance, so that it stays near where nothing is in the way.
_DISTANCE_WEIGHT = 0.25
_OUTSIDE_WEIGHT = 10

Array = NDArray[np.float64]


def beside(points: ArrayLike, markers: Sequence[float], size: tuple[float, float], room: Sequence[float]) -> Array:
    """A place beside each point for a label of a given size, one after the other, where least is in the way.

    Args:
        points: Centres of the markers, shape (n, 2).
        markers: Their widths.
        size: Width and height of a label.
        room: Centre, width and height of where labels may be.

    Returns:
        The centres of the labels, shape (n, 2).
    """
    centres = np.asarray(points, dtype=float)
    taken = [np.array([x, y, width, width]) for (x, y), width in zip(centres, markers, strict=True)]
    found = []
    for centre, width in zip(centres, markers, strict=True):
        reach = (width + np.array(size)) / 2
        around = np.concatenate([centre + distance * reach * _DIRECTIONS for distance in _DISTANCES])
        outside = np.prod(size) - _overlap(around, size, np.array(room))
        cost = sum(_overlap(around, size, box) for box in taken) + _OUTSIDE_WEIGHT * outside
        best = around[np.argmin(cost + _DISTANCE_WEIGHT * np.linalg.norm(around - centre, axis=1))]
        taken.append(np.array([*best, *size]))
        found.append(best)
    return np.array(found)


def _overlap(centres: Array, size: tuple[float, float], box: Array) -> Array:
    """The area that labels share with a box (centre, width and height)."""
    shared = (np.array(size) + box[2:]) / 2 - np.abs(centres - box[:2])
    return np.clip(np.minimum(shared, np.minimum(size, box[2:])), 0, None).prod(axis=1)

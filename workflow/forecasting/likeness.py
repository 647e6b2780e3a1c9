"""Which measured cell stands for one that was never run, and how far off it may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness import config
from harness.config import POOL, Cell


@dataclass(frozen=True, slots=True)
class Likeness:
    """A way in which one cell is like another.

    Attributes:
        words: How it is told.
        factor: The estimate is trusted within this factor, up and down.
        holds: Whether the second cell is so like the first.
    """

    words: str
    factor: float
    holds: Callable[[Cell, Cell], bool]


def _module(cell: Cell) -> str:
    return config.methods()[cell.method].module


def _in_pool(cell: Cell) -> bool:
    return cell.backbone == POOL


# In the order in which they are tried. But for that of seeds, factors hold 95 of 100 cells of preset `embedded`, each
# reckoned from another (docs/forecast.md).
LIKENESSES = (
    Likeness("itself", 1.0, lambda one, other: one == other),
    Likeness(
        "another seed",
        1.2,
        lambda one, other: (one.method, one.benchmark, one.backbone) == (other.method, other.benchmark, other.backbone),
    ),
    Likeness(
        "another backbone",
        2.2,
        lambda one, other: (
            (one.method, one.benchmark, _in_pool(one)) == (other.method, other.benchmark, _in_pool(other))
        ),
    ),
    Likeness(
        "another benchmark",
        2.2,
        lambda one, other: (one.method, _in_pool(one)) == (other.method, _in_pool(other)),
    ),
    Likeness(
        "a variant of the method",
        3.5,
        lambda one, other: (
            (_module(one), one.benchmark, _in_pool(one)) == (_module(other), other.benchmark, _in_pool(other))
        ),
    ),
    Likeness(
        "a variant on another benchmark",
        4.0,
        lambda one, other: (_module(one), _in_pool(one)) == (_module(other), _in_pool(other)),
    ),
)


def like(cell: Cell, measured: Iterable[Cell]) -> tuple[Cell, Likeness] | None:
    """The measured cell that is most like a cell; ``None`` where nothing was run with its method or a variant of it.

    Of several that are alike in the same way, one with the same backbone and seed comes first.
    """
    candidates = sorted(measured, key=lambda one: (one.backbone != cell.backbone, one.seed != cell.seed, one))
    for likeness in LIKENESSES:
        for other in candidates:
            if likeness.holds(cell, other):
                return other, likeness
    return None

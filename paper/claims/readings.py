"""What expressions read in cells: sums over the items of a cell, and values that stand for a whole training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paper import traces
from paper.claims.vocabulary import AbsentError
from paper.measures import Key
from paper.results import Cell

Array = NDArray[np.float64]


class Readings:
    """All seeds of one method with one backbone on one benchmark.

    Attributes:
        key: What was measured.
        cells: One a seed, in order of seed.
    """

    def __init__(self, key: Key, cells: Sequence[Cell]) -> None:
        self.key = key
        self.cells = tuple(sorted(cells, key=lambda cell: cell.run.seed))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Ascending."""
        return tuple(cell.run.seed for cell in self.cells)

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.cells[0].items.item_id)

    @cached_property
    def accuracy(self) -> Array:
        """100 where an item was answered right, else 0; shape (seeds, n)."""
        return 100 * np.array([cell.items.correct for cell in self.cells], dtype=float)

    @cached_property
    def cost(self) -> Array:
        """Of an item, with the final call; shape (seeds, n)."""
        return np.array([cell.items.cost_total for cell in self.cells])

    @cached_property
    def flops(self) -> Array:
        """PFLOPs of an item; shape (seeds, n)."""
        from paper.flops import pflops

        return np.array([pflops(cell) for cell in self.cells])

    def gate(self, name: str) -> tuple[Array, Array]:
        """Numerators and denominators of one of the ratios of :func:`paper.traces.ratios`, each of shape (seeds, n).

        Raises:
            AbsentError: A seed has no part in it: its gate is off, or memory never held a record at this step.
        """
        found = [traces.ratios(one).get(name) for one in self._traces]
        if any(one is None for one in found):
            raise AbsentError(f"{name} of {self.key.method} on {self.key.benchmark}")
        present = [one for one in found if one is not None]
        return np.array([one.numerators for one in present]), np.array([one.denominators for one in present])

    @cached_property
    def depth(self) -> Array:
        """Steps of an item; shape (seeds, n)."""
        return np.array([one.depth for one in self._traces], dtype=float)

    @cached_property
    def _traces(self) -> list[traces.Traces]:
        return [traces.read(cell) for cell in self.cells]

    def training(self, measure: str) -> list[Array]:
        """One measure of the training log, an array over the updates for each seed.

        Raises:
            AbsentError: The method is not trained, or the log does not have it.
        """
        logs = [self._log(cell) for cell in self.cells]
        if any(measure not in log for log in logs):
            raise AbsentError(f"{measure} in the training of {self.key.method} on {self.key.benchmark}")
        return [log[measure] for log in logs]

    def _log(self, cell: Cell) -> Mapping[str, Array]:
        if not (cell.folder / "training.parquet").is_file():
            return {}
        log = traces.updates(cell)
        return {str(name): log[name].to_numpy(dtype=float) for name in log}


def by_key(cells: Iterable[Cell]) -> dict[Key, Readings]:
    """The cells of every method, backbone and benchmark."""
    found: dict[Key, list[Cell]] = {}
    for cell in cells:
        found.setdefault(Key(cell.run.method, cell.run.backbone, cell.run.benchmark), []).append(cell)
    return {key: Readings(key, found[key]) for key in sorted(found)}

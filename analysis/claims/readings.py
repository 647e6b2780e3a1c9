"""What expressions read in cells: sums over the items of a cell, and values that stand for a whole training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis import traces
from analysis.claims.vocabulary import AbsentError
from analysis.frames import Key
from analysis.ratios import Ratio
from analysis.results import TRAINING, Cell
from analysis.training import updates

Array = NDArray[np.float64]
# What was measured, and by which trainings of it.
Trainings: TypeAlias = tuple[Key, tuple[int, ...]]


class Timed(NamedTuple):
    """What a timing job found of a cell, and the seed of that cell."""

    seconds: float
    seed: int


class Readings:
    """Some seeds of one method with one backbone on one benchmark.

    Attributes:
        key: What was measured.
        cells: One a seed, in order of seed.
    """

    def __init__(self, key: Key, cells: Sequence[Cell]) -> None:
        self.key = key
        self.cells = tuple(sorted(cells, key=lambda cell: cell.run.seed))
        self._chosen: dict[tuple[int, ...], Readings] = {}

    def of(self, seeds: tuple[int, ...]) -> Readings:
        """Those of some seeds alone; what was once read of them is kept."""
        if seeds == self.seeds:
            return self
        if seeds not in self._chosen:
            self._chosen[seeds] = Readings(self.key, [cell for cell in self.cells if cell.run.seed in seeds])
        return self._chosen[seeds]

    @property
    def trainings(self) -> Trainings:
        """What tells these from all others."""
        return self.key, self.seeds

    @property
    def seeds(self) -> tuple[int, ...]:
        """Ascending."""
        return tuple(cell.run.seed for cell in self.cells)

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.cells[0].items)

    @cached_property
    def accuracy(self) -> Array:
        """100 where an item was answered right, else 0; shape (seeds, n)."""
        return 100 * np.array([cell.items["correct"] for cell in self.cells], dtype=float)

    @cached_property
    def cost(self) -> Array:
        """Of an item, as its published cost counts the calls; shape (seeds, n)."""
        return np.array([cell.items["cost"] for cell in self.cells])

    @cached_property
    def cost_of_all_calls(self) -> Array:
        """Of an item, of all calls; shape (seeds, n)."""
        return np.array([cell.items["cost_total"] for cell in self.cells])

    @cached_property
    def flops(self) -> Array:
        """PFLOPs of an item; shape (seeds, n)."""
        from analysis.flops import pflops

        return np.array([pflops(cell) for cell in self.cells])

    def gate(self, name: str) -> tuple[Array, Array]:
        """Numerators and denominators of one of the ratios of :func:`analysis.traces.ratios`, each of shape (seeds, n).

        A seed that has no part in it, because memory never held a record at this step, has zeros.

        Raises:
            AbsentError: No seed has a part in it.
        """
        found = [traces.ratios(one).get(name) for one in self._traces]
        if all(one is None for one in found):
            raise AbsentError(f"{name} of {self.key[0]} on {self.key[2]}")
        nothing = np.zeros(self.n)
        blank = Ratio(nothing, nothing)
        each = [one or blank for one in found]
        return np.array([one.numerators for one in each]), np.array([one.denominators for one in each])

    @cached_property
    def depth(self) -> Array:
        """Steps of an item; shape (seeds, n)."""
        return np.array([one.depth for one in self._traces], dtype=float)

    @cached_property
    def _traces(self) -> list[traces.Traces]:
        return [traces.read(cell) for cell in self.cells]

    def training(self, measure: str) -> list[Array]:
        """One measure of the training log, an array over the updates for each seed.

        An update without it, such as one in which a gate was never asked, is left out.

        Raises:
            AbsentError: The method is not trained, or the log does not have it.
        """
        logs = [self._log(cell).get(measure, np.empty(0)) for cell in self.cells]
        found = [log[~np.isnan(log)] for log in logs]
        if not all(log.size for log in found):
            raise AbsentError(f"{measure} in the training of {self.key[0]} on {self.key[2]}")
        return found

    def _log(self, cell: Cell) -> Mapping[str, Array]:
        if not (cell.folder / TRAINING).is_file():
            return {}
        log = updates(cell)
        return {str(name): log[name].to_numpy(dtype=float) for name in log}


def by_key(cells: Iterable[Cell]) -> dict[Key, Readings]:
    """The cells of every method, backbone and benchmark."""
    found: dict[Key, list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.run.method, cell.run.backbone, cell.run.benchmark), []).append(cell)
    return {key: Readings(key, found[key]) for key in sorted(found)}

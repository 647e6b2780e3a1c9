"""What claims read in the cells of a run: values of items and of whole trainings, of the seeds there ought to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis import traces
from analysis.claims.numbers import AbsentError
from analysis.frames import Key
from analysis.ratios import Ratio
from analysis.registry import Selection, artefact
from analysis.results import TRAINING, Cell
from analysis.training import updates
from harness.runner import config
from harness.runner.config import Preset

Array = NDArray[np.float64]
# What was measured, and by which trainings of it.
Trainings: TypeAlias = tuple[Key, tuple[int, ...]]
# A method and what it runs on.
Row: TypeAlias = tuple[str, str]
# The artefact with a spread between trainings to show, and so with seeds of its own.
_SPREAD = "seed_variance"


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


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds that every row ought to have, whatever was run.

    Without them a training that is missing would silently change a mean, and a method that the table of seeds trains
    more often would be held against one that it does not.

    Attributes:
        own: Of a preset; a row that learns nothing has a single one.
        several: Of the table of seeds, for statements about trainings.
    """

    own: Mapping[Row, tuple[int, ...]] = field(default_factory=dict)
    several: Mapping[Row, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, preset: Preset) -> Seeds:
        """As a preset and the registry of artefacts declare them."""
        every = Selection(methods=tuple(config.methods()))
        return cls(_by_row(every.cells(preset)), _by_row(artefact(_SPREAD).cells_of(preset)))

    def __str__(self) -> str:
        usual, least = (pick(self.own.values(), key=len) for pick in (max, min))
        unlearned = "" if usual == least else f", {listed(least)} of methods that learn nothing"
        several = " or ".join(sorted({listed(seeds) for seeds in self.several.values()}))
        return f"{listed(usual)}{unlearned}; {several or 'none'} in statements about training seeds"


def listed(seeds: Iterable[int]) -> str:
    """Such as ``0/1/2``."""
    return "/".join(map(str, seeds))


def _by_row(cells: Iterable[config.Cell]) -> dict[Row, tuple[int, ...]]:
    """A seed on any benchmark is one that all need: an average over benchmarks is one of trainings."""
    found: dict[Row, set[int]] = {}
    for cell in cells:
        found.setdefault((cell.method, cell.backbone), set()).add(cell.seed)
    return {row: tuple(sorted(seeds)) for row, seeds in found.items()}


@dataclass(frozen=True, slots=True)
class Run:
    """What a claim can be held against: finished cells and timings, maybe none.

    Attributes:
        readings: Of every key that was run.
        timings: Seconds of a question, where they were measured.
        seeds: Those that a row ought to have: a mean over fewer is none, and over more is another one.
    """

    readings: Mapping[Key, Readings] = field(default_factory=dict)
    timings: Mapping[Key, Timed] = field(default_factory=dict)
    seeds: Seeds = field(default_factory=Seeds)
    simulated: bool = False

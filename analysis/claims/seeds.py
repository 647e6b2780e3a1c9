"""Which trainings a statement is about: those of the preset, or the several of the table of seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from analysis.registry import Selection, artefact
from harness.runner import config
from harness.runner.config import Cell, Preset

# A method and what it runs on.
Row: TypeAlias = tuple[str, str]
# The artefact with a spread between trainings to show, and so with seeds of its own.
_SPREAD = "seed_variance"


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


def _by_row(cells: Iterable[Cell]) -> dict[Row, tuple[int, ...]]:
    """A seed on any benchmark is one that all need: an average over benchmarks is one of trainings."""
    found: dict[Row, set[int]] = {}
    for cell in cells:
        found.setdefault((cell.method, cell.backbone), set()).add(cell.seed)
    return {row: tuple(sorted(seeds)) for row, seeds in found.items()}

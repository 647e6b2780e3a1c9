"""The artefacts there are, from ``config/artefacts.yaml``: which module makes each, and from which cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import Field, NonNegativeInt

from analysis.code import code_of_report
from analysis.sensitivity import plan
from analysis.source import Source
from harness.errors import UserError, unknown
from harness.files import Declaration, Distinct, Many, read_entries, source_of
from harness.runner import config, layout
from harness.runner.config import POOL, Cell, Preset

if TYPE_CHECKING:
    from analysis.figure import Figure
    from analysis.table import Table

ENDINGS: Mapping[str, tuple[str, ...]] = {"table": ("tex", "csv", "md", "html"), "figure": ("pdf", "png", "svg", "csv")}


class Selection(Declaration):
    """Some cells of a preset; what is not named is what the preset has.

    Attributes:
        methods: Keys of ``config/methods.yaml``; ``None`` for those of the preset, the rows of its main table.
        benchmarks: Those of them that the preset has; ``None`` for all that it has.
        backbones: Rows of the methods; ``None`` for all.
        seeds: Training seeds; ``None`` for those of the preset.
    """

    methods: Distinct[str] | None = None
    benchmarks: Distinct[str] | None = None
    backbones: Distinct[str] | None = None
    seeds: Distinct[NonNegativeInt] | None = None

    def cells(self, preset: Preset) -> list[Cell]:
        """The cells, in the order of methods, rows, benchmarks, seeds."""
        entries = config.methods()
        seeds = preset.seeds if self.seeds is None else self.seeds
        return [
            Cell(method, benchmark, row, seed)
            for method in (preset.methods if self.methods is None else self.methods)
            for row in entries[method].rows
            if (row == POOL or row in preset.backbones) and (self.backbones is None or row in self.backbones)
            for benchmark in preset.benchmarks
            if self.benchmarks is None or benchmark in self.benchmarks
            for seed in (seeds if entries[method].trained else seeds[:1])
        ]


class Artefact(Declaration):
    """One entry of ``config/artefacts.yaml``.

    Attributes:
        key: Its name below ``reports/``, without ending.
        module: Module with a function ``build`` that turns a source into a table or a figure.
        kind: ``table`` or ``figure``.
        cells: The cells it is made from.
        timings: The cells that are timed for it, with the first of their seeds.
        data: Whether it reads the prepared questions.
        worlds: Whether it also reads the worlds of ``config/sensitivity.yaml``, which only a simulated run has.
        options: What its module is told.
    """

    key: Annotated[str, Field(pattern="^([a-z0-9_]+/)?[a-z0-9_]+$")]
    module: str
    kind: Literal["table", "figure"]
    cells: Annotated[Many[Selection], MinLen(1)] = ()
    timings: Annotated[Many[Selection], MinLen(1)] = ()
    data: bool = False
    worlds: bool = False
    options: Mapping[str, Any] = {}

    @property
    def files(self) -> list[str]:
        """Names of its files below the folder of a preset."""
        return [f"{self.key}.{ending}" for ending in ENDINGS[self.kind]]

    def cells_of(self, preset: Preset) -> list[Cell]:
        """Its cells within a preset; none where the preset has none of its benchmarks."""
        return _distinct(cell for selection in self.cells for cell in selection.cells(preset))

    def timings_of(self, preset: Preset) -> list[Cell]:
        """The cells that are timed for it, one seed each."""
        found = _distinct(cell for selection in self.timings for cell in selection.cells(preset))
        return [cell for cell in found if cell.seed == min(one.seed for one in found)]

    def applies_to(self, preset: Preset) -> bool:
        """Whether a preset has anything to make it from."""
        if self.worlds:
            return bool(plan(preset))
        return not self.cells or bool(self.cells_of(preset))

    def check(self, preset: Preset) -> None:
        """Refuse a preset that cannot have it.

        Raises:
            UserError: Says why.
        """
        if not self.applies_to(preset):
            raise UserError(
                f"{self.key} cannot be made of preset {preset.name}, which has no {self._lacking(preset)}; "
                "choose another preset (config/presets) or artefact (config/artefacts.yaml)"
            )

    def _lacking(self, preset: Preset) -> str:
        """What a preset would need for it."""
        if self.worlds and not preset.simulated:
            return "simulated backbones"
        if all(set(one.benchmarks or preset.benchmarks).isdisjoint(preset.benchmarks) for one in self.cells):
            return "benchmark it is made from"
        return f"backbone in the rows of its methods (config/methods.yaml), but {', '.join(preset.backbones)}"

    def choice(self, preset: Preset) -> dict[str, Any]:
        """What of the configuration decides, besides the inputs, what it shows."""
        cells = self.cells_of(preset)
        entries = config.methods()
        asked = {name: getattr(preset, name) for name in ("backbones", "benchmarks", "endpoints", "weights")}
        return {
            "cells": [str(cell) for cell in cells],
            "titles": {cell.method: entries[cell.method].title for cell in cells},
            "options": dict(self.options),
            **({} if cells else asked),
        }

    def inputs(self, preset: Preset) -> list[Path]:
        """The files it is made from, which the DAG makes first."""
        cells = [layout.cell(preset.name, cell) / "run.json" for cell in self.cells_of(preset)]
        timings = [layout.timing(preset.name, cell) / "timing.json" for cell in self.timings_of(preset)]
        prepared = [layout.manifest(preset.name, key) for key in preset.benchmarks if self.data]
        worlds = [folder / "run.json" for world in plan(preset) for folder in world.folders] if self.worlds else []
        return [*cells, *timings, *prepared, *worlds]

    def code(self) -> str:
        """Fingerprint of the code that can change its files, given what it is made from."""
        writer = {"table": "analysis.table", "figure": "analysis.figure"}[self.kind]
        return code_of_report([self.module, writer], "config/published.yaml", *self._reads())

    def _reads(self) -> list[str]:
        """What it reads of the configuration besides its cells."""
        if self.worlds:
            return ["config/sensitivity.yaml"]
        return [] if self.cells or self.data else ["config/backbones.yaml", "config/weights.yaml"]

    def build(self, preset: Preset) -> Table | Figure:
        """Make it from the finished cells of a preset.

        Raises:
            UserError: The preset cannot have it, or a cell is missing, unreadable or does not go with the others.
        """
        self.check(preset)
        source = Source(
            cells=tuple(layout.cell(preset.name, cell) for cell in self.cells_of(preset)),
            preset=preset,
            timings=tuple(layout.timing(preset.name, cell) for cell in self.timings_of(preset)),
            options=self.options,
        )
        made: Table | Figure = import_module(self.module).build(source)
        return made


@cache
def artefacts() -> Mapping[str, Artefact]:
    """Every artefact, by key.

    Raises:
        UserError: The file has a slip, or names a method or module that does not exist.
    """
    path = config.FOLDER / "artefacts.yaml"
    entries = read_entries(path, Artefact)
    known = config.methods()
    for one in entries.values():
        for method in [name for selection in (*one.cells, *one.timings) for name in selection.methods or ()]:
            if method not in known:
                raise unknown("method", method, known, f"config/methods.yaml; named by artefact {one.key}")
        if source_of(one.module) is None:
            raise UserError(f"config/artefacts.yaml names the module {one.module!r}, which cannot be found")
    return entries


def artefact(key: str) -> Artefact:
    """The artefact of a name.

    Raises:
        UserError: Names the nearest that exists.
    """
    known = artefacts()
    if key not in known:
        raise unknown("artefact", key, list(known), "config/artefacts.yaml")
    return known[key]


def folders() -> list[str]:
    """Folders below ``reports/`` that hold artefacts of their own, as presets have theirs."""
    return sorted({Path(key).parts[0] for key in artefacts() if "/" in key})


def cells_of(preset: Preset) -> list[Cell]:
    """Every cell that any artefact of a preset is made from."""
    return _distinct(cell for one in artefacts().values() for cell in one.cells_of(preset))


def _distinct(cells: Iterable[Cell]) -> list[Cell]:
    return list(dict.fromkeys(cells))

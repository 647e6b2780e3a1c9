"""The forecast of a run, and the same of what was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness import config, layout
from harness.backbones import Backbone, load
from harness.config import Cell, Preset
from harness.errors import UserError
from harness.files import ROOT
from workflow.forecasting.likeness import Likeness, like
from workflow.forecasting.measured import Disk, Measured, finished, measure
from workflow.forecasting.scaling import Amounts, scaled, total
from workflow.forecasting.sizes import size_of
from workflow.forecasting.targets import Wanted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Reckoned:
    """What a cell takes.

    Attributes:
        cell: Which.
        source: The measured cell behind it.
        likeness: How the two are alike, in words.
        amounts: Calls, tokens and cost by backbone.
        disk: Bytes it takes.
        seconds: How long it runs where it answers as fast as the measured one did.
    """

    cell: Cell
    source: Cell
    likeness: str
    amounts: Amounts
    disk: Disk
    seconds: float


@dataclass(frozen=True)
class Forecast:
    """What a run takes.

    Attributes:
        preset: The run.
        source: The preset whose cells were measured.
        simulated: Whether their backbones were.
        cells: One each that could be reckoned.
        unknown: Those that could not.
        timings: What the timing jobs ask besides; they ask everything, whatever is known.
    """

    preset: str
    source: str
    simulated: bool
    cells: tuple[Reckoned, ...]
    unknown: tuple[Cell, ...]
    timings: Amounts | None

    @property
    def amounts(self) -> Amounts:
        """Of all cells and timing jobs, by backbone."""
        parts = [one.amounts for one in self.cells]
        return total([*parts, self.timings] if self.timings is not None else parts)

    @property
    def by_likeness(self) -> Counter[str]:
        """How many cells were reckoned from what."""
        return Counter(one.likeness for one in self.cells)


def forecast(preset: Preset, wanted: Wanted, source: Preset) -> Forecast:
    """Reckon what the cells of a run take from those of another that are finished.

    Args:
        preset: The run to come.
        wanted: Its cells.
        source: The run that was measured.

    Raises:
        UserError: Of the other run nothing is finished that tells about these cells.
    """
    backbones = load(ROOT / "config" / "backbones.yaml")
    known = [cell for cell in _cells_there(source) if finished(source.name, cell)]
    read: dict[Cell, Measured] = {}
    cells, unreckoned = [], []
    for cell in wanted.cells:
        found = like(cell, known)
        if found is None:
            unreckoned.append(cell)
            continue
        other, likeness = found
        measured = read[other] if other in read else read.setdefault(other, measure(source, other))
        cells.append(_reckoned(preset, cell, measured, likeness, source.name, backbones))
    if not cells:
        raise UserError(
            f"no finished cell of preset {source.name} tells about these targets; measure a slice first: snakemake "
            f"--cores all cells --config preset={source.name} limit='{{share: 0.05}}' (docs/forecast.md)"
        )
    by_cell = {one.cell: one for one in cells}
    timed = [_timed(preset, by_cell[cell], read, source.name) for cell in wanted.timed if cell in by_cell]
    return Forecast(
        preset=preset.name,
        source=source.name,
        simulated=any(one.simulated for one in read.values()),
        cells=tuple(cells),
        unknown=tuple(unreckoned),
        timings=total(timed) if timed else None,
    )


def actual(preset: Preset, cells: Iterable[Cell]) -> Forecast | None:
    """What the finished ones among some cells of a run took; ``None`` where none is finished."""
    measured = [measure(preset, cell) for cell in cells if finished(preset.name, cell)]
    found = [_as_it_was(one) for one in measured]
    simulated = any(one.simulated for one in measured)
    return Forecast(preset.name, preset.name, simulated, tuple(found), (), None) if found else None


def by_method(cells: Sequence[Reckoned]) -> dict[str, Amounts]:
    """Amounts by method, in the order in which methods first appear."""
    methods = dict.fromkeys(one.cell.method for one in cells)
    return {key: total([one.amounts for one in cells if one.cell.method == key]) for key in methods}


def _cells_there(source: Preset) -> list[Cell]:
    """Every cell of a preset that has a folder, whether an artefact is made of it or not."""
    runs = sorted((layout.RESULTS / source.name / "cells").glob("*/*/*/seed*/run.json"))
    cells = [layout.cell_of(run.parent) for run in runs]
    return [cell for cell in cells if cell is not None and cell.method in config.methods()]


def _reckoned(
    preset: Preset,
    cell: Cell,
    measured: Measured,
    likeness: Likeness,
    source: str,
    backbones: Mapping[str, Backbone],
) -> Reckoned:
    amounts = scaled(measured, size_of(preset, cell, source)).within(likeness.factor)
    own = _as_it_was(measured).amounts.point
    calls, uses = (_ratio(amounts.point, own, column) for column in ("asked", "uses"))
    if cell.backbone != measured.cell.backbone:
        amounts = _at_backbone(amounts, backbones[cell.backbone])
    disk = Disk(
        logs=measured.disk.logs * calls,
        tables=measured.disk.tables * uses,
        embeddings=measured.disk.embeddings * calls,
        checkpoints=measured.disk.checkpoints,
    )
    return Reckoned(cell, measured.cell, likeness.words, amounts, disk, measured.seconds * uses)


def _ratio(wanted: pd.DataFrame, had: pd.DataFrame, column: str) -> float:
    before = float(had[column].sum())
    return float(wanted[column].sum()) / before if before else 1.0


def _at_backbone(amounts: Amounts, backbone: Backbone) -> Amounts:
    """As many calls and tokens at another backbone, at its prices."""

    def priced(frame: pd.DataFrame) -> pd.DataFrame:
        moved = frame.groupby(lambda _: backbone.key).sum()
        moved["cost"] = backbone.cost(1, 0) * moved["used_prompt"] + backbone.cost(0, 1) * moved["used_completion"]
        moved["asked_cost"] = backbone.cost(1, 0) * moved["prompt"] + backbone.cost(0, 1) * moved["completion"]
        return moved

    return Amounts(priced(amounts.point), priced(amounts.low), priced(amounts.high))


def _timed(preset: Preset, cell: Reckoned, read: Mapping[Cell, Measured], source: str) -> Amounts:
    """The test questions once more, every use of them asked."""
    size = replace(size_of(preset, cell.cell, source), train=0, passes=0, searches=False)
    once = scaled(read[cell.source], size)

    def asking(frame: pd.DataFrame) -> pd.DataFrame:
        used = {"asked": "uses", "prompt": "used_prompt", "completion": "used_completion", "asked_cost": "cost"}
        return frame.assign(**{column: frame[of] for column, of in used.items()})

    return Amounts(asking(once.point), asking(once.low), asking(once.high))


def _as_it_was(measured: Measured) -> Reckoned:
    import numpy as np

    from workflow.forecasting.measured import COLUMNS

    sums = measured.rows.groupby("backbone")[list(COLUMNS)].sum().astype(np.float64)
    amounts = Amounts(sums, sums, sums)
    return Reckoned(measured.cell, measured.cell, "itself", amounts, measured.disk, measured.seconds)

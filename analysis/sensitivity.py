"""The scenarios of ``config/sensitivity.yaml``: one assumed parameter of the simulation at an end of its range."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from harness.benchmarks import keys
from harness.errors import unknown
from harness.files import ROOT, Declaration, Distinct, Text, read
from harness.llm.backbones import load as load_backbones
from harness.runner import config, layout
from harness.runner.config import POOL, Cell, Preset
from harness.simulator.parameters import DEFAULT_FILE, load_settings

if TYPE_CHECKING:
    from analysis.frames import Key

PATH = ROOT / "config" / "sensitivity.yaml"


class Row(Declaration):
    """A row of the main table."""

    method: str
    backbone: str


class Conclusion(Declaration):
    """A statement about two rows on a benchmark: the first is more accurate than the second, or costs less."""

    title: Text
    measure: Literal["accuracy", "cost"]
    benchmark: str
    first: Row
    second: Row

    @property
    def keys(self) -> tuple[Key, Key]:
        """Both rows on the benchmark."""
        first, second = ((row.method, row.backbone, self.benchmark) for row in (self.first, self.second))
        return first, second


class Scenario(NamedTuple):
    """The simulator with at most one parameter changed, and the cells run with it."""

    parameter: str  # the changed one; empty for the simulator as stated
    stated: float  # its stated value; 1 for a list or mapping
    value: float  # its value in this scenario; a factor for a list or mapping
    preset: str  # name of the preset with this change
    cells: tuple[Cell, ...]  # one for each row that a conclusion names

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those of the cells."""
        return tuple(layout.cell(self.preset, cell) for cell in self.cells)


def plan(preset: Preset, path: Path = PATH) -> list[Scenario]:
    """The scenarios of a preset: as stated, then each parameter at each end; none for a real or changed run."""
    found = conclusions(preset, path)
    if not preset.simulated or preset.simulator or not found:
        return []
    rows = sorted({key for conclusion in found for key in conclusion.keys})
    cells = tuple(Cell(method, benchmark, backbone, preset.seeds[0]) for method, backbone, benchmark in rows)
    assumed = load_settings().assumed
    _check("parameter", _file(path).parameters, assumed, path, DEFAULT_FILE.name)
    return [Scenario("", 0.0, 0.0, preset.name, cells)] + [
        Scenario(parameter, assumed[parameter].number, end, f"{preset.name}@{parameter}={end}", cells)
        for parameter in _file(path).parameters
        for end in assumed[parameter].range
        # An end that is the stated value is no scenario of its own.
        if end != assumed[parameter].number
    ]


def conclusions(preset: Preset, path: Path = PATH) -> list[Conclusion]:
    """The conclusions about rows that a preset has, in the order of the file."""
    known = {*preset.backbones, POOL}
    return [
        one
        for one in _file(path).conclusions
        if one.benchmark in preset.benchmarks and {one.first.backbone, one.second.backbone} <= known
    ]


class _File(Declaration):
    parameters: Distinct[str]
    conclusions: Distinct[Conclusion]


@cache
def _file(path: Path) -> _File:
    file: _File = read(path, _File)
    backbones = [*load_backbones(ROOT / "config" / "backbones.yaml"), POOL]
    rows = [row for one in file.conclusions for row in (one.first, one.second)]
    _check("benchmark", [one.benchmark for one in file.conclusions], keys(), path)
    _check("method", [row.method for row in rows], config.methods(), path)
    _check("backbone", [row.backbone for row in rows], backbones, path)
    return file


def _check(kind: str, names: Iterable[str], known: Iterable[str], path: Path, declared: str = "") -> None:
    """A mistyped name would look like a row that the preset does not have, and be left out in silence."""
    choices = list(known)
    for name in names:
        if name not in choices:
            raise unknown(kind, name, choices, f"config/{declared or f'{kind}s.yaml'}; named in {path.name}")

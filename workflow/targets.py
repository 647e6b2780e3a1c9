"""From the names of targets to the cells that have to be run for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness import config, layout
from harness.config import Cell, Preset
from harness.errors import UserError, unknown
from paper import registry
from paper.registry import Artefact

ALL = "all"
# Reports that are made of the cells of others.
_OF_EVERYTHING = ("claims", "flip_rate", "served", "index")
_OF_CELLS = ("learning", "learning_curves", "learning_contrasts", "search_history")


@dataclass(frozen=True)
class Wanted:
    """What targets ask for.

    Attributes:
        cells: Each once.
        timed: Those of them whose test questions a timing job asks once more.
    """

    cells: tuple[Cell, ...]
    timed: tuple[Cell, ...]


def wanted(targets: Iterable[str], preset: Preset) -> Wanted:
    """The cells behind targets of the DAG.

    Args:
        targets: Files as one gives them to Snakemake, names of artefacts, or ``all``.
        preset: The run they are made of.

    Raises:
        UserError: One is no target, or one of another preset.
    """
    found = [_of(target, preset) for target in targets]
    cells = list(dict.fromkeys(cell for one in found for cell in one.cells))
    timed = list(dict.fromkeys(cell for one in found for cell in one.timed))
    return Wanted(tuple(dict.fromkeys([*cells, *timed])), tuple(timed))


def _of(target: str, preset: Preset) -> Wanted:
    parts = Path(target).parts
    if parts and parts[0] == str(layout.RESULTS):
        return _of_result(target, parts, preset)
    named = list(parts[1:] if parts and parts[0] == str(layout.REPORTS) else parts)
    if len(named) > 1 and named[0] in config.preset_names():
        _check_preset(target, named.pop(0), preset)
    name = "/".join(named)
    key = name if name in registry.artefacts() else name.rpartition(".")[0] or name
    if key in (ALL, *_OF_EVERYTHING):
        return _of_artefacts([one for one in registry.artefacts().values() if one.applies_to(preset)], preset)
    if key in _OF_CELLS:
        return Wanted(tuple(config.cells(preset)), ())
    if key not in registry.artefacts():
        raise unknown("target", target, [ALL, *registry.artefacts()], "config/artefacts.yaml, besides results/")
    artefact = registry.artefact(key)
    artefact.check(preset)
    return _of_artefacts([artefact], preset)


def _of_artefacts(artefacts: Iterable[Artefact], preset: Preset) -> Wanted:
    chosen = list(artefacts)
    return Wanted(
        tuple(cell for one in chosen for cell in one.cells_of(preset)),
        tuple(cell for one in chosen for cell in one.timings_of(preset)),
    )


def _of_result(target: str, parts: tuple[str, ...], preset: Preset) -> Wanted:
    try:
        _, name, kind, method, benchmark, backbone, seed, *_ = parts
        cell = Cell(method, benchmark, backbone, int(seed.removeprefix("seed")))
    except ValueError as error:
        raise UserError(
            f"{target} is the result of no cell; expected such as "
            "results/paper/cells/gmr/math/pool/seed0/run.json, an artefact, or all"
        ) from error
    _check_preset(target, name, preset)
    config.check_cell(preset, cell)
    return Wanted((cell,), (cell,) if kind == "timings" else ())


def _check_preset(target: str, name: str, preset: Preset) -> None:
    if name != preset.name:
        raise UserError(f"{target} is of preset {name}, while --preset is {preset.name}; give the one or the other")

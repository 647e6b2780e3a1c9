"""Which cells may stand in one table: those whose numbers a reader may compare."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from analysis.provenance import answered, short
from analysis.results import Cell, read
from harness.errors import UserError


def read_comparable(folders: Iterable[Path]) -> tuple[Cell, ...]:
    """Read cells that belong together.

    Returns:
        The cells in order of benchmark, method, backbone and seed, whatever the order of ``folders``.

    Raises:
        UserError: When there is no cell, one cannot be read, or two of them cannot stand in one table.
    """
    cells = tuple(sorted((read(folder) for folder in folders), key=_identity))
    if not cells:
        raise UserError("no results to show: expected at least one cell folder; run the workflow first")
    check_comparable(cells)
    return cells


def check_comparable(cells: Sequence[Cell]) -> None:
    """Refuse cells of different kinds, presets, worlds, weights, questions or rules, and the same cell twice.

    The seeds of one measurement must also agree in their conditions and in what answered under the name of each
    backbone: a mean over them would be of nothing that was ever run.

    Raises:
        UserError: Naming two cells that do not go together.
    """
    _agree(cells, lambda cell: "simulated" if cell.run.simulated else "real", "kinds of backbones")
    _agree(cells, lambda cell: cell.run.preset, "presets")
    _agree(cells, _worlds, "simulated worlds")
    _agree(cells, _weights, "weights of the backbones")
    for benchmark in sorted({cell.run.benchmark for cell in cells}):
        column = [cell for cell in cells if cell.run.benchmark == benchmark]
        _agree(column, lambda cell: cell.run.data.checksum, f"data checksums of {benchmark}")
        _agree(column, _test_items, f"test items of {benchmark}")
        _agree(column, lambda cell: f"rules {cell.run.rule_version}", f"grading rules of {benchmark}")
    _refuse_twice(cells)
    _check_seeds(cells)


def _check_seeds(cells: Sequence[Cell]) -> None:
    measurements: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        measurements.setdefault(_identity(cell)[:3], []).append(cell)
    for (benchmark, method, backbone), seeds in sorted(measurements.items()):
        where = f"between the seeds of {method} ({backbone}) on {benchmark}"
        _agree(seeds, lambda cell: "; ".join(cell.run.notes) or "none", f"conditions {where}")
        for key in sorted({key for cell in seeds for key in cell.run.backbones}):
            asked = [cell for cell in seeds if key in cell.run.backbones]
            _agree(asked, functools.partial(_answered, key), f"revisions of {key} {where}")


def _answered(key: str, cell: Cell) -> str:
    """A server that tells no revision is as good as another that does not."""
    return answered(cell.run.backbones[key])


def _worlds(cell: Cell) -> str:
    """The worlds that a cell's simulated backbones live in; real ones have none."""
    found = {short(backbone["world"]) for backbone in cell.run.backbones.values() if "world" in backbone}
    return ", ".join(sorted(found)) or "none"


def _weights(cell: Cell) -> str:
    """Which weights a cell's backbones had, such as those of another precision."""
    found = {backbone.get("weights", "original") for backbone in cell.run.backbones.values()}
    return ", ".join(sorted(found)) or "none"


def _identity(cell: Cell) -> tuple[str, str, str, int, str]:
    run = cell.run
    return run.benchmark, run.method, run.backbone, run.seed, str(cell.folder)


def _test_items(cell: Cell) -> str:
    digest = hashlib.sha256("\n".join(cell.items.item_id).encode()).hexdigest()
    return f"{len(cell.items.item_id)} items, {digest[:12]}"


def _agree(cells: Sequence[Cell], of: Callable[[Cell], str], what: str) -> None:
    first = cells[0]
    for other in cells[1:]:
        if of(other) != of(first):
            raise UserError(
                f"different {what} in one table: {first.folder} ({of(first)}) and {other.folder} ({of(other)}); "
                "give only cells that belong together, or make one of them again"
            )


def _refuse_twice(cells: Sequence[Cell]) -> None:
    seen: dict[tuple[str, str, str, int], Path] = {}
    for cell in cells:
        key = _identity(cell)[:4]
        if key in seen:
            raise UserError(
                f"the same cell twice ({', '.join(map(str, key))}): {seen[key]} and {cell.folder}; "
                "expected each once; leave one out"
            )
        seen[key] = cell.folder

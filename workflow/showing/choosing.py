"""Which trajectories of a cell are meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness import config, layout
from harness.config import Cell, Preset
from harness.errors import UserError
from harness.items import Status
from paper.results import outcome, read


class Listed(NamedTuple):
    """One question of a cell and how it went."""

    id: str
    correct: bool
    status: Status
    detail: str
    calls: int
    tokens: int
    cost: float

    @property
    def outcome(self) -> str:
        """``right``, ``wrong`` or ``error``."""
        return outcome(self.status, self.correct)


def cell_of(preset: Preset, method: str, benchmark: str, backbone: str | None, seed: int | None) -> Cell:
    """The cell that is meant, where parts of its name may be left out.

    Raises:
        UserError: There is no such cell, or there are several.
    """
    entries = config.methods()
    if backbone is None and method in entries:
        rows = [row for row in entries[method].rows if row == config.POOL or row in preset.backbones]
        if len(rows) != 1:
            raise UserError(f"{method} has the rows {', '.join(rows)}; name one by --backbone")
        backbone = rows[0]
    cell = Cell(method, benchmark, backbone or "", preset.seeds[0] if seed is None else seed)
    config.check_cell(preset, cell)
    return cell


def listed(preset: Preset, cell: Cell) -> list[Listed]:
    """The questions of a finished cell, in the order of their ids.

    Raises:
        UserError: It is not finished, or damaged.
    """
    items = read(check_finished(preset, cell)).items
    tokens = (sum(pair) for pair in zip(items.prompt_tokens, items.completion_tokens, strict=True))
    columns = (items.item_id, items.correct, items.status, items.detail, items.calls, tokens, items.cost_total)
    return [Listed(*row) for row in zip(*columns, strict=True)]


def check_finished(preset: Preset, cell: Cell) -> Path:
    """The folder of a finished cell.

    Raises:
        UserError: It is not finished.
    """
    folder = layout.cell(preset.name, cell)
    if not (folder / "run.json").exists():
        raise UserError(
            f"{cell} of preset {preset.name} is not finished; run it with `snakemake --cores all {folder / 'run.json'}`"
        )
    return folder


def check_item(item: str, known: Sequence[str], cell: Cell) -> None:
    """Refuse a question that a cell does not have.

    Raises:
        UserError: Names the nearest.
    """
    if item not in known:
        near = difflib.get_close_matches(item, known, n=1) or known[:1]
        raise UserError(f"{cell} has no question {item!r} among its {len(known)}; one that it has is {near[0]!r}")

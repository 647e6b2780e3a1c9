"""What of a run is there to be shown: its finished cells, and the files made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from analysis import registry, results
from analysis.registry import Artefact
from analysis.results import Cell
from analysis.site.frame import Site
from harness.errors import UserError
from harness.runner import config, layout
from harness.runner.config import Preset


@dataclass(frozen=True)
class Finished:
    """The finished part of a run.

    Attributes:
        preset: The run.
        cells: Its finished cells, in the order of the artefacts that they are for.
        missing: The others.
        artefacts: What its cells can be made into.
        folder: Where its reports lie, and the site.
    """

    preset: Preset
    cells: tuple[Cell, ...]
    missing: tuple[config.Cell, ...]
    artefacts: tuple[Artefact, ...]
    folder: Path

    @classmethod
    def of(cls, preset: Preset, names: Sequence[str]) -> Finished:
        """Whatever is finished now.

        Args:
            preset: The run.
            names: Keys of the artefacts that it ought to have.

        Raises:
            UserError: Nothing is, or a cell cannot be read.
        """
        wanted = list(dict.fromkeys([*registry.cells_of(preset), *config.cells(preset)]))
        there = {cell: layout.cell(preset.name, cell) for cell in wanted}
        done = [cell for cell, folder in there.items() if (folder / "run.json").is_file()]
        if not done:
            raise UserError(
                f"no cell of preset {preset.name} is finished, so there is nothing to show; "
                f"run `snakemake --cores all reports/{preset.name}/main_table.md` first"
            )
        missing = tuple(cell for cell in wanted if cell not in done)
        cells = tuple(results.read(there[cell]) for cell in done)
        artefacts = tuple(registry.artefact(name) for name in names)
        return cls(preset, cells, missing, artefacts, layout.REPORTS / preset.name)

    @property
    def simulated(self) -> bool:
        """Whether any cell was answered by simulated backbones."""
        return any(cell.run.simulated for cell in self.cells)

    @cached_property
    def site(self) -> Site:
        """The frame of its pages below ``site/``."""
        return Site.of(self.preset.name, simulated=self.simulated)

    def report(self, name: str) -> Path | None:
        """A file of its reports, ``None`` where that is not made yet."""
        path = self.folder / name
        return path if path.is_file() else None

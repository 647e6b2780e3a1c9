"""Inputs of an artefact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.finished_cells import FinishedCell
    from analysis.frames import Results
    from harness.runner.run import Run

_NAMED = 5


def describe_unfinished(unfinished: Sequence[Path], finished: int) -> str:
    """Return a sentence with the number of unfinished cells (given by folder) and the names of the first."""
    names = [" ".join(folder.parts[-4:]) for folder in unfinished]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} of {len(names) + finished} cells are not finished ({', '.join(names[:_NAMED])}{more})"


@dataclass(frozen=True)
class Source:
    """The inputs of one artefact of a preset."""

    preset: Run
    cells: tuple[Path, ...] = ()  # folders of finished cells
    options: Mapping[str, Any] = field(default_factory=dict)  # options of the entry in ``config/artefacts.yaml``
    again: tuple[Path, ...] = ()  # folders of finished cells that repeat single calls
    unfinished: tuple[Path, ...] = ()  # folders of the preset's cells that are not finished
    caption: str = ""  # caption and legend of the entry, the same for any run
    legend: tuple[str, ...] = ()

    def asked_again(self) -> list[FinishedCell]:
        """Load the finished cells that repeat single calls (preset key ``noise_floor``)."""
        from analysis.finished_cells import read

        return [read(folder) for folder in self.again]

    def results(self) -> Results:
        """Load the cells; raises UserError as :func:`analysis.finished_cells.read_all`."""
        # Planning a run imports this module and must not load pandas.
        from analysis.finished_cells import read_all
        from analysis.frames import Results
        from harness.runner import config

        cells = read_all(self.cells)
        by_order = sorted(cells, key=lambda cell: self.cells.index(cell.folder))
        order = list(dict.fromkeys(cell.run.method for cell in by_order))
        own = [method for method in order if method not in config.methods()]
        results = Results(cells, methods=order, unfinished=self.unfinished, chosen=self.preset.reference, own=own)
        methods = set(self.preset.methods)
        asked = {key for cell in cells for key in cell.run.backbones}
        is_other_pool = results.has_other_pool or asked.isdisjoint(results.published.prices)
        is_choice = bool(methods) and not {row.method for row in results.published.rows} <= methods
        # A single row is shown beside the published ones.
        return replace(results, hide_unrun_rows=is_other_pool or (is_choice and len(results.ran) > 1))

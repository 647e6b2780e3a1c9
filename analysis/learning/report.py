"""The study of learning before any file format: the cells at hand, what they show, what they answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.learning.contrasts import Difference, differences, unanswered
from analysis.learning.results import Column, Row, collect
from analysis.learning.study import PATH, Study, load
from analysis.results import Cell, read_all


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the study found.

    Attributes:
        cells: What it was found in.
        unfinished: How many cells of the run are missing.
        columns: The measures, by benchmark.
        differences: The answers.
        unanswered: Contrasts for which these cells do not suffice.
    """

    study: Study
    cells: tuple[Cell, ...]
    unfinished: int
    columns: Mapping[str, Column]
    differences: Sequence[Difference]
    unanswered: Sequence[str]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every training seed of any learned cell, ascending."""
        learned = [one for column in self.columns.values() for one in column.learned.values()]
        return tuple(sorted({seed for one in learned for seed in one}))

    @property
    def titles(self) -> dict[Row, str]:
        """How a reader knows the rows, single backbones among them."""
        keys = {Row(cell.run.method, cell.run.backbone): cell.run.method_title for cell in self.cells}
        return {row: row.title(method_title) for row, method_title in keys.items()}


def build(folders: Iterable[Path], declaration: Path = PATH) -> Report:
    """Measure the finished cells of a run and answer the questions of the study as far as they allow.

    Args:
        folders: Cells of one preset, in any order; those not finished are counted and left out.
        declaration: The study.

    Raises:
        UserError: A cell cannot be read, the cells do not belong together, none has learned anything, or the
            declaration is wrong.
    """
    study = load(declaration)
    whole = list(folders)
    cells = read_all(folder for folder in whole if (folder / "run.json").is_file())
    columns = collect(cells, study)
    return Report(
        study=study,
        cells=cells,
        unfinished=len(whole) - len(cells),
        columns=columns,
        differences=differences(columns, study),
        unanswered=unanswered(columns, study),
    )

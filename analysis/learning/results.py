"""The cells of a preset as the study of learning sees them: learned cells by seed, single backbones beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from analysis.learning import measures
from analysis.learning.study import Study
from analysis.results import TRAINING, Cell, read_table
from analysis.training import updates
from harness.errors import UserError
from harness.runner.config import POOL, methods

if TYPE_CHECKING:
    import pandas as pd

_DECISIONS = ("item_id", "step", "name", "choice", "options", "log_prob")

Values = Mapping[str, float]


class Row(NamedTuple):
    """What the report has a line for: a method with its backbone, or with the pool."""

    method: str
    backbone: str

    def title(self, method_title: str) -> str:
        """How a reader knows it; the pool goes without saying."""
        return method_title if self.backbone == POOL else f"{method_title} ({self.backbone})"


class Learned(NamedTuple):
    """One seed of a row that learned, on one benchmark.

    Attributes:
        values: By key of :data:`analysis.learning.measures.MEASURES`; what does not apply is absent.
        backbones: Share of the steps in percent by backbone, the most used first; empty where no policy chose.
        log: The training log, one row an update and one column a measure, besides ``epoch``; empty where nothing was
            trained.
    """

    values: Values
    backbones: Values
    log: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Column:
    """Everything measured on one benchmark.

    Attributes:
        title: Title of the benchmark.
        n: Number of test questions.
        learned: By row, in the order of the study, and by seed.
        singles: By backbone: accuracy, utility and cost of asking it once.
    """

    title: str
    n: int
    learned: Mapping[Row, Mapping[int, Learned]]
    singles: Mapping[str, Values]

    @property
    def best_single(self) -> str | None:
        """The most accurate single backbone, the cheaper of equals; ``None`` where none was run."""
        return min(self.singles, key=self._rank, default=None)

    def dominator(self, backbone: str) -> str | None:
        """The best backbone that is at least as accurate as this one and cheaper, on these very questions."""
        own = self.singles.get(backbone)
        better = [key for key, other in self.singles.items() if own is not None and _dominates(other, own)]
        return min(better, key=self._rank, default=None)

    def _rank(self, backbone: str) -> tuple[float, float, str]:
        values = self.singles[backbone]
        return -values["accuracy"], values["cost_total"], backbone


def collect(cells: Sequence[Cell], study: Study) -> dict[str, Column]:
    """Measure comparable cells: one column a benchmark, in the order of the cells.

    Raises:
        UserError: A table of a cell is missing or damaged, or no cell has learned anything.
    """
    columns = {key: _column([cell for cell in cells if cell.run.benchmark == key], study) for key in _benchmarks(cells)}
    if not any(column.learned for column in columns.values()):
        raise UserError(
            "no cell of a method that learns among the finished ones; run `snakemake --cores all "
            f"reports/{cells[0].run.preset}/learning.md`, or name such a method under `methods` of the preset"
        )
    return columns


def _benchmarks(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.run.benchmark for cell in cells))


def _column(cells: Sequence[Cell], study: Study) -> Column:
    learned: dict[Row, dict[int, Learned]] = {}
    place = {method: number for number, method in enumerate(methods())}
    for cell in sorted(cells, key=lambda cell: (place.get(cell.run.method, len(place)), _row(cell), cell.run.seed)):
        if (cell.folder / TRAINING).is_file():
            learned.setdefault(_row(cell), {})[cell.run.seed] = _learned(cell, study)
    singles = {
        cell.run.backbone: measures.of_items(cell.items, study.cost_weight)
        for cell in cells
        if cell.run.method == study.single
    }
    return Column(cells[0].run.benchmark_title, cells[0].run.data.n_test, learned, singles)


def _row(cell: Cell) -> Row:
    return Row(cell.run.method, cell.run.backbone)


def _learned(cell: Cell, study: Study) -> Learned:
    decisions = read_table(cell.folder / "decisions.parquet", _DECISIONS)
    log = updates(cell)
    values = {
        **measures.of_items(cell.items, study.cost_weight),
        **measures.of_answers(read_table(cell.folder / "items.parquet", ("depth", "utility"))),
        **measures.of_memory(decisions, cell.run.data.n_test),
        **measures.of_choices(decisions),
        **measures.of_training(log, study.collapsed_entropy),
    }
    return Learned(values, measures.shares(decisions, "backbone"), log)


def _dominates(one: Values, other: Values) -> bool:
    return one["accuracy"] >= other["accuracy"] and one["cost_total"] < other["cost_total"]

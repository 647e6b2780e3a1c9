"""The rows of the training page: one method with its backbone on one benchmark, all seeds together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis import search_history
from analysis.provenance import short
from analysis.results import Cell
from analysis.traces import attempts_of_a_question, updates
from analysis.training_view import choices, lines
from analysis.training_view.panels import AFLOW
from harness.runner import config
from harness.runner.config import POOL

if TYPE_CHECKING:
    import pandas as pd

_LOG = "training.parquet"


@dataclass(frozen=True)
class Row:
    """One method with its backbone on one benchmark.

    Attributes:
        cells: By seed.
        logs: By seed: the training log, without seeds whose method was left as initialised.
    """

    cells: Mapping[int, Cell]
    logs: Mapping[int, pd.DataFrame]

    @property
    def first(self) -> Cell:
        """Any of the cells, for what they share."""
        return next(iter(self.cells.values()))

    @property
    def key(self) -> str:
        """What the address of the page calls method and backbone."""
        run = self.first.run
        return run.method if run.backbone == POOL else f"{run.method}/{run.backbone}"

    @property
    def title(self) -> str:
        """How a reader knows method and backbone."""
        run = self.first.run
        return run.method_title if run.backbone == POOL else f"{run.method_title} ({run.backbone})"

    @property
    def module(self) -> str:
        """Module of the method, empty for one that the configuration no longer has."""
        entry = config.methods().get(self.first.run.method)
        return entry.module if entry else ""

    @property
    def chunk(self) -> str:
        """Name of its data on the site."""
        run = self.first.run
        return f"training/{run.method}/{run.backbone}/{run.benchmark}"


def rows_of(cells: Iterable[Cell]) -> list[Row]:
    """The rows that learned cells make, in the order of the cells.

    Raises:
        UserError: A training log is damaged.
    """
    found: dict[tuple[str, str, str], dict[int, Cell]] = {}
    for cell in cells:
        if (cell.folder / _LOG).is_file():
            run = cell.run
            found.setdefault((run.method, run.backbone, run.benchmark), {})[run.seed] = cell
    return [_row(dict(sorted(by_seed.items()))) for by_seed in found.values()]


def _row(cells: Mapping[int, Cell]) -> Row:
    logs = {seed: updates(cell) for seed, cell in cells.items()}
    return Row(cells, {seed: log for seed, log in logs.items() if len(log)})


def data(row: Row) -> dict[str, Any]:
    """A row as the page takes it.

    Raises:
        UserError: A table of a cell is damaged.
    """
    run = row.first.run
    return {
        "key": row.key,
        "title": row.title,
        "benchmark": run.benchmark,
        "benchmark_title": run.benchmark_title,
        "unit": "round" if row.module == AFLOW else "update",
        "points": told(row),
        "seeds": [{"seed": seed, "run": short(cell.run.run_id)} for seed, cell in row.cells.items()],
        "notes": list(run.notes),
        "lines": lines.charts(row.module, row.logs) if row.logs else [],
        "choices": choices.charts(row.cells),
        "rounds": {str(seed): _rounds(cell) for seed, cell in row.cells.items()} if row.module == AFLOW else {},
    }


@dataclass(frozen=True, slots=True)
class Extent:
    """How long a training was, and how much a point of its curves stands for.

    Attributes:
        updates: By seed; the rounds of a search.
        epochs: Passes over the training questions; those of a search are its rounds.
        questions: How many training questions there are.
        rollouts: Attempts at a question in one epoch.
        sizes: Attempts behind a point, the most first: the last update of an epoch may be of fewer.
    """

    updates: tuple[int, ...]
    epochs: int
    questions: int
    rollouts: int
    sizes: tuple[int, ...]


def extent(row: Row) -> Extent | None:
    """How long the training of a row was; ``None`` where it was left as initialised.

    Raises:
        UserError: The table of training calls is missing or damaged.
    """
    if not row.logs:
        return None
    seed, log = next(iter(row.logs.items()))
    rollouts = attempts_of_a_question(row.cells[seed])
    attempts = log.groupby("epoch")["trajectories"].sum()
    return Extent(
        updates=tuple(len(one) for one in row.logs.values()),
        epochs=len(attempts),
        questions=round(attempts.iloc[0] / rollouts),
        rollouts=rollouts,
        sizes=tuple(sorted({round(size) for size in log["trajectories"]}, reverse=True)),
    )


def told(row: Row) -> str:
    """The same in words."""
    found = extent(row)
    if found is None:
        return "Left as initialised: nothing was trained."
    each = f" × {found.rollouts}" if found.rollouts > 1 else ""
    points = [f"{size} attempts ({_counted(size // found.rollouts, 'question')}{each})" for size in found.sizes]
    count = " or ".join(map(str, sorted(set(found.updates))))
    if row.module == AFLOW:
        return f"A point is one round: {' or '.join(points)}. {count} rounds."
    length = f"{count} updates in {_counted(found.epochs, 'epoch')} of {_counted(found.questions, 'question')}"
    return f"A point is one update: {' or '.join(points)}. {length}."


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _rounds(cell: Cell) -> dict[str, Any]:
    """What each round of a search tried, by its number, and the one that was chosen."""
    (search,) = search_history.build([cell.folder]).searches
    return {"chosen": search.best, "tried": {str(one["round"]): _tried(one) for one in search.rounds}}


def _tried(one: Mapping[str, Any]) -> str:
    return f"{one['edit']}: {' '.join(one['modification'].split())}" if one["edit"] else "start workflow"

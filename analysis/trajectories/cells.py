"""The trajectories of a finished cell, read one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from analysis.trajectories.records import Record, Said, Totals
from analysis.trajectories.steps import steps_of
from analysis.trajectories.texts import CallTexts
from harness import results
from harness.agents.trajectory import Call
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.results import Answered
from harness.runner import config, layout
from harness.runner.config import Cell
from harness.tables import rows_of

_GATED = "gmr"


def questions(preset: str, benchmark: str) -> dict[str, Item]:
    """The questions of a benchmark as a preset uses them, by id.

    Raises:
        UserError: They are not prepared, or damaged.
    """
    return {item.id: item for item in read(layout.manifest(preset, benchmark), layout.items(preset, benchmark)).pool}


def open_cell(preset: str, cell: Cell, asked: Mapping[str, Item] | None = None) -> CellRecords:
    """The trajectories of a finished cell.

    Args:
        preset: Its name.
        cell: The cell.
        asked: The questions by id, for who opens several cells of one benchmark; read where none are given.

    Raises:
        UserError: The cell is not finished, is damaged, or is of other questions than the prepared ones.
    """
    folder = layout.cell(preset, cell)
    if not (folder / "run.json").exists():
        raise UserError(f"{cell} is not finished; run it with `snakemake --cores all {folder / 'run.json'}`")
    return CellRecords(folder, cell, questions(preset, cell.benchmark) if asked is None else asked)


class CellRecords:
    """The trajectories of one cell, of which the texts are read one trajectory at a time.

    Args:
        folder: Of the cell.
        cell: Which it is.
        asked: The questions by id.

    Attributes:
        ids: The ids of its questions, in the order of the test.

    Raises:
        UserError: As :func:`open_cell`.
    """

    def __init__(self, folder: Path, cell: Cell, asked: Mapping[str, Item]) -> None:
        rows = {row["item_id"]: row["utility"] for row in rows_of(folder / "items.parquet", ["item_id", "utility"])}
        if strangers := [id_ for id_ in rows if id_ not in asked]:
            raise UserError(f"{folder}: its question {strangers[0]!r} is none of the prepared ones; run the cell again")
        self.ids: tuple[str, ...] = tuple(rows)
        self._cell = cell
        self._utilities = rows
        self._answered = dict(zip(rows, results.read(folder, [asked[id_] for id_ in rows]), strict=True))
        entry = config.methods().get(cell.method)
        self._has_gates = entry is not None and entry.module == _GATED
        self._texts = CallTexts(folder / layout.CALL_LOG)

    def __enter__(self) -> CellRecords:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def record(self, item_id: str) -> Record:
        """One trajectory.

        Raises:
            UserError: The cell has no such question, or its log is damaged.
        """
        if item_id not in self._answered:
            raise UserError(
                f"{self._cell} has no item {item_id!r}; it has {len(self.ids)}, among them {', '.join(self.ids[:3])}"
            )
        return record_of(self._answered[item_id], self._utilities[item_id], self._texts.said, has_gates=self._has_gates)

    def close(self) -> None:
        """Give the log up; closing twice is harmless."""
        self._texts.close()


def record_of(answered: Answered, utility: float | None, said: Callable[[Call], Said], *, has_gates: bool) -> Record:
    """Return an answered question as people read it.

    Args:
        answered: The trajectory and its verdict.
        utility: What a learned method maximises, if any.
        said: Finds the texts of a call.
        has_gates: Whether the method has gates.
    """
    trajectory = answered.trajectory
    totals = Totals(
        calls=len(trajectory.calls),
        prompt_tokens=sum(call.prompt_tokens for call in trajectory.calls),
        completion_tokens=sum(call.completion_tokens for call in trajectory.calls),
        cost_total=trajectory.cost_total,
        cost_steps=trajectory.cost_steps,
        depth=trajectory.depth,
        utility=utility,
    )
    return Record(
        trajectory.item,
        trajectory.answer,
        answered.verdict,
        totals,
        tuple(steps_of(trajectory, said, has_gates=has_gates)),
        tuple(said(call) for call in trajectory.calls if not call.is_step),
    )

"""What the columns of a table of accuracy and cost mean, as its first notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis import tables
from analysis.costs import COUNTED, Cost
from analysis.grid import Grid
from analysis.measures import Measurement
from analysis.notes import protocol


def legend(grid: Grid, measured: Sequence[Measurement | None], found: Sequence[Cost]) -> tuple[str, ...]:
    """The sentences that apply to what the table shows.

    Args:
        grid: Of the cells.
        measured: In every place of the table, ``None`` where nothing was run.
        found: The costs in the same places.
    """
    several = any(one is not None and len(one.seeds) > 1 for one in measured)
    return (*_columns(several), *_places(measured, found), *protocol(grid))


def _columns(several: bool) -> Iterator[str]:
    yield (
        "Accuracy in percent. Publ.: printed in the paper. Meas.: this run on n questions, beside it measured minus "
        f"published in points, below it the 95 % interval ({_accuracy_interval(several)})."
    )
    yield (
        "Cost of a question: in 1e-4 of the paper's unit; beside it measured over published, below it the 95 % "
        f"bootstrap interval over questions{' and seeds' if several else ''}. The published one is the printed total "
        f"over the paper's number of questions. {COUNTED}"
    )
    yield "Total: as printed, and the measured cost of a question times the paper's number of questions."
    if several:
        yield "Rows of several seeds show their mean, and below it seed 0 alone."
    yield "Bold is the best accuracy of a column and underlined the second best; equal values share a mark."


def _accuracy_interval(several: bool) -> str:
    return "Wilson for one seed, bootstrap over questions and seeds for several" if several else "Wilson"


def _places(measured: Sequence[Measurement | None], found: Sequence[Cost]) -> Iterator[str]:
    if any(one is None for one in measured):
        yield f"{tables.NOT_RUN}: not run."
    if any(one is not None and one.calibrated for one in measured):
        yield (
            f"{tables.DAGGER}: the simulation was fitted to the paper's accuracies and, before any length_scale, its "
            "costs; agreement is no finding, so neither a difference nor a ratio is shown."
        )
    if any(cost.total is None for cost in found):
        yield "A blank published column: the paper prints no such value."

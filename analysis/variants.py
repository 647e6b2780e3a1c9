"""A method and its variants: what each scored and spent, also against one of them, published and measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from analysis import tables
from analysis.costs import QUESTIONS, Cost
from analysis.grid import Grid
from analysis.measures import Key, Measurement
from analysis.paired import Comparison, compare
from harness.runner.config import POOL


@dataclass(frozen=True, slots=True)
class Design:
    """What a table of variants shows (paper, Ablation Study, Routing-Paradigm Comparison).

    Attributes:
        label: Short ASCII name.
        caption: What the rows are.
        printed: Names of the paper's tables in :attr:`analysis.published.Published.further`; the first that has a
            number counts.
        reference: The method that each row is compared with.
        change: How a cost relative to that of the reference is shown.
        change_title: What its columns are called.
        change_note: What they say.
        note: What else a reader must know.
        twins: Two methods that are one configuration trained twice; a note has the difference between them.
    """

    label: str
    caption: str
    printed: tuple[str, ...]
    reference: str
    change: Callable[[float], str]
    change_title: str
    change_note: str
    note: str
    twins: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """One method on one benchmark.

    Attributes:
        printed: Accuracy in percent.
        measurement: ``None`` where nothing was run.
        cost: Published and measured.
        gain: Printed accuracy minus that of the reference, in points.
        factor: Printed cost over that of the reference.
        against: The same comparison by this run; ``None`` for the reference itself, and where one of both was not run.
    """

    printed: float | None
    measurement: Measurement | None
    cost: Cost
    gain: float | None
    factor: float | None
    against: Comparison | None


Places = Mapping[tuple[str, str], Place]


def factor(ratio: float) -> str:
    """A cost as a multiple of the reference's."""
    return f"×{ratio:.2f}"


def saving(ratio: float) -> str:
    """What the reference spends less, in percent, from a cost as a multiple of the reference's."""
    return tables.signed(100 * (1 - 1 / ratio)).removeprefix("+")


def places(design: Design, grid: Grid) -> Places:
    """Every place of a table, by method and benchmark.

    The methods are those among the cells, in the order of the paper; others follow by name.
    """
    run = {cell.run.method for cell in grid.cells}
    paper = [method for name in design.printed for method in grid.published.further[name] if method in run]
    methods = dict.fromkeys([*paper, *sorted(run)])
    return {(method, key): _place(design, grid, method, key) for key in grid.benchmarks for method in methods}


def _place(design: Design, grid: Grid, method: str, benchmark: str) -> Place:
    printed, reference = (_printed(design, grid, one, benchmark, "accuracy") for one in (method, design.reference))
    total, other = (_printed(design, grid, one, benchmark, "cost") for one in (method, design.reference))
    own, base = (grid.measurements.get(Key(one, POOL, benchmark)) for one in (method, design.reference))
    compared = method != design.reference
    return Place(
        printed=printed,
        measurement=own,
        cost=Cost.of(own, total, QUESTIONS.get(benchmark)),
        gain=printed - reference if compared and printed is not None and reference is not None else None,
        factor=total / other if compared and total is not None and other else None,
        against=compare(own, base) if compared and own and base else None,
    )


def _printed(design: Design, grid: Grid, method: str, benchmark: str, measure: str) -> float | None:
    found = (grid.published.at(name, method, benchmark, measure) for name in design.printed)
    return next((value for value in found if value is not None), None)

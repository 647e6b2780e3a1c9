"""Accuracy and cost of every method on one benchmark, published beside measured.

Paper, Per-Dataset Accuracy and Cost; D-REPORT-2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from analysis import tidy
from analysis.beside import PAIR, all_calls, costs, of_measurements, totals
from analysis.costs import ALL_CALLS, FAR, Cost, published_questions, published_total
from analysis.grid import Grid, Line, build_grid
from analysis.legend import legend
from analysis.measures import Measurement
from analysis.notes import conditions
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.tables import Entry, Group, Row, Table
from harness.errors import UserError

_HEADS = ("Method", "LLM")


def build(source: Source) -> Table:
    """Build the table of the benchmark that ``options`` name; every published row stands in it, run or not.

    Raises:
        UserError: When a cell cannot be read, the cells do not belong in one table, or none is of the benchmark.
    """
    benchmark = str(source.options["benchmark"])
    grid = build_grid([cell for cell in source.read() if cell.run.benchmark == benchmark], load())
    if not grid.cells:
        raise UserError(f"no cell of benchmark {benchmark} among those given; run the workflow for it first")
    measured = [grid.at(line, benchmark) for line in grid.lines]
    found = [_cost(grid, line, benchmark) for line in grid.lines]
    return Table(
        label=f"cost-{benchmark.replace('_', '-')}",
        caption=f"Accuracy and cost on {grid.benchmarks[benchmark]}.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=_HEADS,
        groups=_groups(measured, found),
        rows=_rows(grid, benchmark, measured, found),
        notes=_notes(grid, measured, found),
        provenance=provenance(grid.cells),
        records=_records(grid, benchmark, measured, found),
    )


def _cost(grid: Grid, line: Line, benchmark: str) -> Cost:
    total = published_total(grid.published, line, benchmark)
    return Cost.of(grid.at(line, benchmark), total, published_questions(line, benchmark))


def _groups(measured: Sequence[Measurement | None], found: Sequence[Cost]) -> tuple[Group, ...]:
    n = next(measurement.n for measurement in measured if measurement)
    paper = " or ".join(map(str, sorted({cost.questions for cost in found if cost.questions})))
    return (
        Group("Accuracy (%)", f"n = {n}", PAIR),
        Group("Cost of a question (1e-4)", f"n = {n}", (*PAIR, ALL_CALLS)),
        Group("Total cost", f"scaled to n = {paper}", PAIR),
    )


def _rows(grid: Grid, benchmark: str, measured: Sequence[Measurement | None], found: Sequence[Cost]) -> tuple[Row, ...]:
    columns = (
        _accuracies(grid, benchmark, measured),
        _far(found, costs(found)),
        [(entry,) for entry in all_calls(found)],
        totals(found),
    )
    return tuple(
        Row(line.family, (line.method_title, line.backbone_title), tuple(entry for part in parts for entry in part))
        for line, *parts in zip(grid.lines, *columns, strict=True)
    )


def _accuracies(grid: Grid, benchmark: str, measured: Sequence[Measurement | None]) -> list[tuple[Entry, Entry]]:
    return of_measurements([_printed(line, benchmark) for line in grid.lines], measured)


def _printed(line: Line, benchmark: str) -> float | None:
    """The accuracy in print; a table of costs may be of a benchmark that the paper does not have."""
    cell = line.published.accuracies.get(benchmark) if line.published else None
    return cell.percent if cell else None


def _far(found: Sequence[Cost], pairs: Sequence[tuple[Entry, Entry]]) -> list[tuple[Entry, Entry]]:
    """The columns of costs, with a sign on the ratios that ask for an explanation."""
    return [
        (printed, replace(own, sign=FAR) if cost.is_far else own)
        for cost, (printed, own) in zip(found, pairs, strict=True)
    ]


def _notes(grid: Grid, measured: Sequence[Measurement | None], found: Sequence[Cost]) -> tuple[str, ...]:
    far = any(cost.is_far for cost in found)
    return (
        *legend(grid, measured, found),
        *([f"{FAR}: apart by more than half an order of magnitude; docs/baselines.md says why."] if far else []),
        "Behind each published row stands the number of questions that explains its accuracy, or comes closest.",
        "Training and search are not in here: the paper charges the test questions alone.",
    )


def _records(
    grid: Grid, benchmark: str, measured: Sequence[Measurement | None], found: Sequence[Cost]
) -> tuple[Mapping[str, str], ...]:
    return tidy.even(
        [
            {
                "method": line.method,
                "backbone": line.backbone,
                "benchmark": benchmark,
                "benchmark_title": grid.benchmarks[benchmark],
                **tidy.place(_printed(line, benchmark), one, cost),
            }
            for line, one, cost in zip(grid.lines, measured, found, strict=True)
        ]
    )

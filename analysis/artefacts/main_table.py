"""The main table: accuracy of every method on every benchmark, the paper's number beside the measured one."""

from __future__ import annotations

from collections.abc import Sequence

from analysis import tables
from analysis.beside import PAIR, accuracies, of_measurements
from analysis.grid import Grid, Line, build_grid
from analysis.notes import conditions, notes
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.tables import Entry, Group, Row, Table
from analysis.tidy import records

_CAPTION = "Test accuracy (%): the value printed in the paper beside the value measured in this run."
_HEADS = ("Method", "LLM", "Mul.", "Rout.")


def build(source: Source) -> Table:
    """Build the table.

    All published rows stand in it, in the paper's order; a place where nothing was run says so. Rows the paper does
    not have follow at the end.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    grid = build_grid(source.read(), load())
    columns = [_benchmark(grid, key) for key in grid.benchmarks]
    groups = [_group(grid, key) for key in grid.benchmarks]
    if grid.has_average:
        columns.append(_average(grid))
        groups.append(Group("Avg.", "", PAIR))
    return Table(
        label="main-table",
        caption=f"{_CAPTION}{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=_HEADS,
        groups=tuple(groups),
        rows=tuple(_row(line, pairs) for line, pairs in zip(grid.lines, zip(*columns, strict=True), strict=True)),
        notes=notes(grid),
        provenance=provenance(grid.cells),
        records=records(grid),
    )


def _group(grid: Grid, benchmark: str) -> Group:
    n = next(measured.n for key, measured in grid.measurements.items() if key.benchmark == benchmark)
    return Group(grid.benchmarks[benchmark], f"n = {n}", PAIR)


def _row(line: Line, pairs: Sequence[tuple[Entry, Entry]]) -> Row:
    flags = [tables.YES if flag else tables.NO for flag in line.flags] or ["", ""]
    labels = (line.method_title, line.backbone_title, *flags)
    return Row(line.family, labels, tuple(entry for pair in pairs for entry in pair))


def _benchmark(grid: Grid, benchmark: str) -> list[tuple[Entry, Entry]]:
    printed: list[float | None] = []
    for line in grid.lines:
        cell = line.published.accuracies.get(benchmark) if line.published else None
        printed.append(cell.percent if cell else None)
    return of_measurements(printed, [grid.at(line, benchmark) for line in grid.lines])


def _average(grid: Grid) -> list[tuple[Entry, Entry]]:
    printed = [line.published.average if line.published else None for line in grid.lines]
    estimates = [grid.average(line) for line in grid.lines]
    calibrated = [grid.is_calibrated(line) for line in grid.lines]
    return accuracies(printed, estimates, calibrated, [_seed_0(grid, line) for line in grid.lines])


def _seed_0(grid: Grid, line: Line) -> float | None:
    return grid.average_of_seed_0(line) if any(len(one.seeds) > 1 for one in grid.row(line)) else None

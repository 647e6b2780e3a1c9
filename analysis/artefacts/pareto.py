"""Accuracy against cost of a question for every row of the main table, published and measured, with both frontiers."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from statistics import median

from analysis.costs import Cost, published_questions, published_total
from analysis.figures import Figure
from analysis.frontier import Point, frontier
from analysis.grid import Grid, Line, build_grid
from analysis.notes import conditions
from analysis.plane import Pair, draw
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.tables import DAGGER
from analysis.tidy import accuracy_difference, costs, even, identity, measured
from harness.errors import UserError

_INCHES = (7.4, 5.2)
_CAPTION = (
    "Accuracy against cost of a question (log scale, in 1e-4 of the paper's unit). Hollow: published, its total over "
    "the number of questions that its accuracy implies; filled: measured, of the calls that the published cost counts "
    "(D-REPORT-2; that of all calls is in the CSV); a thin line joins the two of a row. Steps: the Pareto frontiers, "
    "published dashed, measured solid."
)


def build(source: Source) -> Figure:
    """Build the figure; its option ``benchmark`` says of which one, where the cells are of several.

    Raises:
        UserError: A cell cannot be read, or none is of the benchmark.
    """
    grid = build_grid(source.read(), load())
    benchmark = source.options.get("benchmark", next(iter(grid.benchmarks)))
    if benchmark not in grid.benchmarks:
        raise UserError(
            f"no cell of {benchmark!r} among those of {', '.join(grid.benchmarks)}; run one of that benchmark"
        )
    pairs = [_pair(grid, number, line, benchmark) for number, line in enumerate(grid.lines, 1)]
    return Figure(
        label=f"pareto-{benchmark}",
        caption=f"{_CAPTION}{_beyond_the_points(pairs)}{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        draw=functools.partial(draw, grid.benchmarks[benchmark], pairs),
        inches=_INCHES,
        provenance=provenance(grid.cells),
        records=_records(pairs),
    )


def _pair(grid: Grid, number: int, line: Line, benchmark: str) -> Pair:
    measurement = grid.at(line, benchmark)
    total = published_total(grid.published, line, benchmark)
    cost = Cost.of(measurement, total, published_questions(line, benchmark))
    return Pair(number, line, benchmark, measurement, cost)


def _beyond_the_points(pairs: Sequence[Pair]) -> str:
    """What the points alone do not say; a bar on every one would hide them."""
    present = [pair.measurement for pair in pairs if pair.measurement]
    reach = median(50 * (one.accuracy.high - one.accuracy.low) for one in present)
    several = " Rows with several seeds: their mean." if any(len(one.seeds) > 1 for one in present) else ""
    fitted = f" {DAGGER}: fitted to the published point, agreement is no finding." if any(p.sign for p in pairs) else ""
    intervals = f" 95 % intervals are about ±{reach:.1f} points of accuracy (each, and seed 0, in the CSV)."
    return intervals + several + fitted


def _records(pairs: Sequence[Pair]) -> tuple[Mapping[str, str], ...]:
    """One a row of the main table, with what either side has."""
    published = _best({pair.number: pair.published for pair in pairs})
    measured_best = _best({pair.number: pair.measured for pair in pairs})
    return even([_record(pair, pair.number in published, pair.number in measured_best) for pair in pairs])


def _best(points: Mapping[int, Point | None]) -> set[int]:
    """Numbers of the rows on the frontier."""
    present = [(number, point) for number, point in points.items() if point]
    return {present[place][0] for place in frontier([point for _, point in present])}


def _record(pair: Pair, published_best: bool, measured_best: bool) -> dict[str, str]:
    printed = pair.published.accuracy if pair.published else None
    found = {
        "number": str(pair.number),
        "method": pair.line.method,
        "backbone": pair.line.backbone,
        "benchmark": pair.benchmark,
        "published": "" if printed is None else f"{printed:.2f}",
        "published_on_frontier": str(published_best).lower() if pair.published else "",
        "measured_on_frontier": str(measured_best).lower() if pair.measured else "",
        **costs(pair.cost),
    }
    if pair.measurement is None:
        return found
    difference = accuracy_difference(pair.measurement, printed)
    return {**found, **measured(pair.measurement), "difference": difference, **identity(pair.measurement)}

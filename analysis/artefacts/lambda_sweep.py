"""GMR trained with different weights of cost: what each buys in accuracy, cost and steps (D-GMR-5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from analysis import sweeps, tables, tidy, traces
from analysis.beside import all_calls, costs, of_measurements, totals
from analysis.costs import ALL_CALLS, QUESTIONS, Cost
from analysis.frontier import Point, frontier
from analysis.grid import Grid, build_grid
from analysis.measures import TRAINING, Key, Measurement
from analysis.notes import conditions, protocol
from analysis.provenance import provenance
from analysis.published import load
from analysis.ratios import estimates, mean_of
from analysis.source import Source
from analysis.statistics import Estimate
from analysis.tables import Entry, Group, Row, Table
from harness.runner.config import POOL

_HEADS = ("Benchmark", "Cost weight", "Seeds")


@dataclass(frozen=True, slots=True)
class _Place:
    """One weight on one benchmark; its utility in the last epoch of training is ``None`` without a log of that."""

    method: str
    weight: float
    measurement: Measurement
    cost: Cost
    depth: Estimate
    utility: float | None
    on_frontier: bool


def build(source: Source) -> Table:
    """Build the table.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    grid = build_grid(source.read(), load())
    columns = {key: _column(grid, key) for key in grid.benchmarks}
    return Table(
        label="lambda-sweep",
        caption=f"GMR trained with three weights of cost.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=_HEADS,
        groups=_groups(grid),
        rows=tuple(row for key, column in columns.items() for row in _rows(grid, key, column)),
        notes=tuple(_notes(grid, [place for column in columns.values() for place in column])),
        provenance=provenance(grid.cells),
        records=tidy.even([_record(grid, key, place) for key, column in columns.items() for place in column]),
    )


def _column(grid: Grid, benchmark: str) -> list[_Place]:
    """The weights that were run on a benchmark, ascending."""
    weights = sweeps.values(sweeps.COST_WEIGHTS, "lambda_c")
    found = {
        method: grid.measurements[Key(method, POOL, benchmark)]
        for method in weights
        if Key(method, POOL, benchmark) in grid.measurements
    }
    prices = {method: Cost.of(one, None, QUESTIONS.get(benchmark)) for method, one in found.items()}
    best = frontier([Point(one.cost / one.n, one.accuracy.mean) for one in found.values()])
    return [
        _Place(method, weights[method], one, prices[method], _depth(one), _utility(one), place in best)
        for place, (method, one) in enumerate(found.items())
    ]


def _depth(measurement: Measurement) -> Estimate:
    return estimates([{"depth": mean_of(traces.read(cell).depth.tolist())} for cell in measurement.cells])["depth"]


def _utility(measurement: Measurement) -> float | None:
    """Mean over the rollouts of the last epoch, then over the seeds."""
    if not all((cell.folder / TRAINING).is_file() for cell in measurement.cells):
        return None
    logs = [traces.updates(cell) for cell in measurement.cells]
    last = [log[log["epoch"] == log["epoch"].max()] for log in logs]
    return fmean(float(np.average(log["utility"], weights=log["trajectories"])) for log in last)


def _groups(grid: Grid) -> tuple[Group, ...]:
    sizes = " or ".join(str(QUESTIONS[key]) for key in grid.benchmarks if key in QUESTIONS)
    return (
        Group("Test questions", "", ("Accuracy (%)", "Cost (1e-4)", ALL_CALLS, "Steps", "Frontier")),
        Group("Total cost", f"scaled to n = {sizes}" if sizes else "", ("",)),
        Group("Training", "last epoch", ("Utility",)),
    )


def _rows(grid: Grid, benchmark: str, column: Sequence[_Place]) -> Iterator[Row]:
    accuracies = of_measurements([None] * len(column), [place.measurement for place in column])
    prices = [place.cost for place in column]
    utilities = tables.marks([None if place.utility is None else round(place.utility, 4) for place in column])
    for place, (_, accuracy), (_, cost), whole, (_, total), mark in zip(
        column, accuracies, costs(prices), all_calls(prices), totals(prices), utilities, strict=True
    ):
        labels = (
            f"{grid.benchmarks[benchmark]}, n = {place.measurement.n}",
            f"{place.weight:g}",
            ", ".join(map(str, place.measurement.seeds)),
        )
        depth = Entry(f"{place.depth.mean:.2f}", below=f"{place.depth.low:.2f}–{place.depth.high:.2f}")
        on = Entry(tables.YES if place.on_frontier else tables.NO)
        utility = Entry(tables.NOT_RUN) if place.utility is None else Entry(f"{place.utility:.4f}", mark)
        yield Row(benchmark, labels, (accuracy, cost, whole, depth, on, total, utility))


def _notes(grid: Grid, places: Sequence[_Place]) -> Iterator[str]:
    several = any(len(place.measurement.seeds) > 1 for place in places)
    yield (
        "The paper names these weights and says neither which benchmark was run with which nor what any of them gave, "
        "so nothing stands beside the measured values."
    )
    yield (
        "Cost of a question in 1e-4 of the paper's unit, of its steps and with the aggregation (all calls); steps: "
        "mean depth of a trajectory. Below a value its 95 % "
        f"interval: accuracy {'over questions and seeds' if several else 'Wilson'}, cost and steps by a bootstrap over "
        f"questions{' and seeds' if several else ''}."
    )
    yield (
        f"Frontier: {tables.YES} none of the other weights is at least as accurate and as cheap and better in one; "
        f"{tables.NO} one is."
    )
    yield (
        "Utility: reward minus the weighted cost of the steps, mean over the rollouts of the last epoch. It is what a "
        "weight may be chosen by, as no test question is in it (D-GMR-5); each weight has its own scale, on which cost "
        "counts little beside success. Bold is the best of the column and underlined the second best."
    )
    if any(place.utility is None for place in places):
        yield f"{tables.NOT_RUN}: no log of the training."
    yield from protocol(grid)


def _record(grid: Grid, benchmark: str, place: _Place) -> dict[str, str]:
    return {
        "method": place.method,
        "lambda_c": f"{place.weight:g}",
        "backbone": POOL,
        "benchmark": benchmark,
        "benchmark_title": grid.benchmarks[benchmark],
        "depth": tidy.exact(place.depth.mean),
        "depth_low": tidy.exact(place.depth.low),
        "depth_high": tidy.exact(place.depth.high),
        "frontier": str(place.on_frontier).lower(),
        "training_utility": "" if place.utility is None else tidy.exact(place.utility),
        **tidy.place(None, place.measurement, place.cost),
    }

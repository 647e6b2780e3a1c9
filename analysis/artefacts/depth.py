"""What a larger budget of steps buys on MATH: accuracy and cost of a question by the maximum depth φ."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis import sweeps, traces
from analysis.costs import UNIT, Cost, per_query
from analysis.figures import Figure
from analysis.grid import build_grid
from analysis.measures import Measurement
from analysis.notes import conditions
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.statistics import Estimate
from analysis.tables import signed
from analysis.tidy import costs, exact, identity, measured
from harness.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

_INCHES = (5.4, 3.9)
_ACCURACY: Mapping[str, Any] = {"color": "#000000", "marker": "o", "linestyle": "-", "label": "accuracy"}
_COST: Mapping[str, Any] = {
    "color": "#D55E00",
    "marker": "s",
    "linestyle": "--",
    "markerfacecolor": "white",
    "label": "cost of a question",
}
# The two lines stand a little apart, so that no bar hides another.
_APART = 0.08
_CAPTION = (
    "Accuracy (left) and cost of a question in 1e-4 of the paper's unit, without the aggregation (right), by the "
    "maximum depth φ; bars: 95 % intervals; crosses: seed 0, where there are several; in brackets the mean depth that "
    "was reached. The paper draws this figure without printing its points; it says that from φ = 6 to 10 "
    "accuracy gains less than a point while cost rises."
)


class _Point(NamedTuple):
    """One budget: what was measured with it."""

    phi: float
    measurement: Measurement
    cost: Estimate
    depth: float


def build(source: Source) -> Figure:
    """Build the figure.

    Raises:
        UserError: A cell cannot be read, is of another method than those of the sweep, or of a second benchmark.
    """
    grid = build_grid(source.read(), load())
    points = _points(list(grid.measurements.values()))
    title = next(iter(grid.benchmarks.values()))
    return Figure(
        label="depth",
        caption=f"{_CAPTION}{_found(points)}{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        draw=functools.partial(_draw, title, points),
        inches=_INCHES,
        provenance=provenance(grid.cells),
        records=tuple(map(_record, points)),
    )


def _points(measurements: Sequence[Measurement]) -> list[_Point]:
    budgets = _budgets()
    runs = [one.cells[0].run for one in measurements]
    strange = [run.method for run in runs if run.method not in budgets]
    if strange or len({run.benchmark for run in runs}) > 1:
        found = f"the method {strange[0]}" if strange else "several benchmarks"
        raise UserError(f"the sweep of depths was given {found}; expected {', '.join(budgets)} on one benchmark")
    points = [_point(one, budgets[one.cells[0].run.method]) for one in measurements]
    return sorted(points, key=lambda point: point.phi)


def _budgets() -> dict[str, float]:
    return sweeps.values(sweeps.DEPTHS, "max_depth")


def _point(measurement: Measurement, phi: float) -> _Point:
    depth = fmean(float(traces.read(cell).depth.mean()) for cell in measurement.cells)
    return _Point(phi, measurement, per_query(measurement), depth)


def _found(points: Sequence[_Point]) -> str:
    """The published sentence about φ = 6 and 10 as measured, and what was not run."""
    of = {point.phi: 100 * point.measurement.accuracy.mean for point in points}
    change = f" Here: {signed(of[10] - of[6])} points." if {6, 10} <= set(of) else ""
    missing = [f"{phi:g}" for phi in _budgets().values() if phi not in of]
    return change + (f" Not run: φ = {', '.join(missing)}." if missing else "")


def _draw(title: str, points: Sequence[_Point], picture: Picture) -> None:
    left = picture.subplots()
    right = left.twinx()
    accuracies = [_scaled(point.measurement.accuracy, 100) for point in points]
    _line(left, [point.phi - _APART for point in points], accuracies, _ACCURACY)
    _line(right, [point.phi + _APART for point in points], [_scaled(point.cost, UNIT) for point in points], _COST)
    _first_seeds(left, right, points)
    left.set_xlabel("maximum depth φ (mean depth reached)")
    left.set_xticks([point.phi for point in points], [f"{point.phi:g}\n({point.depth:.2f})" for point in points])
    left.set_ylabel(f"accuracy on {title} (%)")
    right.set_ylabel("cost of a question (1e-4)", color=_COST["color"])
    right.set_ylim(bottom=0)
    right.spines["right"].set_visible(True)
    lines = [left.lines[0], right.lines[0]]
    left.legend(handles=lines, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(lines), frameon=False)


def _line(axes: Axes, at: Sequence[float], values: Sequence[Estimate], style: Mapping[str, Any]) -> None:
    means = [one.mean for one in values]
    reach = [[one.mean - one.low for one in values], [one.high - one.mean for one in values]]
    axes.plot(at, means, **style, markersize=5)
    axes.errorbar(at, means, yerr=reach, fmt="none", ecolor=style["color"], elinewidth=0.8, capsize=2)


def _first_seeds(left: Axes, right: Axes, points: Sequence[_Point]) -> None:
    """The first training alone, where it is one of several: the paper has one."""
    for point in points:
        firsts = [cell for cell in point.measurement.cells if cell.run.seed == 0]
        if firsts and len(point.measurement.cells) > 1:
            cross: dict[str, Any] = {"linestyle": "", "marker": "x", "markersize": 4}
            left.plot(point.phi - _APART, 100 * fmean(firsts[0].items.correct), **cross, color=_ACCURACY["color"])
            right.plot(point.phi + _APART, UNIT * fmean(firsts[0].costs), **cross, color=_COST["color"])


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    mean, low, high, variance = estimate
    return Estimate(factor * mean, factor * low, factor * high, factor**2 * variance)


def _record(point: _Point) -> dict[str, str]:
    run = point.measurement.cells[0].run
    return {
        "method": run.method,
        "benchmark": run.benchmark,
        "max_depth": f"{point.phi:g}",
        "published": "",
        **measured(point.measurement),
        **costs(Cost.of(point.measurement, None, None)),
        "mean_depth": exact(point.depth),
        **identity(point.measurement),
    }

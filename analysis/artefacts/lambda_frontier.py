"""The trade that the cost weight λ_c makes: accuracy against cost of a question, and the frontier of the sweep."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis import sweeps
from analysis.costs import UNIT, Cost, per_query
from analysis.figures import Figure
from analysis.frontier import Point, frontier, outline
from analysis.grid import build_grid
from analysis.measures import Measurement
from analysis.notes import conditions
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.statistics import Estimate
from analysis.tidy import costs, identity, measured
from harness.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure as Picture

# From the smallest weight on: of different size, and the largest hollow, so that points at the same place are all seen.
_LOOKS: Sequence[Mapping[str, Any]] = (
    {"marker": "o", "color": "#0072B2", "markersize": 10, "fillstyle": "none"},
    {"marker": "s", "color": "#000000", "markersize": 5},
    {"marker": "^", "color": "#D55E00", "markersize": 7},
)
_PANEL_INCHES = (3.3, 2.6)
_AROUND_INCHES = 1.3
_CAPTION = (
    "Accuracy and cost of a question (in 1e-4 of the paper's unit, without the aggregation) with the cost weights "
    "that the paper names; bars: 95 % intervals. Grey line: the most accuracy that a cost buys. The paper prints no "
    "result of this sweep, nor which weight its tables have."
)


class _Place(NamedTuple):
    """One weight on one benchmark."""

    weight: float
    look: Mapping[str, Any]
    measurement: Measurement
    cost: Estimate

    @property
    def point(self) -> Point:
        """Where it stands."""
        return Point(UNIT * self.cost.mean, 100 * self.measurement.accuracy.mean)


def build(source: Source) -> Figure:
    """Build the figure: a panel a benchmark.

    Raises:
        UserError: A cell cannot be read or is of another method than those of the sweep.
    """
    grid = build_grid(source.read(), load())
    weights = sweeps.values(sweeps.COST_WEIGHTS, "lambda_c")
    strange = sorted({key.method for key in grid.measurements} - set(weights))
    if strange:
        raise UserError(f"the sweep of cost weights was given {strange[0]}; expected only {', '.join(weights)}")
    looks = dict(zip(weights, _LOOKS, strict=True))
    places = {
        grid.benchmarks[benchmark]: sorted(
            (
                _Place(weights[key.method], looks[key.method], one, per_query(one))
                for key, one in grid.measurements.items()
                if key.benchmark == benchmark
            ),
            key=lambda place: place.weight,
        )
        for benchmark in grid.benchmarks
    }
    return Figure(
        label="lambda-frontier",
        caption=f"{_CAPTION}{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        draw=functools.partial(_draw, places),
        inches=(max(2, len(places)) * _PANEL_INCHES[0], _PANEL_INCHES[1] + _AROUND_INCHES),
        provenance=provenance(grid.cells),
        records=tuple(record for of_benchmark in places.values() for record in _records(of_benchmark)),
    )


def _draw(places: Mapping[str, Sequence[_Place]], picture: Picture) -> None:
    panels = picture.subplots(1, len(places), squeeze=False)[0]
    handles: dict[str, Any] = {}
    for panel, (title, of_benchmark) in zip(panels, places.items(), strict=True):
        handles |= {f"λ_c = {place.weight:g}": _point(panel, place) for place in of_benchmark}
        _frontier(panel, [place.point for place in of_benchmark])
        panel.set_ylabel(f"accuracy on {title} (%)")
        panel.set_xlabel("cost of a question (1e-4)")
    names = sorted(handles, key=lambda name: float(name.split()[-1]))
    above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": len(names), "frameon": False}
    panels[0].legend([handles[name] for name in names], names, **above)


def _point(panel: Axes, place: _Place) -> ErrorbarContainer:
    x, y = place.point
    cost, accuracy = place.cost, place.measurement.accuracy
    return panel.errorbar(
        x,
        y,
        xerr=[[x - UNIT * cost.low], [UNIT * cost.high - x]],
        yerr=[[y - 100 * accuracy.low], [100 * accuracy.high - y]],
        **place.look,
        linestyle="",
        elinewidth=0.8,
        capsize=2,
    )


def _frontier(panel: Axes, points: Sequence[Point]) -> None:
    """Behind the points, to the edge of the panel, whose limits stay."""
    low, high = panel.get_xlim()
    corners = outline(points, high)
    panel.plot([one.cost for one in corners], [one.accuracy for one in corners], color="0.7", linewidth=1.5, zorder=1)
    panel.set_xlim(low, high)


def _records(places: Sequence[_Place]) -> list[dict[str, str]]:
    best = frontier([place.point for place in places])
    return [
        {
            "method": place.measurement.cells[0].run.method,
            "benchmark": place.measurement.cells[0].run.benchmark,
            "lambda_c": f"{place.weight:g}",
            "published": "",
            **measured(place.measurement),
            **costs(Cost.of(place.measurement, None, None)),
            "on_frontier": str(number in best).lower(),
            **identity(place.measurement),
        }
        for number, place in enumerate(places)
    ]

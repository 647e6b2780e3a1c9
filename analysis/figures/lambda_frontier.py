"""The trade that the cost weight λ_c makes: accuracy against cost of a question, and the frontier of the sweep."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis import notes, sweeps
from analysis.figure import Figure
from analysis.frames import COST, IDENTITY, MEASURED, UNIT, unpublished
from analysis.frontier import Point, frontier, outline
from analysis.source import Source
from harness.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
_COLUMNS = ["method", "benchmark", "lambda_c", "published", *MEASURED, *COST, "on_frontier", *IDENTITY]


def build(source: Source) -> Figure:
    """Build the figure: a panel a benchmark.

    Raises:
        UserError: A cell cannot be read or is of another method than those of the sweep.
    """
    results = source.results()
    weights = sweeps.values(sweeps.COST_WEIGHTS, "lambda_c")
    strange = sorted({method for method, *_ in results.trainings} - set(weights))
    if strange:
        raise UserError(f"the sweep of cost weights was given {strange[0]}; expected only {', '.join(weights)}")
    looks = dict(zip(weights, _LOOKS, strict=True))
    whole = unpublished(results)
    whole["lambda_c"] = [weights[method] for method, *_ in whole.index]
    whole["look"] = [looks[method] for method, *_ in whole.index]
    whole["point"] = [Point(UNIT * row.cost_per_query, 100 * row.fraction) for row in whole.itertuples()]
    panels = {}
    for key, title in results.benchmarks.items():
        own = whole.xs(key, level="benchmark", drop_level=False).sort_values("lambda_c")
        best = frontier(list(own["point"]))
        panels[title] = own.assign(on_frontier=[place in best for place in range(len(own))])
    return Figure(
        label="lambda-frontier",
        caption=f"{_CAPTION}{notes.conditions(results)}",
        simulated=results.simulated,
        draw=functools.partial(_draw, panels),
        inches=(max(2, len(panels)) * _PANEL_INCHES[0], _PANEL_INCHES[1] + _AROUND_INCHES),
        provenance=results.provenance,
        frame=pd.concat(panels.values()).reset_index()[_COLUMNS],
    )


def _draw(frames: Mapping[str, pd.DataFrame], picture: Picture) -> None:
    panels = picture.subplots(1, len(frames), squeeze=False)[0]
    handles: dict[float, Any] = {}
    for panel, (title, frame) in zip(panels, frames.items(), strict=True):
        handles |= {row.lambda_c: _point(panel, row) for row in frame.itertuples()}
        _frontier(panel, list(frame["point"]))
        panel.set_ylabel(f"accuracy on {title} (%)")
        panel.set_xlabel("cost of a question (1e-4)")
    weights = sorted(handles)
    above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": len(weights), "frameon": False}
    panels[0].legend([handles[one] for one in weights], [f"λ_c = {one:g}" for one in weights], **above)


def _point(panel: Axes, row: Any) -> Any:
    x, y = row.point
    return panel.errorbar(
        x,
        y,
        xerr=[[x - UNIT * row.cost_low], [UNIT * row.cost_high - x]],
        yerr=[[max(0, y - row.low)], [max(0, row.high - y)]],
        **row.look,
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

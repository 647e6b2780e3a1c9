"""Accuracy against cost of a question for every row of the main table, published and measured, with both frontiers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis import frontier, notes
from analysis.figure import SMALL, Figure
from analysis.frames import COST, IDENTITY, KEY, MEASURED, UNIT, with_costs
from analysis.frontier import on_frontier
from analysis.labels import beside
from analysis.source import Source
from analysis.table import DAGGER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

EMPHASISED = "gmr"
_INCHES = (7.4, 5.2)
_CAPTION = (
    "Accuracy against cost of a question (log scale, in 1e-4 of the paper's unit). Hollow: published, its total over "
    "the number of questions that its accuracy implies; filled: measured, of the calls that the published cost counts "
    "(D-REPORT-2; that of all calls is in the CSV); a thin line joins the two of a row. Steps: the Pareto frontiers, "
    "published dashed, measured solid."
)
_COLUMNS = [
    *("number", *KEY, "published", "published_on_frontier", "measured_on_frontier", *COST, *MEASURED, "difference"),
    *IDENTITY,
]
_PLOT_TO_KEY = (3.1, 1)
_POINTS = 72
_LETTER, _LINE = 0.68, 1.25


# By shape, and by a colour whose lightness differs as well: marker, colour, size.
_LOOKS: Mapping[str, tuple[str, str, float]] = {
    "single model": ("o", "#999999", 6),
    "single-agent reasoning": ("s", "#56B4E9", 6),
    "fixed topology": ("^", "#009E73", 6),
    "workflow optimization": ("D", "#E69F00", 5),
    "evolving orchestration": ("v", "#CC79A7", 6),
    "query-only routing": ("P", "#0072B2", 7),
    "gated-memory routing": ("*", "#D55E00", 13),
}
_OTHER = ("X", "#000000", 6)


def build(source: Source) -> Figure:
    """The figure of one benchmark, the option of that name where the cells are of several."""
    results = source.results(source.options.get("benchmark"))
    benchmark, title = next(iter(results.benchmarks.items()))
    frame = with_costs(results.frame.xs(benchmark, level="benchmark", drop_level=False), results)
    frame["number"] = range(1, len(frame) + 1)
    # A cost without its cost table has no accuracy beside it here.
    frame["published"] = frame["published"].where(frame["published_cost_per_query"].notna())
    frame["difference"] = frame["difference"].where(frame["published"].notna())
    for side, accuracy, cost in (
        ("published", frame["published"], frame["published_cost_per_query"]),
        ("measured", 100 * frame["fraction"], frame["cost_per_query"]),
    ):
        frame[f"{side}_x"], frame[f"{side}_y"] = UNIT * cost.where(accuracy.notna()), accuracy
        frame[f"{side}_on_frontier"] = on_frontier(cost, accuracy)
    return Figure(
        label=f"pareto-{benchmark}",
        caption=f"{_CAPTION}{_beyond_the_points(frame)}{notes.conditions(results)}",
        simulated=results.simulated,
        draw=functools.partial(_draw, title, frame),
        inches=_INCHES,
        provenance=results.provenance,
        frame=frame.reset_index()[_COLUMNS],
    )


def _beyond_the_points(frame: pd.DataFrame) -> str:
    """What the points alone do not say; a bar on every one would hide them."""
    reach = ((frame["high"] - frame["low"]) / 2).median()
    several = " Rows with several seeds: their mean." if frame["several"].eq(True).any() else ""
    is_fitted = frame["calibrated"].eq(True).any()
    fitted = f" {DAGGER}: fitted to the published point, agreement is no finding." if is_fitted else ""
    intervals = f" 95 % intervals are about ±{reach:.1f} points of accuracy (each, and seed 0, in the CSV)."
    return intervals + several + fitted


def _draw(title: str, frame: pd.DataFrame, picture: Picture) -> None:
    """The plot, and the key of its numbers."""
    panel, key = picture.subplots(1, 2, width_ratios=_PLOT_TO_KEY)
    panel.set_xscale("log")
    panel.set_xlabel("cost of a question (1e-4)")
    panel.set_ylabel(f"accuracy on {title} (%)")
    panel.xaxis.set_major_formatter("{x:g}")
    for row in frame.itertuples():
        _points(panel, row)
    for side, linestyle in (("published", "--"), ("measured", "-")):
        style = {"color": "0.35", "linestyle": linestyle, "linewidth": 1, "zorder": 2}
        frontier.draw(panel, frame[f"{side}_x"], frame[f"{side}_y"], **style)
    _key(key, frame)
    _numbers(panel, frame, picture)


def _points(panel: Axes, row: Any) -> None:
    joined = (row.published_x, row.measured_x), (row.published_y, row.measured_y)
    if not pd.isna(row.published_x + row.measured_x):
        panel.plot(*joined, color="0.8", linewidth=0.5, zorder=1)
    filled = _filled(row.family)
    hollow = {**filled, "markerfacecolor": "white", "markeredgecolor": filled["markerfacecolor"]}
    zorder = 4 if row.Index[0] == EMPHASISED else 3
    for x, y, style in ((row.published_x, row.published_y, hollow), (row.measured_x, row.measured_y, filled)):
        if not pd.isna(x):
            panel.plot(x, y, **style, zorder=zorder)


def _filled(family: str) -> dict[str, Any]:
    marker, color, size = _LOOKS.get(family, _OTHER)
    return {
        "marker": marker,
        "linestyle": "",
        "markersize": size,
        "markerfacecolor": color,
        "markeredgecolor": "black",
        "markeredgewidth": 0.7,
    }


def _key(panel: Axes, frame: pd.DataFrame) -> None:
    """A line a row: its marker, number and name."""
    panel.set_axis_off()
    panel.set_xlim(0, 1)
    panel.set_ylim(len(frame) + 0.5, 0.5)
    for row in frame.itertuples():
        panel.plot(0.02, row.number, **_filled(row.family), clip_on=False)
        sign = DAGGER if row.calibrated is True else ""
        text = f"{row.number}{sign}  {row.method_title}, {row.backbone_title}"
        weight = "bold" if row.Index[0] == EMPHASISED else "normal"
        panel.text(0.12, row.number, text, fontsize=SMALL, va="center", fontweight=weight)


def _numbers(panel: Axes, frame: pd.DataFrame, picture: Picture) -> None:
    """Beside each point the number of its row, placed once the panel has its size; published ones in grey."""
    picture.draw_without_rendering()
    names = {"published": "0.4", "measured": "0.0"}
    found = pd.concat(
        [
            frame[["number", "family"]].assign(x=frame[f"{side}_x"], y=frame[f"{side}_y"], color=color, side=side)
            for side, color in names.items()
        ]
    ).dropna()
    found = found.sort_values(["number", "side"], ascending=[True, False])
    # All in points of 1/72 inch, as sizes of markers and letters are.
    unit = _POINTS / picture.dpi
    at = unit * panel.transData.transform(found[["x", "y"]].to_numpy(float))
    area = panel.get_window_extent()
    room = [*(unit * (area.p0 + area.p1) / 2), unit * area.width, unit * area.height]
    sizes = [_LOOKS.get(family, _OTHER)[2] for family in found["family"]]
    places = beside(at, sizes, (2 * _LETTER * SMALL, _LINE * SMALL), room)
    for row, shift in zip(found.itertuples(), places - at, strict=True):
        style: dict[str, Any] = {"fontsize": SMALL, "ha": "center", "va": "center", "color": row.color, "zorder": 5}
        panel.annotate(
            str(row.number), (row.x, row.y), tuple(shift), textcoords="offset points", **style
        ).set_in_layout(False)

"""Accuracy against cost of a question for every row of the main table, published and measured, with both frontiers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from analysis import notes
from analysis.figure import SMALL, Figure
from analysis.frames import COST, IDENTITY, KEY, MEASURED, UNIT, with_costs
from analysis.frontier import Point, frontier, outline
from analysis.labels import Box, beside
from analysis.source import Source
from analysis.table import DAGGER
from harness.errors import UserError

if TYPE_CHECKING:
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


class Look(NamedTuple):
    """How the points of a family look: by shape, and by a colour whose lightness differs as well."""

    marker: str
    color: str
    size: float = 6


_LOOKS: Mapping[str, Look] = {
    "single model": Look("o", "#999999"),
    "single-agent reasoning": Look("s", "#56B4E9"),
    "fixed topology": Look("^", "#009E73"),
    "workflow optimization": Look("D", "#E69F00", 5),
    "evolving orchestration": Look("v", "#CC79A7"),
    "query-only routing": Look("P", "#0072B2", 7),
    "gated-memory routing": Look("*", "#D55E00", 13),
}
_OTHER = Look("X", "#000000")


def build(source: Source) -> Figure:
    """Build the figure; its option ``benchmark`` says of which one, where the cells are of several.

    Raises:
        UserError: A cell cannot be read, or none is of the benchmark.
    """
    results = source.results()
    benchmark = source.options.get("benchmark", next(iter(results.benchmarks)))
    if benchmark not in results.benchmarks:
        raise UserError(
            f"no cell of {benchmark!r} among those of {', '.join(results.benchmarks)}; run one of that benchmark"
        )
    frame = with_costs(results.frame.xs(benchmark, level="benchmark", drop_level=False), results)
    frame["number"] = range(1, len(frame) + 1)
    frame["point"] = [_point(row.published_cost_per_query, row.published) for row in frame.itertuples()]
    frame["measured_point"] = [_point(row.cost_per_query, 100 * row.fraction) for row in frame.itertuples()]
    for side, column in (("published", "point"), ("measured", "measured_point")):
        present = frame[column].dropna()
        best = {present.index[place] for place in frontier(list(present))}
        frame[f"{side}_on_frontier"] = pd.Series({key: key in best for key in present.index}, dtype=object)
    # A cost without its cost table has no accuracy beside it here.
    frame["published"] = frame["published"].where(frame["point"].notna())
    fitted = frame["calibrated"].eq(True)
    frame["difference"] = (frame["measured"] - frame["published"]).where(~fitted).round(2)
    return Figure(
        label=f"pareto-{benchmark}",
        caption=f"{_CAPTION}{_beyond_the_points(frame)}{notes.conditions(results)}",
        simulated=results.simulated,
        draw=functools.partial(_draw, results.benchmarks[benchmark], frame),
        inches=_INCHES,
        provenance=results.provenance,
        frame=frame.reset_index()[_COLUMNS],
    )


def _point(cost: float, accuracy: float) -> Point | None:
    return None if pd.isna(cost) or pd.isna(accuracy) else Point(UNIT * cost, accuracy)


def _beyond_the_points(frame: pd.DataFrame) -> str:
    """What the points alone do not say; a bar on every one would hide them."""
    reach = median((frame["high"] - frame["low"]).dropna() / 2)
    several = " Rows with several seeds: their mean." if frame["several"].eq(True).any() else ""
    fitted = (
        f" {DAGGER}: fitted to the published point, agreement is no finding."
        if frame["calibrated"].eq(True).any()
        else ""
    )
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
    _frontiers(panel, frame)
    _key(key, frame)
    _numbers(panel, frame, picture)


def _look(row: Any) -> Look:
    return _LOOKS.get(row.family, _OTHER)


def _points(panel: Axes, row: Any) -> None:
    if row.point and row.measured_point:
        panel.plot(*zip(row.point, row.measured_point, strict=True), color="0.8", linewidth=0.5, zorder=1)
    filled = _filled(_look(row))
    hollow = {**filled, "markerfacecolor": "white", "markeredgecolor": _look(row).color}
    for point, style in ((row.point, hollow), (row.measured_point, filled)):
        if point:
            panel.plot(*point, **style, zorder=4 if row.Index[0] == EMPHASISED else 3)


def _filled(look: Look) -> dict[str, Any]:
    return {
        "marker": look.marker,
        "linestyle": "",
        "markersize": look.size,
        "markerfacecolor": look.color,
        "markeredgecolor": "black",
        "markeredgewidth": 0.7,
    }


def _frontiers(panel: Axes, frame: pd.DataFrame) -> None:
    """To the edge of the panel, whose limits stay."""
    low, high = panel.get_xlim()
    for column, linestyle in (("point", "--"), ("measured_point", "-")):
        corners = outline(list(frame[column].dropna()), high)
        at, heights = [one.cost for one in corners], [one.accuracy for one in corners]
        panel.plot(at, heights, color="0.35", linestyle=linestyle, linewidth=1, zorder=2)
    panel.set_xlim(low, high)


def _key(panel: Axes, frame: pd.DataFrame) -> None:
    """A line a row: its marker, number and name."""
    panel.set_axis_off()
    panel.set_xlim(0, 1)
    panel.set_ylim(len(frame) + 0.5, 0.5)
    for row in frame.itertuples():
        panel.plot(0.02, row.number, **_filled(_look(row)), clip_on=False)
        sign = DAGGER if row.calibrated is True else ""
        text = f"{row.number}{sign}  {row.method_title}, {row.backbone_title}"
        weight = "bold" if row.Index[0] == EMPHASISED else "normal"
        panel.text(0.12, row.number, text, fontsize=SMALL, va="center", fontweight=weight)


def _numbers(panel: Axes, frame: pd.DataFrame, picture: Picture) -> None:
    """Beside each point the number of its row, placed once the panel has its size; published ones in grey."""
    picture.draw_without_rendering()
    found = [
        (row, point, color)
        for row in frame.itertuples()
        for point, color in ((row.point, "0.4"), (row.measured_point, "0.0"))
        if point
    ]
    # All in points of 1/72 inch, as sizes of markers and letters are.
    unit = _POINTS / picture.dpi
    at = [(unit * float(x), unit * float(y)) for x, y in (panel.transData.transform(one) for _, one, _ in found)]
    area = panel.get_window_extent()
    middle = (unit * (area.x0 + area.x1) / 2, unit * (area.y0 + area.y1) / 2)
    room = Box(*middle, unit * area.width, unit * area.height)
    places = beside(at, [_look(row).size for row, _, _ in found], (2 * _LETTER * SMALL, _LINE * SMALL), room)
    for (row, point, color), (x, y), place in zip(found, at, places, strict=True):
        style: dict[str, Any] = {"fontsize": SMALL, "ha": "center", "va": "center", "color": color, "zorder": 5}
        shift = (place.x - x, place.y - y)
        panel.annotate(str(row.number), point, shift, textcoords="offset points", **style).set_in_layout(False)

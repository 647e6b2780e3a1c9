"""Accuracy against cost of a question for every row of the main table, published and measured, with both frontiers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from itertools import cycle
from string import ascii_uppercase
from typing import Any

import pandas as pd
from adjustText import adjust_text
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from analysis import bounds, notes
from analysis.figure import SMALL, Figure, draw_frontier, on_frontier
from analysis.frames import COST, IDENTITY, KEY, MEASURED, UNIT, percent, with_costs
from analysis.source import Source
from harness.files import check
from harness.runner.config import POOL

_CAPTION = (
    "Accuracy against cost of a question, published and measured, on the same axes; steps: the Pareto frontier, whose "
    "points have names. Published cost: the paper's total over the number of questions that its accuracy implies. "
    "Measured cost: of the calls that the published one counts (D-REPORT-2; that of all calls is in the CSV)."
)
_MARKS = (
    " Letters, on no frontier: bounds of the pool, each backbone asked once, and cheap baselines. The oracle takes the "
    "cheapest right backbone of every question; the best single one is chosen on these questions."
)
_SIDES = ("published", "measured")
_COLUMNS = [
    *("number", *KEY, "published", "published_on_frontier", "measured_on_frontier", *COST, *MEASURED, "difference"),
    *IDENTITY,
]
_MARKER, _LARGE = 6, 12
# A method has a colour, a backbone a marker. What is emphasised has a colour of its own.
_EMPHASISED, _EMPHASIS = "gmr", "#D62728"
_COLORS = (
    *("#1F77B4", "#FF7F0E", "#2CA02C", "#17BECF", "#8C564B", "#E377C2", "#7F7F7F", "#BCBD22", "#9467BD"),
    *("#000000", "#98DF8A", "#AEC7E8", "#FFBB78", "#C49C94", "#C5B0D5", "#393B79", "#637939", "#8C6D31"),
)
_MARKERS = "ovsD^P<>pXhd"
# Enough for labels to come to rest; without a limit of steps the clock would set one.
_MOST_STEPS = 500


def build(source: Source) -> Figure:
    """Return the figure of one benchmark; raises UserError for cells of several."""
    options: bounds.BoundOptions = check(dict(source.options), bounds.BoundOptions, "options of a Pareto figure")
    results = source.results()
    benchmark, title = results.only_benchmark()
    frame = with_costs(results.frame.xs(benchmark, level="benchmark", drop_level=False), results)
    frame = _with_bounds(frame, bounds.of_pool(results, benchmark))
    marked = [*bounds.TITLES, *options.cheap]
    is_method = ~frame.index.get_level_values("method").isin(marked)
    frame["number"] = range(1, len(frame) + 1)
    frame["is_fitted"] = frame["calibrated"].eq(True)
    # A cost without its cost table has no accuracy next to it here.
    frame["published"] = frame["published"].where(frame["published_cost_per_query"].notna())
    frame["difference"] = frame["difference"].where(frame["published"].notna())
    points = (
        (frame["published"], frame["published_cost_per_query"]),
        (100 * frame["fraction"], frame["cost_per_query"]),
    )
    for side, (accuracy, cost) in zip(_SIDES, points, strict=True):
        frame[f"{side}_x"], frame[f"{side}_y"] = UNIT * cost.where(accuracy.notna()), accuracy
        frame[f"{side}_on_frontier"] = on_frontier(cost.where(is_method), accuracy)
    marks = frame[~is_method & frame["ran"]].sort_index(level="method", key=lambda names: names.map(marked.index))
    return Figure(
        label=f"pareto-{benchmark}",
        **notes.describe_run(results, _CAPTION + _beyond_the_points(frame) + ("" if is_method.all() else _MARKS)),
        draw=functools.partial(_draw, title, frame[is_method], marks),
        inches=(7.8, 4.1),
        frame=frame.reset_index()[_COLUMNS],
    )


def _with_bounds(frame: pd.DataFrame, of_pool: bounds.Bounds | None) -> pd.DataFrame:
    """Return the rows of a benchmark with those of :data:`bounds.TITLES` below."""
    if of_pool is None:
        return frame
    rows = pd.DataFrame([(row.correct.mean(), row.cost.mean()) for row in of_pool.rows.values()])
    rows = rows.set_axis(["fraction", "cost_per_query"], axis=1).assign(ran=True, method_title=bounds.TITLES.values())
    index = pd.MultiIndex.from_product([of_pool.rows, [POOL], frame.index.unique("benchmark")], names=KEY)
    return pd.concat([frame, rows.assign(measured=rows["fraction"].map(percent)).set_axis(index)])


def _beyond_the_points(frame: pd.DataFrame) -> str:
    reach = ((frame["high"] - frame["low"]) / 2).median()
    several = " Rows with several seeds: their mean." if frame["several"].eq(True).any() else ""
    fitted = " Hollow: fitted to the published point, so agreement is not evidence." if frame["is_fitted"].any() else ""
    intervals = f" 95 % intervals are about ±{reach:.1f} points of accuracy (each, and seed 0, in the CSV)."
    return intervals + several + fitted


def _draw(title: str, frame: pd.DataFrame, marks: pd.DataFrame, picture: Picture) -> None:
    grid = picture.add_gridspec(1, 3, width_ratios=(1, 1, 0.42))
    left = picture.add_subplot(grid[0])
    right = picture.add_subplot(grid[1], sharex=left, sharey=left)
    others = frame.index.unique("method").drop(_EMPHASISED, errors="ignore")
    single = frame.index.unique("backbone").drop(POOL, errors="ignore")
    colors = dict(zip(others, cycle(_COLORS), strict=False)) | {_EMPHASISED: _EMPHASIS}
    markers = dict(zip(single, cycle(_MARKERS), strict=False)) | {POOL: "*"}
    for side, panel in zip(_SIDES, (left, right), strict=True):
        panel.set_title(side)
        panel.set_xscale("log")
        panel.margins(0.13)  # Room for the names of points in the corners.
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_xlabel("cost of a question (1e-4 of the paper's unit)")
        panel.grid(color="0.92", linewidth=0.6, zorder=0)
        for (method, backbone, _), row in frame[frame[f"{side}_x"].notna()].iterrows():
            is_hollow = side == "measured" and row["is_fitted"]
            face = {"markerfacecolor": "white"} if is_hollow else {"markeredgecolor": "black", "markeredgewidth": 0.4}
            size = _LARGE if method == _EMPHASISED else _MARKER + 3 * (backbone == POOL)
            look: dict[str, Any] = {"color": colors[method], "marker": markers[backbone], "markersize": size, **face}
            panel.plot(row[f"{side}_x"], row[f"{side}_y"], linestyle="", **look, zorder=3)
    left.set_ylabel(f"accuracy on {title} (%)")
    right.tick_params(labelleft=False)
    for side, panel in zip(_SIDES, (left, right), strict=True):
        draw_frontier(panel, frame[f"{side}_x"], frame[f"{side}_y"], color="0.35", linewidth=1, zorder=2)
    _key(picture.add_subplot(grid[2]), frame, colors, markers)
    if len(marks):
        _draw_marks(right, marks)
    # Labels find their places once the panels have their sizes.
    picture.draw_without_rendering()
    for side, panel in zip(_SIDES, (left, right), strict=True):
        _label_points(panel, pd.concat([frame, marks]), side)


def _draw_marks(panel: Axes, marks: pd.DataFrame) -> None:
    """Draw bounds and cheap baselines as letters, with a legend where few points are: dear and often wrong."""
    letters: dict[str, Any] = {"color": "white", "fontsize": SMALL - 1, "ha": "center", "va": "center", "zorder": 5}
    look: dict[str, Any] = {"linestyle": "", "marker": "o", "color": "black", "markersize": _MARKER, "zorder": 4}
    handles = []
    for letter, (_, row) in zip(ascii_uppercase, marks.iterrows(), strict=False):
        x, y = row["measured_x"], row["measured_y"]
        handles += panel.plot(x, y, **look, label=f"{letter}  {row['method_title']}")
        panel.annotate(letter, (x, y), **letters)
    panel.legend(handles=handles, loc="lower right", fontsize=SMALL, frameon=False, borderaxespad=0, handlelength=0)


def _key(panel: Axes, frame: pd.DataFrame, colors: Mapping[str, str], markers: Mapping[str, str]) -> None:
    panel.set_axis_off()
    titles = frame.reset_index()
    methods = titles.groupby("method_title", sort=False)["method"].first().map(colors)
    backbones = titles.groupby("backbone_title", sort=False)["backbone"].first().map(markers)
    look: dict[str, Any] = {"linestyle": "", "markersize": _MARKER}
    handles = [
        [panel.plot([], [], **look, marker="s", color=color, label=title)[0] for title, color in methods.items()],
        [panel.plot([], [], **look, marker=marker, color="0.4", label=title)[0] for title, marker in backbones.items()],
    ]
    style: dict[str, Any] = {"frameon": False, "fontsize": SMALL, "borderaxespad": 0}
    # A panel keeps the last of its legends alone.
    panel.add_artist(panel.legend(handles=handles[0], loc="upper left", **style))
    panel.legend(handles=handles[1], loc="lower left", **style)


def _label_points(panel: Axes, frame: pd.DataFrame, side: str) -> None:
    """Write the names of the frontier's points and the emphasised ones beside them, where nothing is in the way."""
    points = frame[frame[f"{side}_x"].notna()]
    named = points[points[f"{side}_on_frontier"].eq(True) | (points.index.get_level_values("method") == _EMPHASISED)]
    names = named["name"].where(named.index.get_level_values("backbone") != POOL, named["method_title"])
    style: dict[str, Any] = {"fontsize": SMALL, "ha": "center", "va": "center", "zorder": 2.5, "in_layout": False}
    style["bbox"] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0}
    texts = [
        panel.text(x, y, name.replace(" (", "\n").removesuffix(")"), **style)
        for x, y, name in zip(named[f"{side}_x"], named[f"{side}_y"], names, strict=True)
    ]
    forces: dict[str, Any] = {"force_text": 0.5, "force_static": 1.5, "force_pull": 0.01, "expand": (1.25, 1.6)}
    line = {"arrowstyle": "-", "color": "0.5", "linewidth": 0.4}
    x, y = (points[f"{side}_{axis}"].to_numpy(float) for axis in "xy")
    legend = panel.get_legend()
    forces["objects"] = [legend] if legend else None
    adjust_text(texts, x, y, ax=panel, iter_lim=_MOST_STEPS, **forces, arrowprops=line)

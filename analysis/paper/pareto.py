"""Figures of accuracy and cost: of every row of the main table, with frontiers, and by the maximum depth."""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from analysis import bounds, notes
from analysis.exhibit import format_series
from analysis.figure import COLUMN, EDGE, SMALL, Figure, bars, draw_frontier, fold, looks, on_frontier
from analysis.frames import UNIT, Results, with_costs
from analysis.statistics import mean
from harness.runner.layout import POOL, SINGLE

_SIDES = ("published", "measured")
_EMPHASISED = "gmr"
_SMALLEST, _LARGEST, _POOL_SIZE = 2.5, 6.5, 6.0
_EDGE: Mapping[str, Any] = {"linestyle": "", **EDGE}
# In the legend, which has two columns: letters per title and inches per line.
_KEY_LETTERS, _LINE_INCHES = 22, 0.13
# Pixels between a name and a point, steps of the search for free space, and the line to the point.
_CLEAR, _MOST_TURNS = 6.0, 2000
_LEADER: Mapping[str, Any] = {"arrowstyle": "-", "color": "0.5", "linewidth": 0.4, "shrinkA": 0, "shrinkB": 3}


class _MinorTicks(LogFormatter):
    """Label ticks between powers of ten by plain numbers if an axis has few of these."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def build(results: Results) -> Figure:
    """Return the figure of one benchmark. Raises UserError for cells of several."""
    benchmark, title = results.only_benchmark()
    frame = with_costs(results.frame.xs(benchmark, level="benchmark", drop_level=False), results)
    swept = {cell.run.method: cell.run.swept[0] for cell in results.cells if cell.run.swept}
    frame["sweep_of"] = frame.index.get_level_values("method").map(swept)
    is_method = frame["sweep_of"].isna()
    # Show a published accuracy only with a published cost.
    frame["published"] = frame["published"].where(frame["published_cost_per_query"].notna())
    frame["difference"] = frame["difference"].where(frame["published"].notna())
    accuracies = frame["published"], 100 * frame["fraction"]
    costs = frame["published_cost_per_query"], frame["cost_per_query"]
    for side, accuracy, cost in zip(_SIDES, accuracies, costs, strict=True):
        shown = cost.where(accuracy.notna() & (cost > 0))
        frame[f"{side}_x"], frame[f"{side}_y"] = UNIT * shown, accuracy
        frame[f"{side}_on_frontier"] = on_frontier(shown.where(is_method), accuracy)
    titles = frame.loc[is_method, ["method_title", "backbone_title"]].nunique().sum()
    names = {"published": results.published.benchmarks.get(benchmark, title), "measured": title}
    panels = {side: name for side, name in names.items() if side == "measured" or frame[f"{side}_x"].notna().any()}
    free = frame.loc[frame["cost_per_query"].eq(0), "name"]
    left_out = [f"Left out, since a logarithmic axis cannot show a cost of 0: {', '.join(free)}."] * bool(len(free))
    unit, lines = _unit(results, frame, panels), _lines(frame, bounds.of_pool(results, benchmark))
    return Figure(
        **notes.describe_run(results, frame.reset_index(), left_out),
        draw=functools.partial(_draw, panels, frame[is_method], lines, unit, results.own),
        inches=(COLUMN, 0.9 + 1.75 * len(panels) + _LINE_INCHES * math.ceil(titles / 2)),
    )


def _unit(results: Results, frame: pd.DataFrame, panels: Mapping[str, str]) -> tuple[float, str]:
    """Return the unit of the cost axis in :data:`UNIT`, and its name: a single call, or the paper's unit."""
    is_single = frame.index.get_level_values("method") == SINGLE
    singles = frame.loc[is_single, "measured_x"].dropna()
    if "published" not in panels and len(singles):
        return singles.max(), f"1 = a single call of {frame['backbone_title'][singles.idxmax()]}"
    key, price = max(results.published.prices.items(), key=lambda pair: pair[1].output)
    tokens = 1e6 / UNIT / price.output
    return 1.0, f"1e-4 of the paper's unit: {tokens:.0f} tokens that {key} writes"


def _lines(frame: pd.DataFrame, of_pool: bounds.Bounds | None) -> dict[str, pd.DataFrame]:
    """Return lines of cost and accuracy by swept method, and that of the best mix of single models by an empty key."""
    xy = ["measured_x", "measured_y"]
    lines = {method: rows[xy].sort_values(xy[0]) for method, rows in frame.groupby("sweep_of")}
    if of_pool is not None and of_pool.cost.any(axis=1).all():
        costs, points = (values.mean(axis=1, keepdims=True) for values in (UNIT * of_pool.cost, 100 * of_pool.correct))
        x = np.geomspace(costs.min(), frame[xy[0]].max(), 500)
        lines[""] = pd.DataFrame({xy[0]: x, xy[1]: bounds.mixes(x, costs, points).max(axis=0)})
    return lines


def _draw(
    titles: Mapping[str, str],
    frame: pd.DataFrame,
    lines: Mapping[str, pd.DataFrame],
    unit: tuple[float, str],
    own: Sequence[str],
    picture: Picture,
) -> None:
    frame = frame.assign(**frame[["published_x", "measured_x"]] / unit[0])
    grid = picture.subplots(len(titles), sharex=True, sharey=True, squeeze=False)
    panels = dict(zip(titles, grid[:, 0], strict=True))
    styles = looks([*dict.fromkeys([*frame.index.unique("method"), *filter(None, lines)])], own)
    single = frame.index.unique("backbone").drop(POOL, errors="ignore")
    sizes = dict(zip(single, np.linspace(_SMALLEST, _LARGEST, len(single)), strict=True)) | {POOL: _POOL_SIZE}
    for side, panel in panels.items():
        panel.set_title(fold(f"{side}: {titles[side]}", 50, 2))
        panel.set_xscale("log")
        panel.margins(0.21, 0.13)  # Room for the names of points in the corners.
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(_MinorTicks())
        panel.grid(color="0.92", linewidth=0.6, zorder=0)
        panel.set_ylabel("accuracy (%)")
        for (method, backbone, _), row in frame[frame[f"{side}_x"].notna()].iterrows():
            (color, marker), x, y = styles[method], row[f"{side}_x"], row[f"{side}_y"]
            is_measured = side == "measured"
            if is_measured:
                costs = bars(x, *(UNIT * row[["cost_low", "cost_high"]].to_numpy(float) / unit[0]))
                reach: dict[str, Any] = {"xerr": costs, "yerr": bars(y, row["low"], row["high"])}
                panel.errorbar(x, y, **reach, fmt="none", ecolor=color, elinewidth=0.6, alpha=0.6, zorder=2)
            size = sizes[backbone] + 3 * (method in (_EMPHASISED, *own))
            panel.plot(x, y, color=color, marker=marker, markersize=size, **_EDGE, zorder=6 if method in own else 3)
    panels["measured"].set_xlabel(fold(f"cost of a question ({unit[1]})", 55, 2))
    for side, panel in panels.items():
        draw_frontier(panel, frame[f"{side}_x"], frame[f"{side}_y"], color="0.35", linewidth=0.8, zorder=2)
    look: dict[str, Any] = {"frameon": False, "fontsize": SMALL, "handletextpad": 0.3, "columnspacing": 0.8}
    for method, line in lines.items():
        style = {"color": styles[method][0], "marker": ".", "markersize": 3} if method else {"color": "0.35", "ls": ":"}
        panels["measured"].plot(line["measured_x"] / unit[0], line["measured_y"], linewidth=0.8, zorder=4, **style)
    picture.legend(handles=_key(frame, styles, sizes), loc="outside lower center", ncols=2, **look)
    # Labels are placed after the layout has sized the panels.
    picture.draw_without_rendering()
    for side, panel in panels.items():
        _label_points(panel, frame, side, [_EMPHASISED, *own])


def _key(frame: pd.DataFrame, styles: Mapping[str, tuple[str, str]], sizes: Mapping[str, float]) -> list[Line2D]:
    """Return a legend handle for each method and backbone."""
    rows = frame.reset_index()
    methods = rows.groupby("method_title", sort=False)["method"].first()
    backbones = rows.groupby("backbone_title", sort=False)["backbone"].first()
    looks: dict[str, dict[str, Any]] = {
        **{
            title: {"color": styles[key][0], "marker": styles[key][1], "markersize": 5}
            for title, key in methods.items()
        },
        **{title: {"color": "0.7", "marker": "o", "markersize": sizes[key]} for title, key in backbones.items()},
    }
    return [Line2D([], [], label=fold(title, _KEY_LETTERS), **look, **_EDGE) for title, look in looks.items()]


def _label_points(panel: Axes, frame: pd.DataFrame, side: str, emphasised: Sequence[str]) -> None:
    """Name the emphasised points and those on the frontier, clear of intervals, points and other names."""
    points = frame[frame[f"{side}_x"].notna()]
    is_emphasised = points.index.get_level_values("method").isin(emphasised)
    others = points[points[f"{side}_on_frontier"].eq(True) & ~is_emphasised]
    named = pd.concat([points[is_emphasised], others])
    is_pool = named.index.get_level_values("backbone") == POOL
    names = named["method_title"] + (" " + _short(frame["backbone_title"])[named.index]).mask(is_pool, "")
    xy = [f"{side}_x", f"{side}_y"]
    pixels = panel.transData.transform
    taken = [Bbox(pixels(segment)).padded(1) for segment in _segments(panel)]
    taken += [Bbox([point, point]).padded(_CLEAR) for point in pixels(points[xy].to_numpy(float))]
    for point, name in zip(named[xy].to_numpy(float), names, strict=True):
        look: dict[str, Any] = {"fontsize": SMALL, "ha": "center", "va": "center", "zorder": 7, "in_layout": False}
        text = panel.annotate(fold(name, 22, 2), point, point, arrowprops={**_LEADER}, **look)
        size = np.array(Text.get_window_extent(text).size)  # without the line
        for turn in range(_MOST_TURNS):
            # An elliptic spiral: names are wider than high.
            center = pixels(point) + 0.2 * turn * np.array([1.5 * math.cos(turn), math.sin(turn)])
            box = Bbox([center - size / 2, center + size / 2])
            is_inside = panel.bbox.contains(box.x0, box.y0) and panel.bbox.contains(box.x1, box.y1)
            if is_inside and not box.count_overlaps(taken):
                break
        taken.append(box.padded(1))
        text.set_position(tuple(panel.transData.inverted().transform(center)))


def _segments(panel: Axes) -> Iterator[NDArray[np.float64]]:
    """Yield the ends of lines that no name may cross: intervals and the steps of the frontier."""
    for bars_of_axis in panel.collections:
        yield from (np.asarray(path.vertices, float) for path in bars_of_axis.get_paths())
    for line in panel.lines:
        corners = np.asarray(line.get_xydata(), float)
        for (x, y), (next_x, next_y) in pairwise(corners if "steps" in line.get_drawstyle() else corners[:0]):
            yield from (np.array([(x, y), (next_x, y)]), np.array([(next_x, y), (next_x, next_y)]))


def _short(titles: pd.Series) -> pd.Series:
    """Return the parts after the last hyphen (14B of qwen-2.5-14B) if they are distinct, else the titles."""
    sizes = titles.str.rpartition("-")[2]
    return sizes if sizes.nunique() == titles.nunique() else titles


def depth(results: Results) -> Figure:
    """Return accuracy and cost by the maximum depth φ. Raises UserError for cells of several benchmarks."""
    _, title = results.only_benchmark()
    depths = results.per_row(lambda cells: {"mean_depth": mean([cell.items["depth"] for cell in cells]).mean})
    # The paper prints no numbers for this figure.
    blank = dict.fromkeys(("published", "published_total", "published_questions"), float("nan"))
    frame = with_costs(results.with_measured(pd.DataFrame(blank, index=results.measured.index)), results)
    # From run.json: the configuration may have changed since.
    limits = {cell.run.method: cell.run.config["max_depth"] for cell in results.cells}
    frame = frame.join(depths).assign(max_depth=[limits[method] for method, *_ in frame.index]).sort_values("max_depth")
    return Figure(
        **notes.describe_run(results, frame.reset_index()),
        draw=functools.partial(_draw_depth, title, frame),
        inches=(COLUMN, 3.4),
    )


def _draw_depth(title: str, frame: pd.DataFrame, picture: Picture) -> None:
    upper, lower = picture.subplots(2, sharex=True)
    percents = pd.DataFrame({"mean": 100 * frame["fraction"], **frame[["low", "high", "seed0"]]})
    costs = UNIT * frame[["cost_per_query", "cost_low", "cost_high", "cost_seed0"]].set_axis(percents.columns, axis=1)
    # Seed 0 alone, if there are several seeds: the paper has one training.
    percents["seed0"] = percents["seed0"].where(frame["several"])
    _line(upper, frame["max_depth"], percents)
    _line(lower, frame["max_depth"], costs)
    upper.set_title(title)
    upper.set_ylabel("accuracy (%)")
    lower.set_ylabel("cost of a question (1e-4)")
    lower.set_ylim(bottom=0)
    lower.set_xlabel(r"maximum depth $\phi$ (mean depth reached)", parse_math=True)
    ticks = format_series(frame["max_depth"], "{:g}\n") + format_series(frame["mean_depth"], "({:.2f})")
    picture.align_ylabels()
    lower.set_xticks(list(frame["max_depth"]), list(ticks))


def _line(panel: Axes, at: pd.Series, values: pd.DataFrame) -> None:
    color, _ = looks([])["gmr"]
    reach = bars(values["mean"], values["low"], values["high"])
    style: dict[str, Any] = {"color": color, "marker": "o", "markersize": 3.5, "linewidth": 1}
    panel.errorbar(at, values["mean"], yerr=reach, **style, elinewidth=0.8, capsize=2)
    if values["seed0"].notna().any():
        panel.plot(at, values["seed0"].astype(float), linestyle="", marker="x", markersize=4, color="black")

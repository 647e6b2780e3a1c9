"""Accuracy against cost of a question for every cost weight λ_c, and the frontier of the sweep."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Picture

from analysis import notes
from analysis.figure import COLUMN, EDGE, Figure, bars, draw_frontier, looks
from analysis.frames import COST, IDENTITY, MEASURED, UNIT
from analysis.source import Source
from analysis.tables.lambda_sweep import by_weight

# From the smallest weight on, the first hollow, so that points at the same place are all seen.
_SIZES = {"gmr_lambda_10": 9, "gmr": 8, "gmr_lambda_50": 5}
_CAPTION = (
    "Accuracy and cost of a question (in 1e-4 of the paper's unit, without the aggregation) with the cost weights "
    "that the paper names; bars: 95 % intervals. Grey line: the most accuracy that a cost buys. The paper prints no "
    "result of this sweep, nor which weight its tables have."
)
_COLUMNS = ["method", "benchmark", "lambda_c", "published", *MEASURED, *COST, "on_frontier", *IDENTITY]


def build(source: Source) -> Figure:
    """Return a panel a benchmark; raises UserError for cells of other methods than those of the sweep."""
    results = source.results()
    frame = by_weight(results)
    return Figure(
        label="lambda-frontier",
        **notes.describe_run(results, _CAPTION),
        draw=functools.partial(_draw, results.benchmarks, frame),
        inches=(COLUMN, 1.9 * len(results.benchmarks) + 0.5),
        frame=frame.reset_index()[_COLUMNS],
    )


def _draw(titles: Mapping[str, str], frame: pd.DataFrame, picture: Picture) -> None:
    panels = picture.subplots(len(titles), squeeze=False)[:, 0]
    handles: dict[float, Any] = {}
    styles = looks(_SIZES)
    for panel, (key, title) in zip(panels, titles.items(), strict=True):
        rows = frame.xs(key, level="benchmark")
        costs = UNIT * rows[["cost_per_query", "cost_low", "cost_high"]]
        for (method, backbone), row in rows.assign(percent=100 * rows["fraction"]).iterrows():
            reach = {"xerr": bars(*costs.loc[method, backbone]), "yerr": bars(*row[["percent", "low", "high"]])}
            color, marker = styles[method]
            look: dict[str, Any] = {"marker": marker, "markersize": _SIZES[method], "linestyle": "", **EDGE}
            look |= {"color": color, "elinewidth": 0.8, "capsize": 2}
            look |= {"markerfacecolor": "white"} if method == "gmr_lambda_10" else {}
            handles[row["lambda_c"]], *_ = panel.errorbar(UNIT * row["cost_per_query"], row["percent"], **reach, **look)
        # Behind the points.
        style = {"color": "0.7", "linewidth": 1.5, "zorder": 1}
        draw_frontier(panel, costs["cost_per_query"], 100 * rows["fraction"], **style)
        panel.set_title(title)
        panel.set_ylabel("accuracy (%)")
    panels[-1].set_xlabel("cost of a question (1e-4)")
    picture.align_ylabels()
    weights = sorted(handles)
    names = [rf"$\lambda_c = {weight:g}$" for weight in weights]
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": len(weights), "frameon": False}
    legend = picture.legend([handles[weight] for weight in weights], names, **place)
    for text in legend.get_texts():
        text.set_parse_math(True)

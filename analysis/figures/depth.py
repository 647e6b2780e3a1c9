"""What a larger budget of steps buys on MATH: accuracy and cost of a question by the maximum depth φ."""

from __future__ import annotations

import functools
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from analysis import notes, sweeps
from analysis.figure import Figure, bars
from analysis.frames import COST, IDENTITY, MEASURED, UNIT
from analysis.source import Source
from analysis.statistics import mean
from analysis.table import format_series, signed

_COST_COLOR = "#D55E00"
# The two lines stand a little apart, so that no bar hides another.
_APART = 0.08
_CAPTION = (
    "Accuracy (left) and cost of a question in 1e-4 of the paper's unit, without the aggregation (right), by the "
    "maximum depth φ; bars: 95 % intervals; crosses: seed 0, where there are several; in brackets the mean depth that "
    "was reached. The paper draws this figure without printing its points; it says that from φ = 6 to 10 "
    "accuracy gains less than a point while cost rises."
)
# The values of φ in the paper's figure.
_PAPER = (2, 4, 6, 8, 10)
_COLUMNS = ["method", "benchmark", "max_depth", "published", *MEASURED, *COST, "mean_depth", *IDENTITY]


def build(source: Source) -> Figure:
    """Return the figure of one benchmark; raises UserError for a second one, or a method not of the sweep."""
    results = source.results()
    _, title = results.only_benchmark()
    depths = results.per_row(lambda cells: {"mean_depth": mean([cell.items["depth"] for cell in cells]).mean})
    frame = sweeps.measured(results, sweeps.DEPTHS, "max_depth").join(depths)
    # The published sentence about φ = 6 and 10 as measured, and what was not run.
    fractions = frame.set_index("max_depth")["fraction"]
    change = f" Here: {signed(100 * (fractions[10] - fractions[6]))} points." if {6, 10} <= set(fractions.index) else ""
    lacking = ", ".join(f"{phi:g}" for phi in _PAPER if phi not in fractions.index)
    sentences = change + (f" Not run: φ = {lacking}." if lacking else "")
    return Figure(
        label="depth",
        **notes.describe_run(results, _CAPTION + sentences),
        draw=functools.partial(_draw, title, frame),
        inches=(5.4, 3.9),
        frame=frame.reset_index()[_COLUMNS],
    )


def _draw(title: str, frame: pd.DataFrame, picture: Picture) -> None:
    left = picture.subplots()
    right = left.twinx()
    percents = pd.DataFrame({"mean": 100 * frame["fraction"], **frame[["low", "high", "seed0"]]})
    costs = UNIT * frame[["cost_per_query", "cost_low", "cost_high", "cost_seed0"]].set_axis(percents.columns, axis=1)
    # The first training alone, where it is one of several: the paper has one.
    percents["seed0"] = percents["seed0"].where(frame["several"])
    accuracy: dict[str, Any] = {"color": "#000000", "marker": "o", "linestyle": "-", "label": "accuracy"}
    cost: dict[str, Any] = {"color": _COST_COLOR, "marker": "s", "linestyle": "--", "label": "cost of a question"}
    _line(left, frame["max_depth"] - _APART, percents, **accuracy)
    _line(right, frame["max_depth"] + _APART, costs, **cost, markerfacecolor="white")
    left.set_xlabel("maximum depth φ (mean depth reached)")
    ticks = format_series(frame["max_depth"], "{:g}\n") + format_series(frame["mean_depth"], "({:.2f})")
    left.set_xticks(list(frame["max_depth"]), list(ticks))
    left.set_ylabel(f"accuracy on {title} (%)")
    right.set_ylabel("cost of a question (1e-4)", color=_COST_COLOR)
    right.set_ylim(bottom=0)
    right.spines["right"].set_visible(True)
    handles = [left.lines[0], right.lines[0]]
    left.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)


def _line(axes: Axes, at: pd.Series, values: pd.DataFrame, *, color: str, **style: Any) -> None:
    axes.plot(at, values["mean"], color=color, markersize=5, **style)
    reach = bars(values["mean"], values["low"], values["high"])
    axes.errorbar(at, values["mean"], yerr=reach, fmt="none", ecolor=color, elinewidth=0.8, capsize=2)
    if values["seed0"].notna().any():
        axes.plot(at, values["seed0"].astype(float), linestyle="", marker="x", markersize=4, color=color)

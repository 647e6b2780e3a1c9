"""What a larger budget of steps buys on MATH: accuracy and cost of a question by the maximum depth φ."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis import notes, sweeps
from analysis.figure import Figure
from analysis.frames import COST, IDENTITY, MEASURED, UNIT, unpublished
from analysis.source import Source
from analysis.table import signed
from harness.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

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
_COLUMNS = ["method", "benchmark", "max_depth", "published", *MEASURED, *COST, "mean_depth", *IDENTITY]


def build(source: Source) -> Figure:
    """Build the figure.

    Raises:
        UserError: A cell cannot be read, is of another method than those of the sweep, or of a second benchmark.
    """
    results = source.results()
    budgets = sweeps.values(sweeps.DEPTHS, "max_depth")
    strange = sorted({method for method, *_ in results.trainings} - set(budgets))
    if strange or len(results.benchmarks) > 1:
        found = f"the method {strange[0]}" if strange else "several benchmarks"
        raise UserError(f"the sweep of depths was given {found}; expected {', '.join(budgets)} on one benchmark")
    frame = unpublished(results)
    depths = {key: fmean(cell.items["depth"].mean() for cell in cells) for key, cells in results.trainings.items()}
    frame["max_depth"] = [budgets[method] for method, *_ in frame.index]
    frame = frame.assign(mean_depth=pd.Series(depths)).sort_values("max_depth")
    return Figure(
        label="depth",
        caption=f"{_CAPTION}{_found(frame, list(budgets.values()))}{notes.conditions(results)}",
        simulated=results.simulated,
        draw=functools.partial(_draw, next(iter(results.benchmarks.values())), frame),
        inches=(5.4, 3.9),
        provenance=results.provenance,
        frame=frame.reset_index()[_COLUMNS],
    )


def _found(frame: pd.DataFrame, budgets: Sequence[float]) -> str:
    """The published sentence about φ = 6 and 10 as measured, and what was not run."""
    of = frame.set_index("max_depth")["fraction"]
    change = f" Here: {signed(100 * (of[10] - of[6]))} points." if {6, 10} <= set(of.index) else ""
    missing = [f"{phi:g}" for phi in budgets if phi not in of.index]
    return change + (f" Not run: φ = {', '.join(missing)}." if missing else "")


def _draw(title: str, frame: pd.DataFrame, picture: Picture) -> None:
    left = picture.subplots()
    right = left.twinx()
    phi = frame["max_depth"]
    _line(left, phi - _APART, (100 * frame["fraction"], frame["low"], frame["high"]), _ACCURACY)
    costs = (UNIT * frame["cost_per_query"], UNIT * frame["cost_low"], UNIT * frame["cost_high"])
    _line(right, phi + _APART, costs, _COST)
    # The first training alone, where it is one of several: the paper has one.
    first = frame[frame["several"] & frame["seed0"].notna()]
    cross: dict[str, Any] = {"linestyle": "", "marker": "x", "markersize": 4}
    if len(first):
        left.plot(first["max_depth"] - _APART, first["seed0"], **cross, color=_ACCURACY["color"])
        right.plot(first["max_depth"] + _APART, UNIT * first["cost_seed0"], **cross, color=_COST["color"])
    left.set_xlabel("maximum depth φ (mean depth reached)")
    left.set_xticks(list(phi), [f"{row.max_depth:g}\n({row.mean_depth:.2f})" for row in frame.itertuples()])
    left.set_ylabel(f"accuracy on {title} (%)")
    right.set_ylabel("cost of a question (1e-4)", color=_COST["color"])
    right.set_ylim(bottom=0)
    right.spines["right"].set_visible(True)
    lines = [left.lines[0], right.lines[0]]
    left.legend(handles=lines, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(lines), frameon=False)


def _line(axes: Axes, at: pd.Series, values: tuple[pd.Series, pd.Series, pd.Series], style: Mapping[str, Any]) -> None:
    means, low, high = values
    axes.plot(at, means, **style, markersize=5)
    # A rounded end may lie inside of an exact mean by its rounding.
    reach = [(means - low).clip(lower=0), (high - means).clip(lower=0)]
    axes.errorbar(at, means, yerr=reach, fmt="none", ecolor=style["color"], elinewidth=0.8, capsize=2)

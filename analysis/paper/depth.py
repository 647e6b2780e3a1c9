"""Accuracy and cost of a question on MATH by the maximum depth φ."""

import functools
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from analysis import notes
from analysis.exhibit import format_series
from analysis.figure import COLUMN, Figure, bars, looks
from analysis.frames import UNIT, with_costs
from analysis.registry import Source
from analysis.statistics import mean


def build(source: Source) -> Figure:
    """Raises UserError for a second benchmark."""
    results = source.results()
    _, title = results.only_benchmark()
    depths = results.per_row(lambda cells: {"mean_depth": mean([cell.items["depth"] for cell in cells]).mean})
    # The paper prints no numbers for this figure.
    blank = dict.fromkeys(("published", "published_total", "published_questions"), float("nan"))
    frame = with_costs(results.with_measured(pd.DataFrame(blank, index=results.measured.index)), results)
    # From run.json: the configuration may have changed since.
    limits = {cell.run.method: cell.run.config["max_depth"] for cell in results.cells}
    frame = frame.join(depths).assign(max_depth=[limits[method] for method, *_ in frame.index]).sort_values("max_depth")
    return Figure(
        label="depth",
        **notes.describe_run(results, source.caption, source.legend),
        draw=functools.partial(_draw, title, frame),
        inches=(COLUMN, 3.4),
        frame=frame.reset_index(),
    )


def _draw(title: str, frame: pd.DataFrame, picture: Picture) -> None:
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

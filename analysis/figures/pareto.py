"""Accuracy against cost of a question for every row of the main table, published and measured, with both frontiers."""

from __future__ import annotations

import functools
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analysis import frontier, labels, notes
from analysis.figure import SMALL, Figure
from analysis.frames import COST, IDENTITY, KEY, MEASURED, UNIT, with_costs
from analysis.frontier import on_frontier
from analysis.source import Source
from harness.runner.config import POOL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

EMPHASISED = "gmr"
_INCHES = (7.8, 4.1)
_CAPTION = (
    "Accuracy against cost of a question, published and measured, on the same axes; steps: the Pareto frontier, whose "
    "points have names. Published cost: the paper's total over the number of questions that its accuracy implies. "
    "Measured cost: of the calls that the published one counts (D-REPORT-2; that of all calls is in the CSV)."
)
_COLUMNS = [
    *("number", *KEY, "published", "published_on_frontier", "measured_on_frontier", *COST, *MEASURED, "difference"),
    *IDENTITY,
]
_WIDTHS = (1, 1, 0.42)
_POINTS = 72
_LETTER, _LINE = 0.6, 1.25
_MARKER, _LARGE = 6, 12
# A method has a colour, a backbone a marker. What is emphasised has a colour of its own.
_EMPHASIS = "#D62728"
_COLORS = (
    *("#1F77B4", "#FF7F0E", "#2CA02C", "#17BECF", "#8C564B", "#E377C2", "#7F7F7F", "#BCBD22", "#9467BD"),
    *("#000000", "#98DF8A", "#AEC7E8", "#FFBB78", "#C49C94", "#C5B0D5", "#393B79", "#637939", "#8C6D31"),
)
_MARKERS = "ovsD^P<>pXhd"
_POOL = "*"


def build(source: Source) -> Figure:
    """The figure of one benchmark, the option of that name where the cells are of several."""
    results = source.results(source.options.get("benchmark"))
    benchmark, title = next(iter(results.benchmarks.items()))
    frame = with_costs(results.frame.xs(benchmark, level="benchmark", drop_level=False), results)
    frame["number"] = range(1, len(frame) + 1)
    # A cost without its cost table has no accuracy next to it here.
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
        caption=f"{_CAPTION}{_beyond_the_points(frame)}{notes.settings(results)}",
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
    fitted = " Hollow: fitted to the published point, so agreement is not evidence." if is_fitted else ""
    intervals = f" 95 % intervals are about ±{reach:.1f} points of accuracy (each, and seed 0, in the CSV)."
    return intervals + several + fitted


def _draw(title: str, frame: pd.DataFrame, picture: Picture) -> None:
    grid = picture.add_gridspec(1, len(_WIDTHS), width_ratios=_WIDTHS)
    left = picture.add_subplot(grid[0])
    right = picture.add_subplot(grid[1], sharex=left, sharey=left)
    looks = _looks(frame)
    panels = {"published": left, "measured": right}
    for side, panel in panels.items():
        panel.set_title(side)
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_xlabel("cost of a question (1e-4 of the paper's unit)")
        panel.grid(color="0.92", linewidth=0.6, zorder=0)
        for row in frame[frame[f"{side}_x"].notna()].itertuples():
            is_fitted = side == "measured" and row.calibrated is True
            style = looks[row.Index[:2]]
            face = {"markerfacecolor": "white"} if is_fitted else {"markeredgecolor": "black", "markeredgewidth": 0.4}
            panel.plot(getattr(row, f"{side}_x"), getattr(row, f"{side}_y"), **{**style, **face}, zorder=3)
    left.set_ylabel(f"accuracy on {title} (%)")
    right.tick_params(labelleft=False)
    for side, panel in panels.items():
        style = {"color": "0.35", "linewidth": 1, "zorder": 2}
        frontier.draw(panel, frame[f"{side}_x"], frame[f"{side}_y"], **style)
    _key(picture.add_subplot(grid[2]), frame, looks)
    # Labels find their places once the panels have their sizes.
    picture.draw_without_rendering()
    for side, panel in panels.items():
        _names(panel, frame, side, picture)


def _looks(frame: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """By method and backbone how a point looks."""
    rows = list(dict.fromkeys(key[:2] for key in frame.index))
    others = dict.fromkeys(method for method, _ in rows if method != EMPHASISED)
    colors = dict(zip(others, cycle(_COLORS), strict=False)) | {EMPHASISED: _EMPHASIS}
    single = dict.fromkeys(backbone for _, backbone in rows if backbone != POOL)
    markers = dict(zip(single, cycle(_MARKERS), strict=False)) | {POOL: _POOL}
    return {
        (method, backbone): {
            "linestyle": "",
            "marker": markers[backbone],
            "markersize": _LARGE if method == EMPHASISED else _MARKER + 3 * (backbone == POOL),
            "color": colors[method],
        }
        for method, backbone in rows
    }


def _key(panel: Axes, frame: pd.DataFrame, looks: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    """A line a method, in its colour, and a line a backbone, with its marker."""
    panel.set_axis_off()
    methods: dict[str, Any] = {}
    backbones: dict[str, Any] = {}
    for row in frame.itertuples():
        look = looks[row.Index[:2]]
        methods.setdefault(row.method_title, {**look, "marker": "s", "markersize": _MARKER})
        backbones.setdefault(row.backbone_title, {**look, "color": "0.4", "markersize": _MARKER})
    handles = [[panel.plot([], [], **look, label=name)[0] for name, look in of.items()] for of in (methods, backbones)]
    style: dict[str, Any] = {"frameon": False, "fontsize": SMALL, "borderaxespad": 0}
    # A panel keeps the last of its legends alone.
    panel.add_artist(panel.legend(handles=handles[0], loc="upper left", **style))
    panel.legend(handles=handles[1], loc="lower left", **style)


def _names(panel: Axes, frame: pd.DataFrame, side: str, picture: Picture) -> None:
    """The names of the points on the frontier, and of what is emphasised."""
    found = frame[frame[f"{side}_x"].notna()]
    named = found[found[f"{side}_on_frontier"].eq(True) | (found.index.get_level_values("method") == EMPHASISED)]
    # In points of 1/72 inch, as sizes of markers and letters are.
    unit = _POINTS / picture.dpi
    columns = [f"{side}_x", f"{side}_y"]
    centres, at = (unit * panel.transData.transform(of[columns].to_numpy(float)) for of in (found, named))
    area = panel.get_window_extent()
    room = [*(unit * (area.p0 + area.p1) / 2), unit * area.width, unit * area.height]
    texts = [row.name if row.Index[1] != POOL else row.method_title for row in named.itertuples()]
    texts = [text.replace(" (", "\n").removesuffix(")") for text in texts]
    sizes = [
        (_LETTER * SMALL * max(map(len, text.split("\n"))), _LINE * SMALL * (1 + text.count("\n"))) for text in texts
    ]
    markers = np.column_stack([centres, np.full((len(centres), 2), _MARKER)])
    shifts = labels.places(at, sizes, markers, room) - at
    for text, point, shift in zip(texts, named[columns].to_numpy(float), shifts, strict=True):
        style: dict[str, Any] = {"fontsize": SMALL, "ha": "center", "va": "center", "zorder": 2.5}
        style["bbox"] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0}
        style["arrowprops"] = {"arrowstyle": "-", "color": "0.5", "linewidth": 0.4}
        panel.annotate(text, tuple(point), tuple(shift), textcoords="offset points", **style).set_in_layout(False)

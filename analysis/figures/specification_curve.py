"""The specification curve: every headline conclusion under every reading, sorted by estimate."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D

from analysis import notes
from analysis.claims.declaration import Region
from analysis.figure import PAGE, SMALL, Figure, bars
from analysis.source import Source
from analysis.specification import CONCLUSIONS, TAKEN, read_curve

Panels: TypeAlias = Sequence[tuple[str, pd.DataFrame]]

_CAPTION = (
    "Above: the estimate of a conclusion under every reading that concerns it, sorted, with its 95 % interval. Below: "
    "which reading each is; one choice is made otherwise at a time. Shaded: where the conclusion holds. All points of "
    "a panel answer the same questions and share most cells, so their number is no evidence."
)
_LOOKS: Mapping[str, Mapping[str, Any]] = {
    "supports": {"color": "#0072B2"},
    "leaves open": {"color": "0.45", "markerfacecolor": "white"},
    "contradicts": {"color": "#D55E00"},
}
_SHADE = "#E3EFE3"
_PUBLISHED: Mapping[str, Any] = {"color": "black", "linewidth": 0.8, "linestyle": "--"}
_MARKER, _MARKER_TAKEN, _MARKER_SIZE = "o", "D", 3.0
# Panels beside each other, which share one list of readings; heights in lines of that list, and the inches of one.
_ACROSS, _KEY, _ABOVE, _TITLE, _LINE = 5, 1, 9, 6, 0.11
_TITLE_LETTERS = 21


def build(source: Source) -> Figure:
    """Return a panel a conclusion; those whose cells are not finished are named in the caption."""
    curve = read_curve(source)
    panels = list(curve.shown.items())
    lines = [panels[place : place + _ACROSS] for place in range(0, len(panels), _ACROSS)]
    heights = [_ABOVE + len(_listed(line)) for line in lines]
    return Figure(
        label="specification-curve",
        **notes.describe_run(curve.results, " ".join([_CAPTION, *curve.left_out()])),
        draw=functools.partial(_draw, lines, heights),
        inches=(PAGE, 0.7 + _LINE * (_KEY + sum(heights) + _TITLE * len(heights))),
        frame=curve.points,
    )


def _listed(line: Panels) -> list[str]:
    """Return the readings of panels beside each other, in the order of their declaration."""
    places = pd.concat([points["reading"] for _, points in line]).reset_index().drop_duplicates("reading")
    return list(places.sort_values("index")["reading"])


def _draw(lines: Sequence[Panels], heights: Sequence[int], picture: Picture) -> None:
    if not lines:
        return
    grid = picture.add_gridspec(1 + len(heights), 1, height_ratios=(_KEY, *heights))
    _key(picture.add_subplot(grid[0]))
    for place, (line, height) in enumerate(zip(lines, heights, strict=True), start=1):
        parts = grid[place].subgridspec(2, _ACROSS, height_ratios=(_ABOVE, height - _ABOVE))
        for number, (key, points) in enumerate(line):
            above = picture.add_subplot(parts[0, number])
            _estimates(above, key, points)
            _readings(picture.add_subplot(parts[1, number], sharex=above), points, _listed(line), is_first=number == 0)


def _key(panel: Axes) -> None:
    panel.set_axis_off()
    style: dict[str, Any] = {"linestyle": "", "markersize": _MARKER_SIZE}
    looks = [Line2D([], [], marker=_MARKER, label=name, **style, **look) for name, look in _LOOKS.items()]
    taken = Line2D([], [], marker=_MARKER_TAKEN, color="0.45", label=TAKEN.lower(), **style)
    handles = [*looks, taken, Line2D([], [], **_PUBLISHED, label="the paper's numbers")]
    panel.legend(handles=handles, loc="center", ncols=len(handles), frameon=False, fontsize=SMALL)


def _estimates(panel: Axes, key: str, points: pd.DataFrame) -> None:
    conclusion = CONCLUSIONS[key]
    ends = points[["measured", "low", "high"]].to_numpy(float)
    finite = [*ends[np.isfinite(ends)], *points["published"].dropna(), 0.0]
    margin = 0.08 * (max(finite) - min(finite) or 1.0)
    limits = min(finite) - margin, max(finite) + margin
    region = conclusion.holds if isinstance(conclusion.holds, Region) else Region()
    panel.axhspan(*np.clip([region.low, region.high], *limits), color=_SHADE, linewidth=0)
    for place, (_, row) in enumerate(points.iterrows()):
        # An end that is not known lies outside of the panel.
        low, high = np.clip([row["low"], row["high"]], 2 * limits[0] - limits[1], 2 * limits[1] - limits[0])
        reach = bars(row["measured"], low, high)
        panel.errorbar(place, row["measured"], reach, **_look(row), linestyle="", elinewidth=0.8, capsize=1.5)
    if points["published"].notna().any():
        panel.axhline(points["published"].dropna().iloc[0], **_PUBLISHED, zorder=1)
    panel.set_ylim(*limits)
    title = textwrap.fill(f"{conclusion.says.rstrip('.')} ({conclusion.unit})", _TITLE_LETTERS, break_on_hyphens=False)
    panel.set_title(title, fontsize=SMALL, loc="left", x=-0.2)
    panel.tick_params(labelsize=SMALL, bottom=False, labelbottom=False)


def _readings(panel: Axes, points: pd.DataFrame, listed: Sequence[str], *, is_first: bool) -> None:
    rows = {name: place for place, name in enumerate(listed)}
    panel.hlines([rows[name] for name in points["reading"]], -0.5, len(points) - 0.5, color="0.9", linewidth=0.6)
    for place, (_, row) in enumerate(points.iterrows()):
        panel.plot(place, rows[row["reading"]], **_look(row), linestyle="")
    panel.set_yticks(list(rows.values()), list(rows), fontsize=SMALL)
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_xlim(-0.6, len(points) - 0.4)
    panel.tick_params(length=0, labelbottom=False, labelleft=is_first)
    panel.spines[["left", "bottom"]].set_visible(False)


def _look(point: pd.Series) -> dict[str, Any]:
    marker = _MARKER_TAKEN if point["reading"] == TAKEN else _MARKER
    return {"marker": marker, "markersize": _MARKER_SIZE, **_LOOKS[point["outcome"]]}

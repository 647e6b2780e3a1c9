"""The plane of accuracy and cost: a published and a measured point for every row, numbered, with both frontiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis import tables
from analysis.costs import UNIT, Cost
from analysis.figures import SMALL
from analysis.frontier import Point, outline
from analysis.grid import Line
from analysis.labels import Box, beside
from analysis.measures import Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

EMPHASISED = "gmr"
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


class Pair(NamedTuple):
    """One row of the main table on one benchmark.

    Attributes:
        number: Its number in the key, from 1.
        line: The row.
        measurement: What was measured, ``None`` where nothing was run.
        cost: What it costs, in print and as measured.
    """

    number: int
    line: Line
    benchmark: str
    measurement: Measurement | None
    cost: Cost

    @property
    def published(self) -> Point | None:
        """Its point in the paper: cost of a question in :data:`analysis.costs.UNIT`, accuracy in percent."""
        if self.cost.printed is None or self.line.published is None:
            return None
        return Point(UNIT * self.cost.printed, self.line.published.accuracies[self.benchmark].percent)

    @property
    def measured(self) -> Point | None:
        """Its point in this run, in the same units."""
        if self.measurement is None or self.cost.measured is None:
            return None
        return Point(UNIT * self.cost.measured.mean, 100 * self.measurement.accuracy.mean)

    @property
    def sign(self) -> str:
        """Marks what was fitted to the paper."""
        return tables.DAGGER if self.measurement and self.measurement.calibrated else ""

    @property
    def look(self) -> Look:
        """That of its family."""
        return _LOOKS.get(self.line.family, _OTHER)


def draw(title: str, pairs: Sequence[Pair], picture: Picture) -> None:
    """Put the plane and the key of its numbers into an empty picture.

    Args:
        title: Of the benchmark.
        pairs: The rows, in the order of the key.
        picture: The picture, everything around the panels already in it.
    """
    panel, key = picture.subplots(1, 2, width_ratios=_PLOT_TO_KEY)
    panel.set_xscale("log")
    panel.set_xlabel("cost of a question (1e-4)")
    panel.set_ylabel(f"accuracy on {title} (%)")
    panel.xaxis.set_major_formatter("{x:g}")
    for pair in pairs:
        _points(panel, pair)
    _frontiers(panel, pairs)
    _key(key, pairs)
    _numbers(panel, pairs, picture)


def _points(panel: Axes, pair: Pair) -> None:
    if pair.published and pair.measured:
        panel.plot(*zip(pair.published, pair.measured, strict=True), color="0.8", linewidth=0.5, zorder=1)
    for point, style in ((pair.published, _hollow(pair.look)), (pair.measured, _filled(pair.look))):
        if point:
            panel.plot(*point, **style, zorder=4 if pair.line.method == EMPHASISED else 3)


def _hollow(look: Look) -> dict[str, Any]:
    return {**_filled(look), "markerfacecolor": "white", "markeredgecolor": look.color}


def _filled(look: Look) -> dict[str, Any]:
    return {
        "marker": look.marker,
        "linestyle": "",
        "markersize": look.size,
        "markerfacecolor": look.color,
        "markeredgecolor": "black",
        "markeredgewidth": 0.7,
    }


def _frontiers(panel: Axes, pairs: Sequence[Pair]) -> None:
    """To the edge of the panel, whose limits stay."""
    low, high = panel.get_xlim()
    published = [pair.published for pair in pairs if pair.published]
    measured = [pair.measured for pair in pairs if pair.measured]
    for points, linestyle in ((published, "--"), (measured, "-")):
        corners = outline(points, high)
        at, heights = [one.cost for one in corners], [one.accuracy for one in corners]
        panel.plot(at, heights, color="0.35", linestyle=linestyle, linewidth=1, zorder=2)
    panel.set_xlim(low, high)


def _key(panel: Axes, pairs: Sequence[Pair]) -> None:
    """A line a row: its marker, number and name."""
    panel.set_axis_off()
    panel.set_xlim(0, 1)
    panel.set_ylim(len(pairs) + 0.5, 0.5)
    for pair in pairs:
        panel.plot(0.02, pair.number, **_filled(pair.look), clip_on=False)
        text = f"{pair.number}{pair.sign}  {pair.line.method_title}, {pair.line.backbone_title}"
        weight = "bold" if pair.line.method == EMPHASISED else "normal"
        panel.text(0.12, pair.number, text, fontsize=SMALL, va="center", fontweight=weight)


def _numbers(panel: Axes, pairs: Sequence[Pair], picture: Picture) -> None:
    """Beside each point the number of its row, placed once the panel has its size; published ones in grey."""
    picture.draw_without_rendering()
    found = [
        (pair, point, color)
        for pair in pairs
        for point, color in ((pair.published, "0.4"), (pair.measured, "0.0"))
        if point
    ]
    # All in points of 1/72 inch, as sizes of markers and letters are.
    unit = _POINTS / picture.dpi
    at = [_place(panel, point, unit) for _, point, _ in found]
    frame = panel.get_window_extent()
    middle = (unit * (frame.x0 + frame.x1) / 2, unit * (frame.y0 + frame.y1) / 2)
    room = Box(*middle, unit * frame.width, unit * frame.height)
    places = beside(at, [pair.look.size for pair, _, _ in found], (2 * _LETTER * SMALL, _LINE * SMALL), room)
    for (pair, point, color), (x, y), place in zip(found, at, places, strict=True):
        style: dict[str, Any] = {"fontsize": SMALL, "ha": "center", "va": "center", "color": color, "zorder": 5}
        shift = (place.x - x, place.y - y)
        panel.annotate(str(pair.number), point, shift, textcoords="offset points", **style).set_in_layout(False)


def _place(panel: Axes, point: Point, unit: float) -> tuple[float, float]:
    x, y = panel.transData.transform(point)
    return unit * float(x), unit * float(y)

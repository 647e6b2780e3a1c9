"""A figure as a reader sees it, and its files: PDF, PNG, SVG and the CSV behind it, the same bytes each time."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.table import Exhibit, csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

SIZE = 8
SMALL = 6
_CAPTION_SIZE = 7
_POINTS = 72
# Width of a letter over its size: bold above the panels, plain below.
_BOLD, _PLAIN = 0.65, 0.56


@dataclass(frozen=True, eq=False, kw_only=True)
class Figure(Exhibit):
    """A figure; ``draw`` puts panels into an empty picture, whose layout is constrained."""

    draw: Callable[[Picture], None]
    inches: tuple[float, float]  # width and height

    def contents(self) -> Mapping[str, str | bytes]:
        """Return PDF, PNG, SVG and CSV by file ending."""
        return {**pictures(self), "csv": csv(self.frame, self.warning)}


def pictures(figure: Figure) -> dict[str, bytes]:
    """Return the picture by file ending, ``pdf``, ``png`` and ``svg``, the same bytes each time, with its caption."""
    origin = "; ".join(f"{name}: {value}" for name, value in figure.provenance.items())
    title = ". ".join(part for part in (figure.label, figure.warning, origin) if part)
    metadata_of: dict[str, dict[str, str | None]] = {
        "pdf": {"Subject": figure.caption, "CreationDate": None, "Creator": None, "Producer": None},
        "png": {"Description": figure.caption, "Software": None},
        "svg": {"Description": figure.caption, "Creator": None, "Date": None},
    }
    files = {}
    with _style():
        drawn = picture(figure)
        for kind, metadata in metadata_of.items():
            content = io.BytesIO()
            drawn.savefig(content, format=kind, dpi=150, metadata={"Title": title, **metadata})
            files[kind] = content.getvalue()
    return files


def picture(figure: Figure) -> Picture:
    """Draw the picture: first the texts around the panels, since the layout gives the panels the room that is left."""
    from matplotlib.figure import Figure as Picture

    with _style():
        drawn = Picture(figsize=figure.inches, layout="constrained")
        points = figure.inches[0] * _POINTS
        if figure.warning:
            above = textwrap.fill(figure.warning, int(points / (SIZE * _BOLD)))
            drawn.suptitle(above, fontsize=SIZE, fontweight="bold")
        provenance = figure.provenance
        run = ", ".join(f"{name} {provenance[name]}" for name in ("preset", "run", "seeds") if name in provenance)
        width = int(points / (_CAPTION_SIZE * _PLAIN))
        below = "\n".join(textwrap.fill(part, width) for part in (figure.caption, run) if part)
        drawn.supxlabel(below, x=0.01, ha="left", fontsize=_CAPTION_SIZE)
        figure.draw(drawn)
    return drawn


def bars(mean: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Return how far error bars reach below and above; the end of a rounded interval may lie inside of its mean."""
    middle, ends = np.atleast_1d(mean), np.stack([np.atleast_1d(low), np.atleast_1d(high)]).astype(float)
    return np.clip([middle - ends[0], ends[1] - middle], 0, None)


def on_frontier(cost: pd.Series, accuracy: pd.Series) -> pd.Series:
    """Return whether no point is as good in both and better in one; missing where either value is missing."""
    c, a = cost.to_numpy(float), accuracy.to_numpy(float)
    beats = (c[:, None] <= c) & (a[:, None] >= a) & ((c[:, None] < c) | (a[:, None] > a))
    return pd.Series(~beats.any(axis=0), cost.index, dtype=object).where(cost.notna() & accuracy.notna())


def draw_frontier(panel: Axes, cost: pd.Series, accuracy: pd.Series, **style: Any) -> None:
    """Draw the best accuracy that a cost can buy, as steps from the cheapest point to the edge of the panel."""
    low, high = panel.get_xlim()
    best = pd.DataFrame({"cost": cost, "accuracy": accuracy})[on_frontier(cost, accuracy).eq(True)].sort_values("cost")
    if len(best):
        ends = best.tail(1).assign(cost=lambda last: last["cost"].clip(lower=high))
        steps = pd.concat([best, ends])
        panel.plot(steps["cost"], steps["accuracy"], drawstyle="steps-post", **style)
    panel.set_xlim(low, high)


def _style() -> AbstractContextManager[None]:
    """Return a style in which nothing shows that a user has set for matplotlib."""
    from matplotlib import style

    settings = {
        "font.family": "DejaVu Sans",
        "font.size": SIZE,
        "axes.titlesize": SIZE,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.formatter.useoffset": False,
        "text.parse_math": False,
        "svg.hashsalt": "gmr",
        "pdf.fonttype": 42,  # TrueType: some publishers refuse Type 3, the default
    }
    return style.context(["default", settings])

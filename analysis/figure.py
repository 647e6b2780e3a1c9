"""A figure and its files: PDF, PNG, SVG, caption and the CSV of its values. All files are deterministic."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.exhibit import Exhibit, csv, provenance_text
from analysis.latex import latex_caption, latex_comments, latex_notes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

#: Widths in inches of one column and of two.
COLUMN, PAGE = 3.3, 6.8
STYLE = Path(__file__).with_name("figure.mplstyle")
SIZE, SMALL = 7, 6  # font size in points, as in the style file
#: Colour-blind-safe colours (Okabe and Ito, 2002).
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = OKABE_ITO = (
    *("#000000", "#E69F00", "#56B4E9", "#009E73"),
    *("#F0E442", "#0072B2", "#D55E00", "#CC79A7"),
)
_LOOKS: Mapping[str, tuple[str, str]] = {
    "single": (BLACK, "o"),
    "cot": (PURPLE, "s"),
    "complex_cot": (YELLOW, "D"),
    "macnet_chain": (SKY, "<"),
    "macnet_tree": (SKY, "^"),
    "macnet_complete": (SKY, ">"),
    "aflow": (ORANGE, "X"),
    "puppeteer": (GREEN, "P"),
    "masrouter": (BLUE, "d"),
    "gmr": (VERMILION, "*"),
}
# Colours (Tol, 2021) and markers of the user's own methods, and markers of other variants.
_OWN = (("#882255", "p"), ("#999933", "8"), ("#332288", "H"), ("#44AA99", (3, 0, 0)), ("#AA4499", (4, 1, 0)))
_OTHER_MARKERS: tuple[Any, ...] = ("h", "v", (4, 1, 45), (6, 1, 0), (8, 1, 0))
#: Edge of a marker, so that pale markers are visible on white.
EDGE: Mapping[str, Any] = {"markeredgecolor": "black", "markeredgewidth": 0.5}


def looks(methods: Sequence[str], own: Sequence[str] = ()) -> dict[str, tuple[str, Any]]:
    """Return colour and marker by method.

    A variant has its base's colour. Up to five methods of the user have their own colour and marker.
    """
    looks: dict[str, tuple[str, Any]] = dict(_LOOKS)
    for number, method in enumerate(name for name in methods if name not in (*_LOOKS, *own)):
        base = next((color for key, (color, _) in _LOOKS.items() if method.startswith(f"{key}_")), None)
        looks[method] = base or OKABE_ITO[number % len(OKABE_ITO)], _OTHER_MARKERS[number % len(_OTHER_MARKERS)]
    return looks | {
        method: _OWN[number % len(_OWN)] for number, method in enumerate(name for name in methods if name in own)
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class Figure(Exhibit):
    """A figure. ``draw`` adds panels to an empty picture with constrained layout."""

    draw: Callable[[Picture], None]
    inches: tuple[float, float]  # width (one column or two) and height

    def contents(self) -> Mapping[str, str | bytes]:
        notes = (*self.notes, *self.run_notes, f"Provenance: {provenance_text(self)}.")
        text = "\n\n".join(filter(None, (self.warning and f"{self.warning}.", self.caption, *notes)))
        below = rf"\par{{\scriptsize {latex_notes(notes)}}}"
        latex = "\n".join([*latex_comments(self, "graphicx"), *latex_caption(self, "fig"), below, ""])
        return {**pictures(self), "txt": f"{text}\n", "tex": latex, "csv": csv(self.frame, self.warning)}


def pictures(figure: Figure) -> dict[str, bytes]:
    """Render to ``pdf``, ``png`` (300 dpi) and ``svg``, deterministically."""
    title = ". ".join(filter(None, (figure.label, figure.warning, provenance_text(figure, full=True))))
    metadata_of: dict[str, dict[str, str | None]] = {
        "pdf": {"Subject": figure.caption, "CreationDate": None, "Creator": None, "Producer": None},
        "png": {"Description": figure.caption, "Software": None},
        "svg": {"Description": figure.caption, "Creator": None, "Date": None},
    }
    files = {}
    with _style():
        drawn = picture(figure)
        # The layout solver's last digits may differ between processes, and SVG ids depend on them.
        drawn.draw_without_rendering()
        drawn.set_layout_engine("none")
        for panel in drawn.axes:
            panel.set_position(np.round(panel.get_position().bounds, 6))
        for kind, metadata in metadata_of.items():
            content = io.BytesIO()
            drawn.savefig(content, format=kind, dpi=300, metadata={"Title": title, **metadata})
            files[kind] = content.getvalue()
    return files


def picture(figure: Figure) -> Picture:
    """Draw the picture without its caption. A simulated one has the warning above its panels."""
    from matplotlib.figure import Figure as Picture

    with _style():
        drawn = Picture(figsize=figure.inches, layout="constrained")
        if figure.warning:
            drawn.suptitle(figure.warning.partition(";")[0], fontsize=SMALL, fontweight="bold")
        figure.draw(drawn)
    return drawn


def fold(title: str, letters: int, lines: int = 1) -> str:
    """Wrap a title; a title that needs more than ``lines`` lines ends with an ellipsis."""
    wrapped = textwrap.wrap(title, letters, break_on_hyphens=False)
    if len(wrapped) > lines:
        wrapped[lines - 1] = f"{wrapped[lines - 1][: letters - 1]}…"
    return "\n".join(wrapped[:lines])


def bars(mean: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Return the lengths of error bars below and above. Rounding may put an end inside the mean."""
    middle, ends = np.atleast_1d(mean), np.stack([np.atleast_1d(low), np.atleast_1d(high)]).astype(float)
    return np.clip([middle - ends[0], ends[1] - middle], 0, None)


def on_frontier(cost: pd.Series, accuracy: pd.Series) -> pd.Series:
    """Return whether a point is Pareto-optimal; NaN if a value is missing."""
    c, a = cost.to_numpy(float), accuracy.to_numpy(float)
    beats = (c[:, None] <= c) & (a[:, None] >= a) & ((c[:, None] < c) | (a[:, None] > a))
    return pd.Series(~beats.any(axis=0), cost.index, dtype=object).where(cost.notna() & accuracy.notna())


def draw_frontier(panel: Axes, cost: pd.Series, accuracy: pd.Series, **style: Any) -> None:
    """Draw the Pareto frontier as steps from the cheapest point to the edge of the panel."""
    low, high = panel.get_xlim()
    best = pd.DataFrame({"cost": cost, "accuracy": accuracy})[on_frontier(cost, accuracy).eq(True)].sort_values("cost")
    if len(best):
        ends = best.tail(1).assign(cost=lambda last: last["cost"].clip(lower=high))
        steps = pd.concat([best, ends])
        panel.plot(steps["cost"], steps["accuracy"], drawstyle="steps-post", **style)
    panel.set_xlim(low, high)


def _style() -> AbstractContextManager[None]:
    """Return the default style, so that a user's matplotlib settings have no effect."""
    from matplotlib import style

    return style.context(["default", STYLE])

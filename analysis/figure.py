"""A figure as a reader sees it, and its files: PDF, PNG, SVG and the CSV behind it, the same bytes each time."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.provenance import warning
from analysis.table import csv
from harness.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Picture

SIZE = 8
CAPTION_SIZE = 7
SMALL = 6
_DPI = 150
_POINTS = 72
# Width of a letter over its size: bold above the panels, plain below.
_BOLD, _PLAIN = 0.65, 0.56
_NO_CLOCK: Mapping[str, None] = {"CreationDate": None, "Creator": None, "Producer": None}
# Fonts go into a PDF as TrueType: some publishers refuse Type 3, the default.
_STYLE: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": SIZE,
    "axes.titlesize": SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "text.parse_math": False,
    "svg.hashsalt": "gmr",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure with everything that must stand around it.

    Attributes:
        label: Short ASCII name.
        caption: What the figure shows, in a few sentences; it stands below the panels.
        simulated: Whether any number comes from simulated backbones. Every file says so; no argument silences it.
        draw: Puts panels into an empty picture, whose layout is constrained.
        inches: Width and height.
        provenance: Name and value of whatever identifies the run.
        frame: The data behind the picture, in tidy form.
    """

    label: str
    caption: str
    simulated: bool
    draw: Callable[[Picture], None]
    inches: tuple[float, float]
    provenance: Mapping[str, str]
    frame: pd.DataFrame

    @property
    def warning(self) -> str:
        """The sentence about simulated backbones, or nothing for a run on real ones."""
        return warning(self.simulated)


def write(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure in every format.

    Each file appears whole or not at all; an older one stays until its successor is complete.

    Returns:
        The files written.
    """
    contents: dict[str, bytes | str] = {**pictures(figure), "csv": csv(figure.frame, figure.warning)}
    paths = {folder / f"{name}.{ending}": content for ending, content in contents.items()}
    for path, content in paths.items():
        write_atomically(path, content)
    return list(paths)


def pictures(figure: Figure) -> dict[str, bytes]:
    """The picture by file ending, ``pdf``, ``png`` and ``svg``, whatever the clock says; all carry their caption."""
    origin = "; ".join(f"{name}: {value}" for name, value in figure.provenance.items())
    title = ". ".join(part for part in (figure.label, figure.warning, origin) if part)
    with _style():
        made = picture(figure)
        return {
            "pdf": _saved(made, "pdf", {"Title": title, "Subject": figure.caption, **_NO_CLOCK}),
            "png": _saved(made, "png", {"Title": title, "Description": figure.caption, "Software": None}),
            "svg": _saved(made, "svg", {"Title": title, "Description": figure.caption, "Creator": None, "Date": None}),
        }


def picture(figure: Figure) -> Picture:
    """The picture itself: the words around the panels first, so that the panels know what room they have."""
    from matplotlib.figure import Figure as Picture

    with _style():
        made = Picture(figsize=figure.inches, layout="constrained")
        _label(made, figure)
        figure.draw(made)
    return made


def bars(mean: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """How far error bars reach below and above; a rounded end may lie inside of an exact mean by its rounding."""
    middle, ends = np.atleast_1d(mean), np.stack([np.atleast_1d(low), np.atleast_1d(high)]).astype(float)
    return np.clip([middle - ends[0], ends[1] - middle], 0, None)


@contextmanager
def _style() -> Iterator[None]:
    """Nothing that a user has set for matplotlib shows in a figure."""
    from matplotlib import style

    with style.context(["default", dict(_STYLE)]):
        yield


def _label(made: Picture, figure: Figure) -> None:
    """The warning above the panels; below them the caption, and of which run it is; all as wide as the picture."""
    points = figure.inches[0] * _POINTS
    if figure.warning:
        above = textwrap.fill(figure.warning, int(points / (SIZE * _BOLD)))
        made.suptitle(above, fontsize=SIZE, fontweight="bold")
    told = figure.provenance
    run = ", ".join(f"{name} {told[name]}" for name in ("preset", "run", "seeds") if name in told)
    lines = [textwrap.fill(part, int(points / (CAPTION_SIZE * _PLAIN))) for part in (figure.caption, run) if part]
    made.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=CAPTION_SIZE)


def _saved(made: Picture, kind: str, metadata: Mapping[str, str | None]) -> bytes:
    content = io.BytesIO()
    made.savefig(content, format=kind, dpi=_DPI, metadata=dict(metadata))
    return content.getvalue()

"""The training curves as a picture: a row of panels a benchmark, a panel a method that was trained."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paper.learning.curves import by_epoch, mean_of, trained
from paper.learning.report import Report
from paper.learning.results import Row
from paper.provenance import short, table_run_id
from paper.tables import SIMULATED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MEASURE = "utility"
_PANEL_INCHES = (2.3, 1.9)
_LEAST_INCHES = 7.0
_HEAD_INCHES = 1.0
_DPI = 150
_POINTS = 72
_SIZE = 8
_LETTER = 0.65
# Told apart by lightness and width alone, so that nothing depends on colour.
_SEED: Mapping[str, Any] = {"color": "0.6", "linewidth": 0.8}
_MEAN: Mapping[str, Any] = {"color": "0.0", "linewidth": 2.2}
# Fonts go into a PDF as TrueType: some publishers refuse Type 3, the default.
_STYLE: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": _SIZE,
    "axes.titlesize": _SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "text.parse_math": False,
    "pdf.fonttype": 42,
}


def files(report: Report) -> dict[str, bytes]:
    """The picture by file ending, ``png`` and ``pdf``; the same bytes for the same report, whatever the clock says."""
    from matplotlib import style

    title = f"Training curves, run {table_run_id(report.cells)}{_warning(report, '. ')}"
    with style.context(["default", dict(_STYLE)]):
        figure = draw(report)
        return {
            "png": _saved(figure, "png", {"Title": title, "Software": None}),
            "pdf": _saved(figure, "pdf", {"Title": title, "CreationDate": None, "Creator": None, "Producer": None}),
        }


def draw(report: Report) -> Figure:
    """The picture itself. Where nothing was trained, it has no panels and says so."""
    from matplotlib.figure import Figure

    logs = {key: trained(column) for key, column in report.columns.items()}
    rows = list(dict.fromkeys(row for of_benchmark in logs.values() for row in of_benchmark))
    width = max(_PANEL_INCHES[0] * len(rows), _LEAST_INCHES)
    figure = Figure(figsize=(width, _PANEL_INCHES[1] * len(logs) + _HEAD_INCHES), layout="constrained")
    _label(figure, report, bool(rows))
    if rows:
        grid = figure.subplots(len(logs), len(rows), squeeze=False)
        for line, (key, of_benchmark) in zip(grid, logs.items(), strict=True):
            _line(line, of_benchmark, rows)
            line[0].set_ylabel(f"{report.columns[key].title}\nown utility")
        for panel, row in zip(grid[0], rows, strict=True):
            panel.set_title(report.titles[row])
    return figure


def _label(figure: Figure, report: Report, is_trained: bool) -> None:
    """What the curves are, and in the corner of which run."""
    said = (
        "Own utility in training; each point is the mean over one epoch. Thin: one seed. Thick: mean over seeds. The "
        "scales of the panels differ."
    )
    head = [_warning(report), said if is_trained else "Nothing was trained in the finished cells."]
    widest = int(figure.get_figwidth() * _POINTS / (_LETTER * _SIZE))
    lines = "\n".join(_balanced(part, widest) for part in head if part)
    figure.suptitle(lines, fontsize=_SIZE, fontweight="bold")
    run = f"preset {report.cells[0].run.preset}, run {short(table_run_id(report.cells))}"
    figure.supxlabel(run, x=0.99, ha="right", fontsize=_SIZE - 2)


def _balanced(text: str, widest: int) -> str:
    """A text in as few lines as it needs, none much shorter than the others."""
    count = len(textwrap.wrap(text, widest))
    return next(
        "\n".join(lines)
        for width in range(len(text) // count, widest + 1)
        if len(lines := textwrap.wrap(text, width)) <= count
    )


def _warning(report: Report, before: str = "") -> str:
    return f"{before}{SIMULATED}." if report.cells[0].run.simulated else ""


def _line(panels: Sequence[Axes], logs: Mapping[Row, Mapping[int, pd.DataFrame]], rows: Sequence[Row]) -> None:
    """The panels of one benchmark; where a method was not trained on it, the place stays empty."""
    for panel, row in zip(panels, rows, strict=True):
        found = {seed: log for seed, log in logs.get(row, {}).items() if _MEASURE in log}
        if found:
            _curves(panel, found)
        else:
            panel.set_axis_off()


def _curves(panel: Axes, logs: Mapping[int, pd.DataFrame]) -> None:
    lines = [by_epoch(log, _MEASURE) for log in logs.values()]
    for line in lines:
        panel.plot(line.index, line, **_SEED, **_marked(line))
    mean = mean_of(lines)
    panel.plot(mean.index, mean, **_MEAN, **_marked(mean))
    panel.locator_params(axis="x", integer=True)
    panel.set_xlabel("update")


def _marked(line: pd.Series) -> dict[str, Any]:
    """A training of one epoch is a point, which a line would not show."""
    return {"marker": "o"} if len(line) == 1 else {}


def _saved(figure: Figure, kind: str, metadata: Mapping[str, str | None]) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=_DPI, metadata=dict(metadata))
    return content.getvalue()

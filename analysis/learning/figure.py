"""The training curves as a picture: a row of panels a benchmark, a panel a method that was trained."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis import figure
from analysis.figure import Figure
from analysis.learning.curves import by_epoch, mean_of, trained
from analysis.learning.report import Report
from analysis.learning.results import Row
from analysis.provenance import table_run_id
from analysis.results import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

    Logs = Mapping[str, Mapping[Row, Mapping[int, pd.DataFrame]]]

_MEASURE = "utility"
_PANEL_INCHES = (2.3, 1.9)
_LEAST_INCHES = 7.0
_HEAD_INCHES = 1.0
# Told apart by lightness and width alone, so that nothing depends on colour.
_SEED: Mapping[str, Any] = {"color": "0.6", "linewidth": 0.8}
_MEAN: Mapping[str, Any] = {"color": "0.0", "linewidth": 2.2}
_CAPTION = (
    "Own utility in training; each point is the mean over one epoch. Thin: one seed. Thick: mean over seeds. The "
    "scales of the panels differ."
)
_NOTHING = "Nothing was trained in the finished cells."


def files(report: Report) -> dict[str, bytes]:
    """The picture by file ending, ``png`` and ``pdf``; the same bytes for the same report, whatever the clock says."""
    return figure.pictures(_figure(report))


def draw(report: Report) -> Picture:
    """The picture itself. Where nothing was trained, it has no panels and says so."""
    return figure.picture(_figure(report))


def _figure(report: Report) -> Figure:
    """Its numbers are a file of their own, ``learning_curves.csv``, so that it has no records."""
    logs = {key: trained(column) for key, column in report.columns.items()}
    rows = list(dict.fromkeys(row for of_benchmark in logs.values() for row in of_benchmark))
    width = max(_PANEL_INCHES[0] * len(rows), _LEAST_INCHES)
    return Figure(
        label="training-curves",
        caption=_CAPTION if rows else _NOTHING,
        simulated=report.cells[0].run.simulated,
        draw=functools.partial(_panels, report, logs, rows),
        inches=(width, _PANEL_INCHES[1] * len(logs) + _HEAD_INCHES),
        provenance={"preset": report.cells[0].run.preset, "run": short(table_run_id(report.cells))},
        frame=pd.DataFrame(),
    )


def _panels(report: Report, logs: Logs, rows: Sequence[Row], picture: Picture) -> None:
    if not rows:
        return
    grid = picture.subplots(len(logs), len(rows), squeeze=False)
    for line, (key, of_benchmark) in zip(grid, logs.items(), strict=True):
        _line(line, of_benchmark, rows)
        # A panel that stays empty shows no label either.
        first = next((panel for panel in line if panel.axison), line[0])
        first.set_ylabel(f"{report.columns[key].title}\nown utility")
    for panel, row in zip(grid[0], rows, strict=True):
        panel.set_title(report.titles[row])


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

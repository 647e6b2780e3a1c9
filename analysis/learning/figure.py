"""The training curves of the study as a picture."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pandas as pd

from analysis import figure
from analysis.figure import Figure
from analysis.figures import training_curves
from analysis.learning.curves import trained
from analysis.learning.report import Report
from analysis.provenance import table_run_id
from analysis.results import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_NOTHING = "Nothing was trained in the finished cells."


def files(report: Report) -> dict[str, bytes]:
    """The picture by file ending; the same bytes for the same report, whatever the clock says."""
    return figure.pictures(_figure(report))


def draw(report: Report) -> Picture:
    """The picture itself. Where nothing was trained, it has no panels and says so."""
    return figure.picture(_figure(report))


def _figure(report: Report) -> Figure:
    """Its numbers are a file of their own, ``learning_curves.csv``, so that it has no records."""
    logs = {key: trained(column) for key, column in report.columns.items()}
    titles = {key: column.title for key, column in report.columns.items()}
    return Figure(
        label="training-curves",
        caption=training_curves.CAPTION if any(logs.values()) else _NOTHING,
        simulated=report.cells[0].run.simulated,
        draw=functools.partial(training_curves.draw, logs, titles, report.titles),
        inches=training_curves.inches(logs),
        provenance={"preset": report.cells[0].run.preset, "run": short(table_run_id(report.cells))},
        frame=pd.DataFrame(),
    )

"""The study of learning as files: a report to read, a picture, and three tables to compute with."""

from __future__ import annotations

import functools
from pathlib import Path

import pandas as pd

from analysis import figure
from analysis.figure import Figure
from analysis.figures import training_curves
from analysis.learning.markdown import render
from analysis.learning.measures import is_curve
from analysis.learning.results import Report
from analysis.provenance import table_run_id, warning
from analysis.results import short
from analysis.table import csv
from harness.files import write_atomically

_AS_LOGGED = "as logged in training: accuracy is a fraction, utility in the unit of the method"


def write(report: Report, folder: Path) -> list[Path]:
    """Write ``learning.md``, two CSV files beside it, and ``learning_curves`` as csv, png, pdf and svg.

    Returns:
        The files written.
    """
    simulated, run = warning(report.cells[0].run.simulated), f"run {table_run_id(report.cells)}"
    said, logged = ("\n# ".join(filter(None, lines)) for lines in ((simulated, run), (simulated, _AS_LOGGED, run)))
    contents: dict[str, bytes | str] = {
        "learning.md": render(report),
        "learning.csv": csv(report.values, said),
        "learning_contrasts.csv": csv(contrasts(report), said),
        "learning_curves.csv": csv(curves(report), logged),
        **{f"learning_curves.{ending}": content for ending, content in figure.pictures(picture(report)).items()},
    }
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [folder / name for name in contents]


def contrasts(report: Report) -> pd.DataFrame:
    """One row a difference and statistic: ``difference`` of each seed, then ``mean``, ``low``, ``high`` and ``n``."""
    rows: list[tuple[object, ...]] = []
    for one in report.differences:
        asked = one.contrast
        statistics: list[tuple[str, object, float]] = [("difference", *of) for of in one.seeds.items()]
        statistics.append(("mean", "", one.mean))
        if one.reach is not None:
            statistics += [("low", "", one.mean - one.reach), ("high", "", one.mean + one.reach)]
        statistics.append(("n", "", float(len(one.seeds))))
        head = (asked.name, asked.asks, asked.a, asked.b, one.row.backbone, one.benchmark, one.measure)
        rows += [(*head, *of) for of in statistics]
    head = ("contrast", "asks", "a", "b", "backbone", "benchmark", "measure", "statistic", "seed", "value")
    return pd.DataFrame(rows, columns=head)


def curves(report: Report) -> pd.DataFrame:
    """One row a benchmark, method, backbone, seed, update and measure, with the names and units of the training log."""
    rows = [
        (benchmark, *row, seed, update, measure, value)
        for benchmark, trained in report.logs.items()
        for row, logs in trained.items()
        for seed, log in logs.items()
        for measure in filter(is_curve, log.columns)
        for update, value in log[measure].dropna().items()
    ]
    return pd.DataFrame(rows, columns=["benchmark", "method", "backbone", "seed", "update", "measure", "value"])


def picture(report: Report) -> Figure:
    """The training curves; where nothing was trained, without panels. Its numbers are :func:`curves`."""
    return Figure(
        label="training-curves",
        caption=training_curves.CAPTION if any(report.logs.values()) else "Nothing was trained in the finished cells.",
        simulated=report.cells[0].run.simulated,
        draw=functools.partial(training_curves.draw, report.logs, report.benchmarks, report.titles),
        inches=training_curves.inches(report.logs),
        provenance={"preset": report.cells[0].run.preset, "run": short(table_run_id(report.cells))},
        frame=pd.DataFrame(),
    )

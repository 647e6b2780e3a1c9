"""The study of learning as files: a report to read, a picture, and three tables to compute with."""

from __future__ import annotations

import functools
from collections.abc import Iterator
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
    """Write ``learning.md``, two CSV files, and ``learning_curves`` as csv, png, pdf and svg.

    Returns:
        The files written.
    """
    comments = [warning(report.cells[0].run.simulated), f"run {table_run_id(report.cells)}"]
    said = "\n# ".join(filter(None, comments))
    contents: dict[str, bytes | str] = {
        "learning.md": render(report),
        "learning.csv": csv(values(report), said),
        "learning_contrasts.csv": csv(contrasts(report), said),
        "learning_curves.csv": csv(curves(report), "\n# ".join(filter(None, [comments[0], _AS_LOGGED, comments[1]]))),
        **{f"learning_curves.{ending}": content for ending, content in figure.pictures(picture(report)).items()},
    }
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [folder / name for name in contents]


def values(report: Report) -> pd.DataFrame:
    """One row a benchmark, method, backbone, seed and measure.

    Shares are in percent, utility in points, own utility in the unit of the method, costs in the paper's unit,
    entropies in nats. A method that routes has the backbone ``pool``; the rows of its measure
    ``backbone_share`` name one each. A single backbone has no seed. A measure that does not apply has no row;
    ``collapse`` is ``inf`` where the choice never settled.
    """

    def rows() -> Iterator[tuple[object, ...]]:
        for benchmark, column in report.columns.items():
            for (method, backbone), seeds in column.learned.items():
                for seed, one in seeds.items():
                    yield from ((benchmark, method, backbone, seed, *of) for of in one.values.items())
                    for used, share in one.backbones.items():
                        yield benchmark, method, used, seed, "backbone_share", share
            for backbone, single in column.singles.items():
                yield from ((benchmark, report.study.single, backbone, "", *of) for of in single.items())

    return pd.DataFrame(rows(), columns=["benchmark", "method", "backbone", "seed", "measure", "value"])


def contrasts(report: Report) -> pd.DataFrame:
    """One row a difference and statistic: ``difference`` of each seed, then ``mean``, ``low``, ``high`` and ``n``."""

    def rows() -> Iterator[tuple[object, ...]]:
        for one in report.differences:
            asked = one.contrast
            head = (asked.name, asked.asks, asked.a, asked.b, one.row.backbone, one.benchmark, one.measure)
            yield from ((*head, "difference", seed, value) for seed, value in one.seeds.items())
            yield (*head, "mean", "", one.mean)
            if one.reach is not None:
                yield (*head, "low", "", one.mean - one.reach)
                yield (*head, "high", "", one.mean + one.reach)
            yield (*head, "n", "", float(len(one.seeds)))

    head = ["contrast", "asks", "a", "b", "backbone", "benchmark", "measure", "statistic", "seed", "value"]
    return pd.DataFrame(rows(), columns=head)


def curves(report: Report) -> pd.DataFrame:
    """One row a benchmark, method, backbone, seed, update and measure, with the names and units of the training log."""
    rows = [
        (benchmark, *row, seed, update, measure, value)
        for benchmark, column in report.columns.items()
        for row, logs in column.trained.items()
        for seed, log in logs.items()
        for measure in filter(is_curve, log.columns)
        for update, value in log[measure].dropna().items()
    ]
    return pd.DataFrame(rows, columns=["benchmark", "method", "backbone", "seed", "update", "measure", "value"])


def picture(report: Report) -> Figure:
    """The training curves; where nothing was trained, without panels. Its numbers are :func:`curves`."""
    logs = {key: column.trained for key, column in report.columns.items()}
    titles = {key: column.title for key, column in report.columns.items()}
    return Figure(
        label="training-curves",
        caption=training_curves.CAPTION if any(logs.values()) else "Nothing was trained in the finished cells.",
        simulated=report.cells[0].run.simulated,
        draw=functools.partial(training_curves.draw, logs, titles, report.titles),
        inches=training_curves.inches(logs),
        provenance={"preset": report.cells[0].run.preset, "run": short(table_run_id(report.cells))},
        frame=pd.DataFrame(),
    )

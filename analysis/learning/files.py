"""The study of learning as files: a report to read, a picture, and three tables to compute with."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from analysis.learning import figure
from analysis.learning.curves import is_curve, trained
from analysis.learning.markdown import render
from analysis.learning.report import Report
from analysis.learning.results import Learned, Row
from analysis.provenance import SIMULATED, table_run_id
from analysis.results import Cell
from harness.files import write_atomically

_VALUES = ("benchmark", "method", "backbone", "seed", "measure", "value")
_CONTRASTS = ("contrast", "asks", "a", "b", "backbone", "benchmark", "measure", "statistic", "seed", "value")
_CURVES = ("benchmark", "method", "backbone", "seed", "update", "measure", "value")
_AS_LOGGED = "as logged in training: accuracy is a fraction, utility in the unit of the method"


def write(report: Report, folder: Path) -> list[Path]:
    """Write ``learning.md``, two CSV files beside it, and ``learning_curves`` as csv, png, pdf and svg.

    Returns:
        The files written.
    """
    contents: dict[str, bytes | str] = {
        "learning.md": render(report),
        "learning.csv": _csv(report.cells, _VALUES, values(report)),
        "learning_contrasts.csv": _csv(report.cells, _CONTRASTS, contrasts(report)),
        "learning_curves.csv": _csv(report.cells, _CURVES, curves(report), _AS_LOGGED),
        **{f"learning_curves.{ending}": content for ending, content in figure.files(report).items()},
    }
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [folder / name for name in contents]


def values(report: Report) -> Iterator[tuple[object, ...]]:
    """One row a benchmark, method, backbone, seed and measure.

    Shares are in percent, utility in points, own utility in the unit of the method, costs in the paper's unit,
    entropies in nats. A method that routes stands under the backbone ``pool``; the rows of its measure
    ``backbone_share`` name one each. A single backbone has no seed. A measure that does not apply has no row;
    ``collapse`` is ``inf`` where the choice never settled.
    """
    for benchmark, column in report.columns.items():
        for row, seeds in column.learned.items():
            for seed, one in seeds.items():
                yield from ((benchmark, row.method, *rest) for rest in _of_seed(row, seed, one))
        for backbone, single in column.singles.items():
            yield from ((benchmark, report.study.single, backbone, "", key, value) for key, value in single.items())


def contrasts(report: Report) -> Iterator[tuple[object, ...]]:
    """One row a difference and statistic: ``difference`` of each seed, then ``mean``, ``low``, ``high`` and ``n``."""
    for one in report.differences:
        asked = one.contrast
        head = (asked.name, asked.asks, asked.a, asked.b, one.row.backbone, one.benchmark, one.measure)
        yield from ((*head, "difference", seed, value) for seed, value in one.seeds.items())
        yield (*head, "mean", "", one.mean)
        if one.reach is not None:
            yield (*head, "low", "", one.mean - one.reach)
            yield (*head, "high", "", one.mean + one.reach)
        yield (*head, "n", "", len(one.seeds))


def curves(report: Report) -> Iterator[tuple[object, ...]]:
    """One row a benchmark, method, backbone, seed, update and measure, with the names and units of the training log."""
    for benchmark, column in report.columns.items():
        for row, logs in trained(column).items():
            for seed, log in logs.items():
                for measure in filter(is_curve, log.columns):
                    found = log[measure].dropna()
                    yield from ((benchmark, *row, seed, update, measure, value) for update, value in found.items())


def _of_seed(row: Row, seed: int, one: Learned) -> Iterator[tuple[object, ...]]:
    yield from ((row.backbone, seed, key, value) for key, value in one.values.items())
    yield from ((backbone, seed, "backbone_share", share) for backbone, share in one.backbones.items())


def _csv(
    cells: Sequence[Cell], head: Sequence[str], rows: Iterable[Sequence[object]], remark: str | None = None
) -> str:
    """Comment lines that say what the numbers are and which run they come from, then the table."""
    warning = [SIMULATED] if cells[0].run.simulated else []
    comments = [*warning, *([remark] if remark else []), f"run {table_run_id(cells)}"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([f"{value:.10g}" if isinstance(value, float) else value for value in row] for row in rows)
    return "".join(f"# {comment}\n" for comment in comments) + text.getvalue()

"""The study of learning as files: a report to read, and two tables to compute with."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.config import POOL
from harness.files import write_atomically
from paper.learning.markdown import render
from paper.learning.report import Report
from paper.learning.results import Learned
from paper.provenance import table_run_id
from paper.results import Cell
from paper.tables import SIMULATED

_VALUES = ("benchmark", "method", "backbone", "seed", "measure", "value")
_CONTRASTS = ("contrast", "asks", "a", "b", "benchmark", "measure", "statistic", "seed", "value")


def write(report: Report, folder: Path) -> list[Path]:
    """Write ``learning.md``, ``learning.csv`` and ``learning_contrasts.csv``.

    Returns:
        The files written.
    """
    texts = {
        folder / "learning.md": render(report),
        folder / "learning.csv": _csv(report.cells, _VALUES, values(report)),
        folder / "learning_contrasts.csv": _csv(report.cells, _CONTRASTS, contrasts(report)),
    }
    for path, text in texts.items():
        write_atomically(path, text)
    return list(texts)


def values(report: Report) -> Iterator[tuple[object, ...]]:
    """One row a benchmark, method, backbone, seed and measure.

    Shares are in percent, utility in points, costs in the paper's unit, entropies in nats. A learned method stands
    under the backbone ``pool``; the rows of its measure ``backbone_share`` name one each. A single backbone has no
    seed. A measure that does not apply has no row; ``collapse`` is ``inf`` where the choice never settled.
    """
    for benchmark, column in report.columns.items():
        for method, seeds in column.learned.items():
            for seed, one in seeds.items():
                yield from ((benchmark, method, *rest) for rest in _of_seed(seed, one))
        for backbone, single in column.singles.items():
            yield from ((benchmark, report.study.single, backbone, "", key, value) for key, value in single.items())


def contrasts(report: Report) -> Iterator[tuple[object, ...]]:
    """One row a difference and statistic: ``difference`` of each seed, then ``mean``, ``low``, ``high`` and ``n``."""
    for one in report.differences:
        asked = one.contrast
        head = (asked.name, asked.asks, asked.a, asked.b, one.benchmark, one.measure)
        yield from ((*head, "difference", seed, value) for seed, value in one.seeds.items())
        yield (*head, "mean", "", one.mean)
        if one.reach is not None:
            yield (*head, "low", "", one.mean - one.reach)
            yield (*head, "high", "", one.mean + one.reach)
        yield (*head, "n", "", len(one.seeds))


def _of_seed(seed: int, one: Learned) -> Iterator[tuple[object, ...]]:
    yield from ((POOL, seed, key, value) for key, value in one.values.items())
    yield from ((backbone, seed, "backbone_share", share) for backbone, share in one.backbones.items())


def _csv(cells: Sequence[Cell], head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Comment lines that say what the numbers are and which run they come from, then the table."""
    warning = f"# {SIMULATED}\n" if cells[0].run.simulated else ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([f"{value:.10g}" if isinstance(value, float) else value for value in row] for row in rows)
    return f"{warning}# run {table_run_id(cells)}\n{text.getvalue()}"

"""The rows and columns of the main table, and the two numbers that belong into each place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from analysis.measures import Key, Measurement, measure
from analysis.published import Published, PublishedRow
from analysis.results import Cell
from analysis.statistics import Estimate, macro_average


@dataclass(frozen=True, slots=True)
class Line:
    """One row: a method with a backbone, printed in the paper or not.

    Attributes:
        family: Rows of one family stand together.
        flags: Whether the method is multi-agent and whether it routes; empty where the paper says nothing.
        published: The row of the paper, ``None`` for a method or backbone the paper does not report.
    """

    method: str
    backbone: str
    method_title: str
    backbone_title: str
    family: str
    flags: tuple[bool, ...]
    published: PublishedRow | None

    @property
    def name(self) -> str:
        """How a footnote calls the row."""
        return f"{self.method_title} ({self.backbone_title})"


@dataclass(frozen=True, slots=True)
class Grid:
    """Everything the parts of the main table are made from.

    Attributes:
        cells: The cells of the run, in a fixed order.
        lines: All published rows in their order, then rows only this run has.
        benchmarks: Key and title of the columns: the benchmarks of the run, in the paper's order.
    """

    published: Published
    cells: tuple[Cell, ...]
    measurements: Mapping[Key, Measurement]
    lines: tuple[Line, ...]
    benchmarks: Mapping[str, str]

    @property
    def has_average(self) -> bool:
        """Whether the run touches every benchmark that the published average is over."""
        return set(self.published.benchmarks) <= set(self.benchmarks)

    def at(self, line: Line, benchmark: str) -> Measurement | None:
        """What was measured, ``None`` where nothing was run."""
        return self.measurements.get(Key(line.method, line.backbone, benchmark))

    def row(self, line: Line) -> list[Measurement]:
        """What was measured on the paper's benchmarks."""
        row = [self.at(line, benchmark) for benchmark in self.published.benchmarks]
        return [measurement for measurement in row if measurement is not None]

    def has_equal_seeds(self, line: Line) -> bool:
        """Whether every benchmark of the row that the average is over was run with the same seeds."""
        return len({measurement.seeds for measurement in self.row(line)}) <= 1

    def average(self, line: Line) -> Estimate | None:
        """The measured average over the paper's benchmarks.

        ``None`` unless all of them were run, and with the same seeds: an average that weighs a training on one
        benchmark more than on another is of no method.
        """
        row = self.row(line)
        if len(row) < len(self.published.benchmarks) or not self.has_equal_seeds(line):
            return None
        return macro_average([measurement.accuracy for measurement in row])

    def average_of_seed_0(self, line: Line) -> float | None:
        """The same of seed 0 alone, where it was run on all of them."""
        found = [measurement.seed_0 for measurement in self.row(line) if measurement.seed_0 is not None]
        return fmean(found) if len(found) == len(self.published.benchmarks) else None

    def is_calibrated(self, line: Line) -> bool:
        """Whether any number of the row was fitted to the paper, so that its average was, too."""
        return any(measurement.calibrated for measurement in self.row(line))


def build_grid(cells: Sequence[Cell], published: Published) -> Grid:
    """Lay out comparable cells beside the published numbers."""
    measurements = measure(cells)
    titles = {cell.run.benchmark: cell.run.benchmark_title for cell in cells}
    keys = [key for key in published.benchmarks if key in titles]
    keys += sorted(set(titles) - set(keys))
    return Grid(
        published=published,
        cells=tuple(cells),
        measurements=measurements,
        lines=tuple(_lines(published, measurements, {cell.run.method: cell.run.method_title for cell in cells})),
        benchmarks={key: titles[key] for key in keys},
    )


def _lines(published: Published, measurements: Mapping[Key, Measurement], titles: Mapping[str, str]) -> list[Line]:
    rows: dict[tuple[str, str], PublishedRow] = {(row.method, row.backbone): row for row in published.rows}
    extra = sorted({(key.method, key.backbone) for key in measurements} - set(rows))
    return [_line(published, *pair, row, titles) for pair, row in rows.items()] + [
        _line(published, *pair, None, titles) for pair in extra
    ]


def _line(
    published: Published, method: str, backbone: str, row: PublishedRow | None, titles: Mapping[str, str]
) -> Line:
    known = published.methods.get(method)
    return Line(
        method=method,
        backbone=backbone,
        method_title=known.title if known else titles[method],
        backbone_title=published.backbones.get(backbone, backbone),
        family=known.family if known and row else "not in the paper",
        flags=(known.multi_agent, known.routing) if known else (),
        published=row,
    )

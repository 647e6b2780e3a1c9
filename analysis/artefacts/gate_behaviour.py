"""What the gates do on the test questions: depth, write rate, retrieved fraction by step, empty memories."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from analysis import tables, traces
from analysis.grid import Grid, build_grid
from analysis.learning.fields import number
from analysis.learning.measures import Measure
from analysis.measures import Measurement
from analysis.notes import conditions, protocol
from analysis.provenance import provenance
from analysis.published import Published, load
from analysis.ratios import Ratio, estimates
from analysis.source import Source
from analysis.statistics import Estimate
from analysis.tables import Entry, Group, Row, Table
from analysis.tidy import exact, identity

_COLUMNS = ("Publ.", "Meas.", "Cases")
_TABLE = "gate_behaviour"
_WHOLE = "Trajectories"
_POOLED, _EACH = "Retrieved of stored, pooled", "Retrieved of stored, mean of cases"


@dataclass(frozen=True, slots=True)
class _Line:
    """One row.

    Attributes:
        name: Of the ratio (:func:`analysis.traces.ratios`).
        section: Rows of one section stand together.
        measure: How it is printed.
        published: The measure of the paper that belongs beside it.
        printed_digits: With how many decimals the paper prints it.
    """

    name: str
    section: str
    measure: Measure
    published: str
    printed_digits: int


_LINES = (
    _Line("depth", _WHOLE, Measure("mean depth", 2), "depth", 2),
    _Line("write_rate", _WHOLE, Measure("steps written (%)", 1, 100), "write_rate", 1),
    _Line("empty_memory", _WHOLE, Measure("nothing stored at the end (%)", 1, 100), "empty_memory", 1),
    *(
        _Line(f"{name}_{k}", section, Measure(f"step {k} (%)", 1, 100), f"retrieved_{k}", 0)
        for section, name in ((_POOLED, "retrieved"), (_EACH, "retrieved_mean"))
        for k in traces.STEPS
    ),
)
_LEGEND = (
    "Publ.: printed in the paper. Meas.: this run; beside it measured minus published, below it the 95 % interval of a "
    "bootstrap over the questions, with several seeds over questions and seeds. Cases: trajectories with a part in the "
    "value, mean over the seeds."
)
_STEPS = (
    "Steps are counted from 0, as in the paper; at step 0 nothing is stored. A case of step k is a trajectory that "
    "reaches it with at least one record stored."
)
_AVERAGES = (
    "Pooled: records retrieved in all cases over records stored in all cases. Mean of cases: the same ratio case by "
    "case, then their mean. The paper's wording fits both, so both stand beside its numbers."
)
_BLANKS = (
    f"{tables.NOT_RUN}: no case, so the gate had nothing to decide; a seed without a case has no part in a mean. A "
    "blank published column: the paper prints no such value."
)


@dataclass(frozen=True, slots=True)
class _Column:
    """The full method on one benchmark: its ratios by seed, and what they amount to."""

    title: str
    measurement: Measurement
    seeds: Sequence[Mapping[str, Ratio]]
    found: Mapping[str, Estimate]

    def published(self, printed: Published, line: _Line) -> float | None:
        """What the paper prints, in the unit of the table."""
        run = self.measurement.cells[0].run
        return printed.at(_TABLE, run.method, run.benchmark, line.published)

    def cases(self, line: _Line) -> float:
        """Trajectories behind a value, mean over the seeds."""
        return fmean(seed[line.name].cases if line.name in seed else 0 for seed in self.seeds)


def build(source: Source) -> Table:
    """Build the table: a row a measure, a group of columns a benchmark.

    Raises:
        UserError: A cell cannot be read, its decisions are damaged, or it does not go with the others, being of
            another preset or another method.
    """
    grid = build_grid(source.read(), load())
    columns = _columns(grid)
    return Table(
        label="gate-behaviour",
        caption=f"What the gates of GMR do on the test questions.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=("", "Measure"),
        groups=tuple(Group(one.title, f"n = {one.measurement.n}", _COLUMNS) for one in columns),
        rows=tuple(_row(grid.published, columns, line) for line in _LINES),
        notes=(_LEGEND, _STEPS, _AVERAGES, _BLANKS, *protocol(grid)),
        provenance=provenance(grid.cells),
        records=tuple(_record(grid.published, one, line) for one in columns for line in _LINES),
    )


def _columns(grid: Grid) -> list[_Column]:
    found = []
    for benchmark, measurement in traces.by_benchmark(grid).items():
        seeds = [traces.ratios(traces.read(cell)) for cell in measurement.cells]
        found.append(_Column(grid.benchmarks[benchmark], measurement, seeds, estimates(seeds)))
    return found


def _row(printed: Published, columns: Sequence[_Column], line: _Line) -> Row:
    entries = [entry for column in columns for entry in _entries(printed, column, line)]
    return Row(line.section, (line.section, line.measure.title), tuple(entries))


def _entries(printed: Published, column: _Column, line: _Line) -> tuple[Entry, Entry, Entry]:
    published, found = column.published(printed, line), column.found.get(line.name)
    beside = Entry("" if published is None else f"{published:.{line.printed_digits}f}")
    if found is None:
        return beside, Entry(tables.NOT_RUN), Entry("0")
    return beside, _measured(column, line, found, published), Entry(f"{round(column.cases(line), 1):g}")


def _measured(column: _Column, line: _Line, found: Estimate, published: float | None) -> Entry:
    unit = Measure("", line.measure.digits)
    value = round(line.measure.factor * found.mean, line.measure.digits)
    return Entry(
        text=number(found.mean, line.measure),
        beside="" if published is None else number(value - published, unit, "+"),
        below=f"{number(found.low, line.measure)}–{number(found.high, line.measure)}{_seed_0(column, line)}",
    )


def _seed_0(column: _Column, line: _Line) -> str:
    """The first training alone, where there are several: the paper has one."""
    if len(column.seeds) == 1 or 0 not in column.measurement.seeds:
        return ""
    first = column.seeds[column.measurement.seeds.index(0)].get(line.name)
    return f"; seed 0: {number(first.value, line.measure) if first else tables.NOT_RUN}"


def _record(printed: Published, column: _Column, line: _Line) -> dict[str, str]:
    """Rates and fractions in percent, as in the table; a seed without a case is ``nan``."""
    run, found = column.measurement.cells[0].run, column.found.get(line.name)
    published = column.published(printed, line)
    by_seed = [seed[line.name].value if line.name in seed else math.nan for seed in column.seeds]
    values = found[:3] if found else ()
    factor = line.measure.factor
    return {
        "method": run.method,
        "benchmark": run.benchmark,
        "measure": line.name,
        "published": "" if published is None else exact(published),
        **dict.fromkeys(("measured", "low", "high"), ""),
        **{key: exact(factor * value) for key, value in zip(("measured", "low", "high"), values, strict=False)},
        "by_seed": " ".join(exact(factor * value) for value in by_seed),
        "cases": exact(column.cases(line)),
        **identity(column.measurement),
    }

"""What halting saves in training: depth and executed steps of the rollouts, with and without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from analysis import tables, traces
from analysis.grid import Grid, build_grid
from analysis.learning.fields import number
from analysis.learning.measures import Measure
from analysis.measures import Measurement
from analysis.notes import conditions, protocol
from analysis.provenance import provenance
from analysis.published import Published, load
from analysis.source import Source
from analysis.tables import Entry, Group, Row, Table
from analysis.tidy import exact, identity
from analysis.traces import Rollouts
from harness.errors import UserError

HALTING, NONE = "gmr", "gmr_no_halting"
_TABLE = "halting_training"
_TITLES = {HALTING: "Halting (GMR)", NONE: "No halting"}
_RATIO = "No halting / halting"
_MEASURES = {"depth": Measure("depth", 2), "steps": Measure("steps", 1, 1e-3)}
_PRINTED_DIGITS = 1
_TIMES = Measure("times", 2)
_COLUMNS = ("Depth publ.", "Depth meas.", "Steps publ.", "Steps meas.")
_LEGEND = (
    "Publ.: printed in the paper. Meas.: this run; beside it measured minus published, beside steps measured over "
    "published, since the totals follow from the size of the training. Steps in thousands."
)
_SIZES = (
    "Depth: mean over all training rollouts. Steps: executed by all of them, aggregation calls not counted, so depth "
    "times rollouts; rollouts are training questions × epochs × rollouts of a question, as above the columns. The "
    "paper names no number of rollouts: its steps without halting, 6 a rollout, are those of about 320 × 6 rollouts on "
    "HumanEval (32 questions × 10 epochs) and 1330 × 6 on GSM-Hard (266 questions × 5 epochs)."
)
_SEEDS = (
    "A training is one draw: one seed has no interval. Several seeds: their mean, below it their standard deviation "
    "and seed 0."
)


@dataclass(frozen=True, slots=True)
class _Trained:
    """The trainings of one method on one benchmark: depth and steps by seed."""

    measurement: Measurement
    rollouts: Rollouts
    values: Mapping[str, Mapping[int, float]]


@dataclass(frozen=True, slots=True)
class _Column:
    """One benchmark: the trainings there are, by method."""

    benchmark: str
    title: str
    trained: Mapping[str, _Trained]

    @property
    def rollouts(self) -> Rollouts:
        """Those of either method, which had as many."""
        return next(iter(self.trained.values())).rollouts

    def ratios(self, measure: str) -> dict[int, float]:
        """Without halting over with it, of every seed that has both."""
        one, other = (self.trained[key].values[measure] if key in self.trained else {} for key in (NONE, HALTING))
        return {seed: one[seed] / other[seed] for seed in one if seed in other}


def build(source: Source) -> Table:
    """Build the table: with halting, without, and one over the other; a group of columns a benchmark.

    Raises:
        UserError: A cell cannot be read or was not trained, or two trainings to compare had other numbers of rollouts.
    """
    grid = build_grid(source.read(), load())
    columns = [_column(grid, key) for key in grid.benchmarks]
    return Table(
        label="halting-training",
        caption=f"Depth and executed steps of the training rollouts, with and without halting.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=("Training",),
        groups=tuple(Group(one.title, " × ".join(map(str, one.rollouts)), _COLUMNS) for one in columns),
        rows=tuple(_rows(grid.published, columns)),
        notes=(_LEGEND, _SIZES, _SEEDS, f"{tables.NOT_RUN}: not run.", *protocol(grid)),
        provenance=provenance(grid.cells),
        records=tuple(_records(grid.published, columns)),
    )


def _column(grid: Grid, benchmark: str) -> _Column:
    here = {key.method: one for key, one in grid.measurements.items() if key.benchmark == benchmark}
    trained = {method: _trained(here[method]) for method in _TITLES if method in here}
    if len({one.rollouts for one in trained.values()}) > 1:
        sizes = ", ".join(f"{method}: {' × '.join(map(str, one.rollouts))}" for method, one in trained.items())
        raise UserError(
            f"trainings of different size on {benchmark} (questions × epochs × rollouts: {sizes}); expected the same "
            "for both; train one of them again with the questions and epochs of the other"
        )
    return _Column(benchmark, grid.benchmarks[benchmark], trained)


def _trained(measurement: Measurement) -> _Trained:
    sizes = {traces.rollouts(cell) for cell in measurement.cells}
    if len(sizes) > 1:
        raise UserError(
            f"{measurement.cells[0].folder} and its other seeds had trainings of different size; expected the same "
            "questions, epochs and rollouts for every seed; run them again"
        )
    values: dict[str, dict[int, float]] = {measure: {} for measure in _MEASURES}
    for cell in measurement.cells:
        log = traces.updates(cell)
        if log.empty:
            raise UserError(
                f"{cell.folder}: nothing was trained; expected one epoch at least; run it again with epochs"
            )
        values["steps"][cell.run.seed] = float(log["steps"].sum())
        values["depth"][cell.run.seed] = float(log["steps"].sum() / log["trajectories"].sum())
    return _Trained(measurement, sizes.pop(), values)


def _rows(printed: Published, columns: list[_Column]) -> Iterator[Row]:
    for method, title in _TITLES.items():
        entries = [entry for one in columns for measure in _MEASURES for entry in _pair(printed, one, method, measure)]
        yield Row("trainings", (title,), tuple(entries))
    ratios = [entry for one in columns for measure in _MEASURES for entry in _ratio(printed, one, measure)]
    yield Row("ratio", (_RATIO,), tuple(ratios))


def _pair(printed: Published, column: _Column, method: str, measure: str) -> tuple[Entry, Entry]:
    published = printed.at(_TABLE, method, column.benchmark, measure)
    values = column.trained[method].values[measure] if method in column.trained else {}
    unit = _MEASURES[measure]
    return _entries(published, values, unit, Measure("", _PRINTED_DIGITS, unit.factor))


def _ratio(printed: Published, column: _Column, measure: str) -> tuple[Entry, Entry]:
    none, halting = (printed.at(_TABLE, method, column.benchmark, measure) for method in (NONE, HALTING))
    published = None if none is None or halting is None else none / halting
    return _entries(published, column.ratios(measure), _TIMES, _TIMES)


def _entries(
    published: float | None, values: Mapping[int, float], unit: Measure, print_as: Measure
) -> tuple[Entry, Entry]:
    """Published and measured; a ratio of the published numbers is worked out from them."""
    beside = Entry("" if published is None else number(published, print_as))
    if not values:
        return beside, Entry(tables.NOT_RUN)
    mean = fmean(values.values())
    several = len(values) > 1
    first = f"; seed 0: {number(values[0], unit)}" if 0 in values else ""
    return beside, Entry(
        text=number(mean, unit),
        beside="" if published is None else _against(mean, published, unit),
        below=f"sd {number(stdev(values.values()), unit)}{first}" if several else "",
    )


def _against(measured: float, published: float, unit: Measure) -> str:
    """Totals are compared as costs are, by their ratio."""
    if unit is _MEASURES["steps"]:
        return f"×{number(measured / published, _TIMES)}"
    return number(measured - published, unit, "+")


def _records(printed: Published, columns: list[_Column]) -> Iterator[dict[str, str]]:
    """One a method, benchmark and measure; the ratios follow from them."""
    for column in columns:
        for method, trained in column.trained.items():
            for measure, values in trained.values.items():
                published = printed.at(_TABLE, method, column.benchmark, measure)
                yield {
                    "method": method,
                    "benchmark": column.benchmark,
                    "measure": measure,
                    "published": "" if published is None else exact(published),
                    "measured": exact(fmean(values.values())),
                    "by_seed": " ".join(map(exact, values.values())),
                    **{name: str(count) for name, count in trained.rollouts._asdict().items()},
                    **identity(trained.measurement),
                }

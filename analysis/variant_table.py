"""The table of a method and its variants."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from analysis import tables, tidy
from analysis.beside import PAIR, all_calls, costs, of_measurements, totals
from analysis.costs import ALL_CALLS, QUESTIONS
from analysis.grid import Grid, build_grid
from analysis.legend import legend
from analysis.notes import conditions, first_seeds
from analysis.paired import Comparison, compare
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.statistics import Estimate
from analysis.tables import Entry, Group, Row, Table
from analysis.variants import Design, Place, Places, places
from harness.runner.config import POOL

_HEADS = ("Benchmark", "Configuration", "Seeds")
_SMALL_P = 0.001


def build(source: Source, design: Design) -> Table:
    """Build the table; the rows are the methods among the cells, benchmark by benchmark.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    grid = build_grid(source.read(), load())
    titles = {cell.run.method: cell.run.method_title for cell in grid.cells}
    found = places(design, grid)
    return Table(
        label=_label(design, titles),
        caption=f"{design.caption}{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=_HEADS,
        groups=_groups(design, grid, titles),
        rows=tuple(row for key in grid.benchmarks for row in _rows(design, grid, key, found, titles)),
        notes=tuple(_notes(design, grid, found, titles)),
        provenance=provenance(grid.cells),
        records=tidy.even([_record(design, grid, *key, place) for key, place in found.items()]),
    )


def _label(design: Design, titles: Mapping[str, str]) -> str:
    """A table of a single variant may stand in one document with the table of all of them."""
    variants = sorted(set(titles) - {design.reference})
    return "-".join([design.label, *variants]).replace("_", "-") if len(variants) == 1 else design.label


def _groups(design: Design, grid: Grid, titles: Mapping[str, str]) -> tuple[Group, ...]:
    sizes = " or ".join(str(QUESTIONS[key]) for key in grid.benchmarks if key in QUESTIONS)
    reference = titles.get(design.reference, design.reference)
    return (
        Group("Accuracy (%)", "", PAIR),
        Group("Cost of a question (1e-4)", "", (*PAIR, ALL_CALLS)),
        Group("Total cost", f"scaled to n = {sizes}" if sizes else "", PAIR),
        Group(f"Accuracy against {reference}", "points, paired", (*PAIR, "p")),
        Group(f"{design.change_title} {reference}", "paired", PAIR),
    )


def _rows(design: Design, grid: Grid, benchmark: str, found: Places, titles: Mapping[str, str]) -> Iterator[Row]:
    """Those of one benchmark, whose best values are marked among themselves."""
    column = {method: place for (method, key), place in found.items() if key == benchmark}
    measured = [place.measurement for place in column.values()]
    prices = [place.cost for place in column.values()]
    n = next(one.n for one in measured if one)
    parts = (
        of_measurements([place.printed for place in column.values()], measured),
        costs(prices),
        [(entry,) for entry in all_calls(prices)],
        totals(prices),
        [_against(design, place, method == design.reference) for method, place in column.items()],
    )
    for method, one, *entries in zip(column, measured, *parts, strict=True):
        seeds = ", ".join(map(str, one.seeds)) if one else ""
        labels = (f"{grid.benchmarks[benchmark]}, n = {n}", titles[method], seeds)
        yield Row(benchmark, labels, tuple(entry for part in entries for entry in part))


def _against(design: Design, place: Place, is_reference: bool) -> tuple[Entry, ...]:
    printed = (
        Entry("" if place.gain is None else tables.signed(place.gain)),
        Entry("" if place.factor is None else design.change(place.factor)),
    )
    if place.against is None:
        absent = Entry("" if is_reference else tables.NOT_RUN)
        return printed[0], absent, Entry(), printed[1], absent
    gain, ratio = place.against.accuracy, place.against.cost_ratio
    return (
        printed[0],
        Entry(_points(gain.mean), below=f"{_points(gain.low)} to {_points(gain.high)}"),
        Entry(_p(place.against.discordant.p)),
        printed[1],
        _relative(design, ratio),
    )


def _relative(design: Design, ratio: Estimate) -> Entry:
    """Blank where one of both cost nothing; without an interval where the questions leave it open."""
    if not 0 < ratio.mean < math.inf:
        return Entry()
    is_bounded = ratio.low > 0 and ratio.high < math.inf
    interval = f"{design.change(ratio.low)} to {design.change(ratio.high)}" if is_bounded else ""
    return Entry(design.change(ratio.mean), below=interval)


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= _SMALL_P else f"< {_SMALL_P}"


def _points(fraction: float) -> str:
    return tables.signed(100 * fraction)


def _notes(design: Design, grid: Grid, found: Places, titles: Mapping[str, str]) -> Iterator[str]:
    measured = [place.measurement for place in found.values()]
    several = any(one is not None and len(one.seeds) > 1 for one in measured)
    yield from legend(grid, measured, [place.cost for place in found.values()])
    yield (
        f"Against {titles.get(design.reference, design.reference)}: the row minus it on the same questions, with the "
        f"95 % bootstrap interval over questions{' and seeds' if several else ''}; p of the exact McNemar test on "
        f"{first_seeds(grid)}, not adjusted for the number of rows. {design.change_note}"
    )
    yield from _power([place.against for place in found.values() if place.against])
    yield from _seed_notes(design, grid, found, titles)
    yield design.note
    if design.twins:
        yield from _twins(design.twins, grid, found, titles)


def _twins(twins: tuple[str, str], grid: Grid, found: Places, titles: Mapping[str, str]) -> Iterator[str]:
    """How far apart two trainings of one configuration ended, where both were run."""
    parts = []
    for key, title in grid.benchmarks.items():
        own, other = (found.get((method, key)) for method in twins)
        if own and other and own.measurement and other.measurement:
            gain = compare(own.measurement, other.measurement).accuracy
            parts.append(f"{title} {_printed_gain(own, other)}{_interval(gain)}")
    if parts:
        names = " minus ".join(titles[method] for method in twins)
        yield f"{names}, points on the same questions with the same interval: {'; '.join(parts)}."


def _printed_gain(own: Place, other: Place) -> str:
    if own.printed is None or other.printed is None:
        return ""
    return f"published {tables.signed(own.printed - other.printed)}, measured "


def _interval(gain: Estimate) -> str:
    return f"{_points(gain.mean)} ({_points(gain.low)} to {_points(gain.high)})"


def _power(found: Sequence[Comparison]) -> Iterator[str]:
    """What the comparisons could have shown: without it, a large p would read as no difference."""
    smallest = sorted(100 * one.detectable for one in found if one.detectable < 1)
    ends = list(dict.fromkeys(f"{end:.1f}" for end in (smallest[:1] + smallest[-1:])))
    if ends:
        yield (
            f"The smallest difference that so many questions show with 80 % power: {' to '.join(ends)} points, by row "
            "and benchmark (the CSV has each)."
        )
    if len(smallest) < len(found):
        yield (
            f"In {len(found) - len(smallest)} of {len(found)} comparisons too few questions had different verdicts to "
            "show any difference."
        )


def _seed_notes(design: Design, grid: Grid, found: Places, titles: Mapping[str, str]) -> Iterator[str]:
    """A row of one training beside a row of three is no like for like."""
    other = [
        f"{titles[method]} on {grid.benchmarks[benchmark]}"
        for (method, benchmark), place in found.items()
        if _other_seeds(place, found.get((design.reference, benchmark)))
    ]
    if other:
        yield f"Run with other seeds than the row they are compared with: {', '.join(other)}."


def _other_seeds(place: Place, reference: Place | None) -> bool:
    if place.measurement is None or reference is None or reference.measurement is None:
        return False
    return place.measurement.seeds != reference.measurement.seeds


def _record(design: Design, grid: Grid, method: str, benchmark: str, place: Place) -> dict[str, str]:
    return {
        "method": method,
        "backbone": POOL,
        "benchmark": benchmark,
        "benchmark_title": grid.benchmarks[benchmark],
        "reference": design.reference,
        "published_gain": "" if place.gain is None else tidy.exact(round(place.gain, 2)),
        "published_cost_factor": "" if place.factor is None else tidy.exact(place.factor),
        **tidy.place(place.printed, place.measurement, place.cost),
        **({} if place.against is None else _comparison(place.against)),
    }


def _comparison(found: Comparison) -> dict[str, str]:
    values = {
        "gain": 100 * found.accuracy.mean,
        "gain_low": 100 * found.accuracy.low,
        "gain_high": 100 * found.accuracy.high,
        "p": found.discordant.p,
        "odds_ratio": found.discordant.odds_ratio,
        "cohens_g": found.discordant.cohens_g,
        "detectable": 100 * found.detectable,
        "cost_factor": found.cost_ratio.mean,
        "cost_factor_low": found.cost_ratio.low,
        "cost_factor_high": found.cost_ratio.high,
    }
    counts = {"only_this": str(found.discordant.first), "only_reference": str(found.discordant.second)}
    return counts | {name: tidy.exact(value) for name, value in values.items()}

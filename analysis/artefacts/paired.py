"""GMR against every other row of the main table, question by question: accuracy, cost, and what could be shown."""

from __future__ import annotations

import math
from collections.abc import Iterator

from analysis import tables
from analysis.against import Against, Pair
from analysis.costs import COUNTED
from analysis.grid import Line, build_grid
from analysis.notes import conditions, first_seeds, seeds
from analysis.paired import ALPHA
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.statistics import Estimate
from analysis.tables import Entry, Group, Mark, Row, Table

REFERENCE = "gmr"
_HEADS = ("Against", "LLM")
_ACCURACY = ("Publ.", "Diff.", "p")
_COST = "Cost ×"
_WHOLE = "All calls ×"
_AVERAGE = Group("Avg.", "", ("Publ.", "Diff."))


def build(source: Source) -> Table:
    """Build the table; its rows are those of the main table but the reference.

    Raises:
        UserError: When a cell cannot be read, the cells do not belong in one table, or there is no such reference.
    """
    against = Against.of(build_grid(source.read(), load()), source.options.get("reference", REFERENCE))
    grid = against.grid
    return Table(
        label="paired",
        caption=f"{against.reference.name} against every other row, on the same questions.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=_HEADS,
        groups=(*(_group(against, key) for key in grid.benchmarks), *([_AVERAGE] if grid.has_average else [])),
        rows=tuple(_row(against, line) for line in against.lines),
        notes=tuple(_notes(against)),
        provenance=provenance(grid.cells),
        records=against.records(),
    )


def _group(against: Against, benchmark: str) -> Group:
    grid = against.grid
    n = next(measured.n for key, measured in grid.measurements.items() if key.benchmark == benchmark)
    costs = ("Publ.", _COST) if benchmark in grid.published.costs else (_COST,)
    return Group(grid.benchmarks[benchmark], f"n = {n}", (*_ACCURACY, *costs, _WHOLE))


def _row(against: Against, line: Line) -> Row:
    entries: list[Entry] = []
    for key in against.grid.benchmarks:
        printed = against.published_difference(line, key)
        difference, p, *ratios = _measured(against.at(line, key))
        entries += [Entry("" if printed is None else tables.signed(printed)), difference, p]
        if key in against.grid.published.costs:
            entries.append(Entry(_ratio(against.published_ratio(line, key))))
        entries += ratios
    if against.grid.has_average:
        entries += _average(against, line)
    return Row(line.family, (line.method_title, line.backbone_title), tuple(entries))


def _average(against: Against, line: Line) -> tuple[Entry, Entry]:
    printed, found = against.published_average(line), against.average(line)
    left = Entry("" if printed is None else tables.signed(printed))
    if found is None:
        return left, Entry(tables.NOT_RUN)
    return left, _difference(found, tables.DAGGER if against.is_calibrated(line) else "")


def _difference(gain: Estimate, sign: str) -> Entry:
    return Entry(tables.signed(100 * gain.mean), sign=sign, below=f"{_points(gain.low)}, {_points(gain.high)}")


def _measured(pair: Pair | None) -> tuple[Entry, ...]:
    """Difference, p and both ratios of costs; p is of the first seeds alone, so it and not the difference is marked."""
    if pair is None:
        return (Entry(tables.NOT_RUN),) * 4
    gain = pair.found.accuracy
    sign = tables.DAGGER if pair.calibrated else ""
    clear = Mark.BEST if pair.p < ALPHA else Mark.NONE
    return (
        _difference(gain, sign),
        Entry(_probability(pair.p), clear, below=_probability(pair.found.discordant.p)),
        *(
            Entry(_ratio(ratio.mean), sign=sign, below=f"{_ratio(ratio.low)}–{_ratio(ratio.high)}")
            for ratio in (pair.found.cost_ratio, pair.found.cost_ratio_all_calls)
        ),
    )


def _points(fraction: float) -> str:
    """An end of an interval, with one decimal less than the difference itself."""
    text = f"{100 * fraction:+.1f}"
    return text.replace("-", "−") if float(text) else "0.0"


def _ratio(value: float | None) -> str:
    """Two digits at least, whatever the order of magnitude."""
    if value is None or math.isnan(value):
        return ""
    return f"{value:.{1 if value >= 10 else 2 if value >= 0.1 else 3}f}"


def _probability(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _notes(against: Against) -> Iterator[str]:
    """Legend first; what was not run or fitted is explained where it occurs."""
    name, grid = against.reference.name, against.grid
    found = [against.at(line, key) for line in against.lines for key in grid.benchmarks]
    several = any(len(measured.seeds) > 1 for measured in grid.measurements.values())
    yield (
        f"Diff.: accuracy of {name} minus that of the row in points, below it the 95 % interval (bootstrap over "
        f"questions{' and, of rows with several, over seeds' if several else ''}"
        f"{'; of the average normal, as their variances add' if grid.has_average else ''})."
    )
    yield (
        f"p: exact McNemar test on {first_seeds(grid)} (the CSV has the difference there), adjusted after Holm over "
        f"the benchmarks of a row, below it unadjusted; under {ALPHA} it is bold."
    )
    yield (
        f"{_COST}: cost of a question over that of the row, below it the 95 % interval (the same bootstrap). {COUNTED}"
    )
    yield "Publ.: the same of the values that the paper prints, costs by question."
    yield from _power(against)
    if None in found:
        yield f"{tables.NOT_RUN}: not both were run."
    if any(pair is not None and pair.calibrated for pair in found):
        yield (
            f"{tables.DAGGER}: the simulation fitted one side to its published accuracy and cost, so only the other is "
            "a result of it."
        )
    yield from seeds(grid)


def _power(against: Against) -> Iterator[str]:
    """A range by benchmark is enough for a footnote; the tidy file has every row."""
    found = {title: _detectable(against, key) for key, title in against.grid.benchmarks.items()}
    ranges = [f"{title} {_range(points)}" for title, points in found.items() if points]
    if ranges:
        yield (
            "Smallest true difference, in points, that these questions show with 80 % power at an unadjusted 5 %, by "
            f"row (the CSV has each): {'; '.join(ranges)}."
        )


def _detectable(against: Against, benchmark: str) -> list[float]:
    pairs = [against.at(line, benchmark) for line in against.lines]
    return [100 * pair.found.detectable for pair in pairs if pair is not None]


def _range(points: list[float]) -> str:
    """Where both methods agree on all but a few questions, not even all of these on one side would do."""
    finite = [one for one in points if math.isfinite(one)]
    few = f"none at all for {len(points) - len(finite)} of {len(points)} rows"
    ends = f"{min(finite):.1f}–{max(finite):.1f}" if finite else ""
    return ", ".join(part for part in (ends, few if len(finite) < len(points) else "") if part)

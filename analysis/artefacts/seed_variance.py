"""Mean and deviation of the accuracy over training seeds, beside the paper's (Variance across Training Seeds)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analysis import tables, tidy
from analysis.beside import PAIR, accuracies
from analysis.grid import Grid, build_grid
from analysis.notes import conditions, protocol
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.spread import OVERALL, TABLE, Line, Spread, has_printed, lines, spreads
from analysis.tables import Entry, Group, Row, Table

# The benchmarks in the order of the paper's table, which is not that of its main table.
_ORDER = ("gsm_hard", "math", "mbpp", "humaneval", "mmlu_pro")
_HEADS = ("Method", "LLM", "")

Spreads = Mapping[Line, Mapping[str, Spread]]


def build(source: Source) -> Table:
    """Build the table: a row of means and deviations for each method, and below it a row a seed.

    Raises:
        UserError: A seed is missing on one benchmark of a method, a cell cannot be read, or the cells do not belong in
            one table.
    """
    grid = build_grid(source.read(), load())
    found = {line: spreads(grid, line) for line in lines(grid)}
    columns = [key for key in (*_ORDER, *sorted(set(grid.benchmarks) - set(_ORDER))) if key in grid.benchmarks]
    columns += [OVERALL] if grid.has_average else []
    return Table(
        label="seed-variance",
        caption=f"Mean and sample standard deviation of the accuracy (%) over training seeds.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=_HEADS,
        groups=tuple(_group(grid, key) for key in columns),
        rows=tuple(_rows(grid, found, columns)),
        notes=tuple(_notes(grid, found)),
        provenance=provenance(grid.cells),
        records=tidy.even([_record(line, key, of[key]) for line, of in found.items() for key in columns if key in of]),
    )


def _group(grid: Grid, benchmark: str) -> Group:
    if benchmark == OVERALL:
        return Group("Overall", "", PAIR)
    n = next(measured.n for key, measured in grid.measurements.items() if key.benchmark == benchmark)
    return Group(grid.benchmarks[benchmark], f"n = {n}", PAIR)


def _rows(grid: Grid, found: Spreads, columns: Sequence[str]) -> Iterator[Row]:
    """Mean, deviation, and each seed where there are several."""
    means = [_column([of.get(key) for of in found.values()]) for key in columns]
    for (line, of), *places in zip(found.items(), *means, strict=True):
        method, backbone = _titles(grid, line)
        deviations = [_deviations(of.get(key)) for key in columns]
        yield Row(line[0], (method, backbone, "mean"), tuple(entry for pair in places for entry in pair))
        yield Row(line[0], (method, "", "sd"), tuple(entry for pair in deviations for entry in pair))
        seeds = next(iter(of.values())).seeds
        for place, seed in enumerate(seeds if len(seeds) > 1 else ()):
            values = [f"{of[key].by_seed[place]:.2f}" if key in of else "" for key in columns]
            yield Row(line[0], (method, "", f"seed {seed}"), tuple(Entry(text) for one in values for text in ("", one)))


def _titles(grid: Grid, line: Line) -> tuple[str, str]:
    method, backbone = line
    titles = {one.method: one.method_title for one in grid.lines}
    return titles[method], grid.published.backbones.get(backbone, backbone)


def _column(found: Sequence[Spread | None]) -> list[tuple[Entry, Entry]]:
    """The means of one column, as any other accuracies."""
    return accuracies(
        [one.printed[0] if one and one.printed else None for one in found],
        [one.estimate if one else None for one in found],
        [one is not None and one.of.calibrated for one in found],
    )


def _deviations(found: Spread | None) -> tuple[Entry, Entry]:
    if found is None:
        return Entry(), Entry(tables.NOT_RUN)
    printed = found.printed[1] if found.printed else None
    if found.deviation is None:
        return Entry("" if printed is None else f"{printed:.2f}"), Entry(tables.NOT_RUN)
    beside = "" if printed is None else tables.difference(round(found.deviation, 2), printed)
    return Entry("" if printed is None else f"{printed:.2f}"), Entry(f"{found.deviation:.2f}", beside=beside)


def _notes(grid: Grid, found: Spreads) -> Iterator[str]:
    yield (
        "Publ.: printed in the paper, over three seeds. Meas.: this run, beside it measured minus published in points, "
        "below a mean its 95 % interval (over questions and seeds; Wilson for one seed; Overall: normal); sd: the "
        "sample standard deviation over the seeds."
    )
    yield "Overall: the mean of the five benchmarks, seed by seed; then mean and deviation over the seeds."
    yield "Bold is the best mean of a column and underlined the second best; equal values share a mark."
    counts = {len(one.by_seed) for of in found.values() for one in of.values()}
    if 1 in counts:
        yield f"sd {tables.NOT_RUN}: a single training has no deviation."
    if len(counts) > 1:
        yield "The methods were trained with different numbers of seeds, so their deviations are not alike."
    if any(set(of) != set(found[next(iter(found))]) for of in found.values()):
        yield f"{tables.NOT_RUN}: not run."
    yield from _extremes(grid, found)
    yield from protocol(grid)


def _extremes(grid: Grid, found: Spreads) -> Iterator[str]:
    """The paper also names the lowest or highest training of a method."""
    told = [
        f"{grid.published.methods[line[0]].title} {name} {value:.2f}"
        for line in found
        for name in ("lowest", "highest")
        if has_printed(line) and (value := grid.published.at(TABLE, line[0], OVERALL, name)) is not None
    ]
    if told:
        yield f"Single trainings that the paper names, Overall: {', '.join(told)}."


def _record(line: Line, benchmark: str, found: Spread) -> dict[str, str]:
    mean, deviation = found.printed or (None, None)
    return {
        "method": line[0],
        "backbone": line[1],
        "benchmark": benchmark,
        "published_mean": "" if mean is None else f"{mean:.2f}",
        "published_sd": "" if deviation is None else f"{deviation:.2f}",
        "mean": tidy.exact(found.mean),
        "sd": "" if found.deviation is None else tidy.exact(found.deviation),
        "by_seed": " ".join(tidy.exact(value) for value in found.by_seed),
        "n": str(found.n),
        "low": tidy.in_percent(found.estimate.low),
        "high": tidy.in_percent(found.estimate.high),
        "difference": "" if mean is None or found.of.calibrated else tidy.plain(tables.difference(found.mean, mean)),
        "calibrated": str(found.of.calibrated).lower(),
        **tidy.identity(found.of),
        "seeds": " ".join(map(str, found.seeds)),
    }

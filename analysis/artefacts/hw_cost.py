"""Compute and time of a question: FLOPs from the tokens of its calls, seconds from timing jobs.

Paper, Cost Calculation for Open-Weight Backbones; D-REPORT-3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis import flops, tables
from analysis.grid import Grid, Line, build_grid
from analysis.measures import Key, Measurement
from analysis.notes import conditions, protocol
from analysis.provenance import provenance
from analysis.published import load
from analysis.source import Source
from analysis.statistics import Estimate
from analysis.tables import Entry, Group, Row, Table
from analysis.tidy import even, exact, identity
from analysis.timings import Timing, read_timings

_TABLE = "hw_cost"
# The rows the paper prints, in its order.
_ROWS = (("gmr", "pool"), ("masrouter", "pool"), ("puppeteer", "qwen-2.5-32B"))
_MODELLED, _MEASURED = "modelled", "measured"


@dataclass(frozen=True, slots=True)
class _Compute:
    """PFLOPs of a question.

    Attributes:
        measurement: Of which cells.
        mean: Over all seeds.
        seed_0: Of that seed alone, where it is one of several.
    """

    measurement: Measurement
    mean: Estimate
    seed_0: float | None


@dataclass(frozen=True, slots=True)
class _Place:
    """One method on one benchmark; ``None`` where the paper prints nothing, nothing was run, or nothing was timed."""

    printed_pflops: float | None
    printed_seconds: float | None
    compute: _Compute | None
    timing: Timing | None


def build(source: Source) -> Table:
    """Build the table: the published rows, then others among the cells; two groups of columns a benchmark.

    Raises:
        UserError: A cell or timing cannot be read, or they do not belong in one table.
    """
    grid = build_grid(source.read(), load())
    timings = read_timings(source.timings, grid.cells)
    places = {Key(*row, key): _place(grid, Key(*row, key), timings) for row in _rows(grid) for key in _columns(grid)}
    kind = _MODELLED if grid.cells[0].run.simulated else _MEASURED
    return Table(
        label="hw-cost",
        caption=f"FLOPs and {kind} wall-clock time of a test question.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=("Method", "LLM"),
        groups=tuple(group for key in _columns(grid) for group in _groups(grid, key, kind)),
        rows=tuple(_row(line, [places[Key(*row, key)] for key in _columns(grid)]) for row, line in _rows(grid).items()),
        notes=tuple(_notes(grid, list(places.values()), list(timings.values()))),
        provenance=provenance(grid.cells),
        records=even([_record(grid, key, place, kind) for key, place in places.items()]),
    )


def _rows(grid: Grid) -> dict[tuple[str, str], Line]:
    known = {(line.method, line.backbone): line for line in grid.lines}
    run = {(key.method, key.backbone) for key in grid.measurements}
    others = [row for row in known if row in run and row not in _ROWS]
    return {row: known[row] for row in (*_ROWS, *others)}


def _columns(grid: Grid) -> list[str]:
    """The benchmarks in the order of the paper's table."""
    printed = grid.published.further[_TABLE][_ROWS[0][0]]
    return [key for key in dict.fromkeys([*printed, *grid.benchmarks]) if key in grid.benchmarks]


def _place(grid: Grid, key: Key, timings: Mapping[Key, Timing]) -> _Place:
    is_printed = (key.method, key.backbone) in _ROWS
    pflops, seconds = (
        grid.published.at(_TABLE, key.method, key.benchmark, measure) if is_printed else None
        for measure in ("pflops", "seconds")
    )
    measurement = grid.measurements.get(key)
    compute = None if measurement is None else _compute(measurement)
    return _Place(pflops, seconds, compute, timings.get(key))


def _compute(measurement: Measurement) -> _Compute:
    first = [cell for cell in measurement.cells if cell.run.seed == 0] if len(measurement.cells) > 1 else []
    seed_0 = float(flops.pflops(first[0]).mean()) if first else None
    return _Compute(measurement, flops.per_query(measurement), seed_0)


def _groups(grid: Grid, benchmark: str, kind: str) -> tuple[Group, Group]:
    title, n = grid.benchmarks[benchmark], next(one.n for key, one in grid.measurements.items() if key[2] == benchmark)
    return (
        Group(f"{title}, PFLOPs", f"n = {n}", ("Publ.", "Meas.")),
        Group(f"{title}, seconds", f"n = {n}, {kind}", ("Publ.", kind.capitalize())),
    )


def _row(line: Line, places: Sequence[_Place]) -> Row:
    entries = [entry for place in places for entry in (*_pflops(place), *_seconds(place))]
    return Row("rows", (line.method_title, line.backbone_title), tuple(entries))


def _pflops(place: _Place) -> tuple[Entry, Entry]:
    printed = Entry("" if place.printed_pflops is None else f"{place.printed_pflops:.3f}")
    if place.compute is None:
        return printed, Entry(tables.NOT_RUN)
    mean, seed_0 = place.compute.mean, place.compute.seed_0
    interval = f"{mean.low:.3f}–{mean.high:.3f}"
    return printed, Entry(
        text=f"{mean.mean:.3f}",
        beside=_over(mean.mean, place.printed_pflops),
        below=interval if seed_0 is None else f"{interval}; seed 0: {seed_0:.3f}",
    )


def _seconds(place: _Place) -> tuple[Entry, Entry]:
    printed = Entry("" if place.printed_seconds is None else f"{place.printed_seconds:.1f}")
    if place.timing is None:
        return printed, Entry(tables.NOT_RUN)
    found = place.timing.per_query
    return printed, Entry(f"{found:.2f}", beside=_over(found, place.printed_seconds))


def _over(measured: float, printed: float | None) -> str:
    return "" if printed is None else f"×{measured / printed:.2f}"


def _notes(grid: Grid, places: Sequence[_Place], timings: Sequence[Timing]) -> Iterator[str]:
    several = any(place.compute is not None and len(place.compute.measurement.seeds) > 1 for place in places)
    yield (
        "Publ.: printed in the paper. PFLOPs of a question, in 1e15: two operations for every token, of prompts and "
        "replies, and every parameter of the backbone that served the call, over all calls, the last one included; "
        "attention is left out. Beside a number of this run stands its ratio to the published one, below the mean of "
        f"PFLOPs its 95 % bootstrap interval over questions{' and seeds, and seed 0 alone' if several else ''}."
    )
    if timings:
        yield from _timing_notes(timings)
    if any(place.compute is None or place.timing is None for place in places):
        yield f"{tables.NOT_RUN}: not run."
    if any(place.printed_pflops is None for place in places):
        yield "A blank published column: the paper prints no such value."
    yield from protocol(grid)


def _timing_notes(timings: Sequence[Timing]) -> Iterator[str]:
    first = timings[0]
    yield (
        "Seconds of a question: wall-clock time of the whole test set over n, from a job of its own with the method as "
        f"trained with seed {first.seed}: {first.concurrency} questions at a time, one method at a time, nothing "
        "cached, answers not graded. One pass has no interval."
    )
    hosts = "; ".join(sorted({one.machine for one in timings}))
    if first.engine is None:
        yield f"Measured from {hosts}; the time of the servers is part of it, and depends on what they ran on."
    else:
        yield f"{_modelled(first.engine)} Only what happens around the servers took its own time, on {hosts}."
    failed = sum(one.failed_calls for one in timings)
    if failed:
        yield f"In the timed passes {failed} of {sum(one.calls for one in timings)} calls got no reply."


def _modelled(engine: Mapping[str, float]) -> str:
    return (
        "Modelled: no server was timed. By assumption each backbone has a server for "
        f"{engine['concurrent_sequences']:g} sequences at once, and of N billion parameters reads "
        f"{engine['prefill_tokens_per_s_1b']:g} / N tokens of a prompt a second and writes "
        f"{engine['decode_tokens_per_s_1b']:g} / N."
    )


def _record(grid: Grid, key: Key, place: _Place, kind: str) -> dict[str, str]:
    return {
        **key._asdict(),
        "benchmark_title": grid.benchmarks[key.benchmark],
        "published_pflops": _optional(place.printed_pflops),
        "published_seconds": _optional(place.printed_seconds),
        **(_computed(place.compute, place.printed_pflops) if place.compute else {}),
        **(_timed(place.timing, place.printed_seconds, kind) if place.timing else {}),
    }


def _computed(compute: _Compute, printed: float | None) -> dict[str, str]:
    return {
        "n": str(compute.measurement.n),
        "pflops": exact(compute.mean.mean),
        "pflops_low": exact(compute.mean.low),
        "pflops_high": exact(compute.mean.high),
        "pflops_seed0": _optional(compute.seed_0),
        "pflops_ratio": _optional(compute.mean.mean / printed if printed else None),
        **identity(compute.measurement),
    }


def _timed(timing: Timing, printed: float | None, kind: str) -> dict[str, str]:
    engine = timing.engine or {}
    return {
        "seconds": exact(timing.per_query),
        "seconds_are": kind,
        "seconds_ratio": _optional(timing.per_query / printed if printed else None),
        "seconds_total": exact(timing.seconds),
        "timed_seed": str(timing.seed),
        "timed_calls": str(timing.calls),
        "timed_calls_failed": str(timing.failed_calls),
        "timed_tokens": str(timing.prompt_tokens + timing.completion_tokens),
        "concurrency": str(timing.concurrency),
        "engine": " ".join(f"{name}={engine[name]:g}" for name in sorted(engine)),
        "machine": timing.machine,
    }


def _optional(value: float | None) -> str:
    return "" if value is None else exact(value)

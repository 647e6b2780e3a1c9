"""Answers without a verdict: how many of them each accuracy counts as wrong, and in the CSV how programs ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from analysis import tables, tidy
from analysis.grid import Grid, Line, build_grid
from analysis.measures import Measurement
from analysis.notes import WITHOUT_VERDICT, conditions
from analysis.provenance import provenance
from analysis.published import load
from analysis.results import Cell
from analysis.source import Source
from analysis.tables import Entry, Group, Row, Table
from harness.benchmarks.items import Status
from harness.errors import UserError
from harness.sandbox.model import Outcome

_LETTERS = {status: name[0].upper() for status, name in WITHOUT_VERDICT.items()}
# Without its own failure, which is a status and not an end.
_ENDS = tuple(outcome for outcome in Outcome if outcome is not Outcome.SANDBOX_ERROR)
_STOPPED = (Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT, Outcome.KILLED)


def build(source: Source) -> Table:
    """Build the table, whose rows are those that were run.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    grid = build_grid(source.read(), load())
    lines = [line for line in grid.lines if any(grid.at(line, key) for key in grid.benchmarks)]
    found = [(line, key, measured) for line in lines for key in grid.benchmarks if (measured := grid.at(line, key))]
    return Table(
        label="errors",
        caption=f"Answers without a verdict, in percent of all answers to test questions.{conditions(grid)}",
        simulated=grid.cells[0].run.simulated,
        heads=("Method", "LLM"),
        groups=tuple(_group(grid, key) for key in grid.benchmarks),
        rows=tuple(_row(grid, line) for line in lines),
        notes=tuple(_notes(grid, lines)),
        provenance=provenance(grid.cells),
        records=tidy.even([_record(line, key, grid.benchmarks[key], measured) for line, key, measured in found]),
    )


def _group(grid: Grid, benchmark: str) -> Group:
    column = [measured for key, measured in grid.measurements.items() if key.benchmark == benchmark]
    programs = ("Stopped",) if _has_programs(grid, benchmark) else ()
    return Group(grid.benchmarks[benchmark], f"n = {column[0].n}", ("No verdict", *programs))


def _has_programs(grid: Grid, benchmark: str) -> bool:
    return any(_outcomes(measured) for key, measured in grid.measurements.items() if key.benchmark == benchmark)


def _row(grid: Grid, line: Line) -> Row:
    entries = [entry for key in grid.benchmarks for entry in _entries(grid, line, key)]
    return Row(line.family, (line.method_title, line.backbone_title), tuple(entries))


def _entries(grid: Grid, line: Line, benchmark: str) -> Iterator[Entry]:
    measured, has_programs = grid.at(line, benchmark), _has_programs(grid, benchmark)
    if measured is None:
        yield from [Entry(tables.NOT_RUN)] * (1 + has_programs)
        return
    found = [f"{_LETTERS[status]} {_percent(share)}" for status, share in _without_verdict(measured) if share]
    yield Entry(_percent(sum(share for _, share in _without_verdict(measured))), below=", ".join(found))
    if has_programs:
        outcomes = _outcomes(measured)
        yield Entry(_percent(sum(outcomes[one] for one in _STOPPED) / _answers(measured)))


def _without_verdict(measured: Measurement) -> list[tuple[Status, float]]:
    return [(status, measured.shares[status]) for status in WITHOUT_VERDICT]


def _outcomes(measured: Measurement) -> Counter[Outcome]:
    """How the programs among the answers ended, over all seeds; nothing where answers are no programs."""
    return Counter(
        _outcome(cell, detail)
        for cell in measured.cells
        for status, detail in zip(cell.items.status, cell.items.detail, strict=True)
        if status is Status.GRADED and detail
    )


def _outcome(cell: Cell, detail: str) -> Outcome:
    """The first word of what grading says of a program."""
    word = detail.partition(":")[0]
    if word not in _ENDS:
        raise UserError(
            f"{cell.folder / 'items.parquet'}: a program ended as {word!r}, expected one of {', '.join(_ENDS)}; run "
            "the cell again"
        )
    return Outcome(word)


def _answers(measured: Measurement) -> int:
    return sum(len(cell.items.status) for cell in measured.cells)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _notes(grid: Grid, lines: Sequence[Line]) -> Iterator[str]:
    letters = ", ".join(f"{letter} {WITHOUT_VERDICT[status]}" for status, letter in _LETTERS.items())
    yield f"No verdict: all of them count as wrong in every accuracy; below, which they are ({letters})."
    if any(_has_programs(grid, key) for key in grid.benchmarks):
        yield (
            "Stopped: programs that the sandbox ended at a limit of time, memory or output, or that ended by a signal; "
            "they have a verdict, which is wrong."
        )
    yield (
        "Shares are of all seeds together. The CSV has every status and every end of a program as a column, and the "
        "accuracy among the answers with a verdict; that is no accuracy of the method, for it is no chance which "
        "questions stay without one."
    )
    if any(grid.at(line, key) is None for line in lines for key in grid.benchmarks):
        yield f"{tables.NOT_RUN}: not run."


def _record(line: Line, benchmark: str, title: str, measured: Measurement) -> dict[str, str]:
    graded, right = measured.shares[Status.GRADED], measured.accuracy.mean
    outcomes = _outcomes(measured)
    return {
        "method": line.method,
        "backbone": line.backbone,
        "benchmark": benchmark,
        "benchmark_title": title,
        "n": str(measured.n),
        "measured": tidy.in_percent(right),
        "measured_of_graded": tidy.in_percent(right / graded) if graded else "",
        "graded": tidy.in_percent(graded),
        **tidy.without_verdict(measured),
        **({one.value: tidy.in_percent(outcomes[one] / _answers(measured)) for one in _ENDS} if outcomes else {}),
        **tidy.identity(measured),
    }

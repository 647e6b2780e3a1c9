"""Answers without a verdict: how many of them each accuracy counts as wrong, and in the CSV how programs ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from analysis import notes
from analysis.columns import by_benchmark
from analysis.frames import IDENTITY, KEY, WITHOUT_VERDICT, Results
from analysis.notes import WITHOUT_VERDICT as NAMES
from analysis.results import Cell
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, shown
from harness.benchmarks.items import Status
from harness.errors import UserError
from harness.sandbox.model import Outcome

# Without the sandbox's own failure, which is a status and not an end.
_ENDS = [outcome.value for outcome in Outcome if outcome is not Outcome.SANDBOX_ERROR]
_STOPPED = [
    one.value
    for one in (Outcome.CPU_LIMIT, Outcome.WALL_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT, Outcome.KILLED)
]
_COLUMNS = [
    *(*KEY, "benchmark_title", "n", "measured", "measured_of_graded", "graded", *WITHOUT_VERDICT),
    *("math_verify_undecided", *_ENDS, *IDENTITY),
]


def build(source: Source) -> Table:
    """Build the table, whose rows are those that were run.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    results = source.results()
    ran = set(results.ran.index)
    frame = _with_ends(results.frame[[key[:2] in ran for key in results.frame.index]], results)
    groups = {(title, n): _group(own) for _, title, n, own in by_benchmark(results, frame)}
    rows = [(row.family, row.method_title, row.backbone_title) for row in results.ran.itertuples()]
    return Table(
        label="errors",
        caption=f"Answers without a verdict, in percent of all answers to test questions.{notes.conditions(results)}",
        simulated=results.simulated,
        shown=shown(rows, ("Method", "LLM"), groups),
        notes=tuple(_notes(frame)),
        provenance=results.provenance,
        frame=frame[frame["ran"]].reset_index()[_COLUMNS].drop(columns=[] if _has_programs(frame) else _ENDS),
    )


def _with_ends(frame: pd.DataFrame, results: Results) -> pd.DataFrame:
    """A frame with the share of each end of programs, where answers are such, and the accuracy of the graded ones."""
    return frame.join(results.each(_ends))


def _ends(cells: Sequence[Cell]) -> dict[str, float]:
    """The accuracy of the graded answers; how programs ended, in percent of all answers, where answers are such."""
    items = pd.concat([cell.items for cell in cells])
    programs = items[(items["status"] == Status.GRADED) & (items["detail"] != "")]
    # The first word of what grading says of a program.
    words = programs["detail"].str.partition(":")[0] if len(programs) else programs["detail"]
    strange = sorted(set(words) - set(_ENDS))
    if strange:
        raise UserError(
            f"{cells[0].folder / 'items.parquet'}: a program ended as {strange[0]!r}, expected one of "
            f"{', '.join(_ENDS)}; run the cell again"
        )
    right = round(100 * float(items.loc[items["status"] == Status.GRADED, "correct"].mean()), 2)
    shares = (100 * words.value_counts() / len(items)).round(2).to_dict()
    return {"measured_of_graded": right, **{end: shares.get(end, 0.0) if shares else float("nan") for end in _ENDS}}


def _has_programs(frame: pd.DataFrame) -> bool:
    return bool(frame[_ENDS].notna().any(axis=None))


def _group(own: pd.DataFrame) -> dict[str, list[Entry]]:
    columns = {"No verdict": [_without_verdict(row) for _, row in own.iterrows()]}
    if _has_programs(own):
        columns["Stopped"] = [
            Entry(f"{row[_STOPPED].sum():.1f}" if row["ran"] else NOT_RUN) for _, row in own.iterrows()
        ]
    return columns


def _without_verdict(row: Any) -> Entry:
    if not row["ran"]:
        return Entry(NOT_RUN)
    found = [f"{NAMES[name][0].upper()} {row[name]:.1f}" for name in NAMES if row[name]]
    return Entry(f"{sum(row[name] for name in NAMES):.1f}", below=", ".join(found))


def _notes(frame: pd.DataFrame) -> Iterator[str]:
    letters = ", ".join(f"{name[0].upper()} {name}" for name in NAMES.values())
    yield f"No verdict: all of them count as wrong in every accuracy; below, which they are ({letters})."
    if _has_programs(frame):
        yield (
            "Stopped: programs that the sandbox ended at a limit of time, memory or output, or that ended by a signal; "
            "they have a verdict, which is wrong."
        )
    yield (
        "Shares are of all seeds together. The CSV has every status and every end of a program as a column, and the "
        "accuracy among the answers with a verdict; that is no accuracy of the method, for it is no chance which "
        "questions stay without one."
    )
    if not frame["ran"].all():
        yield f"{NOT_RUN}: not run."

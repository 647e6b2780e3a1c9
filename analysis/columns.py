"""Columns of a table from the rows of a tidy frame: a published number and the measured one beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from analysis.frames import UNIT, Results
from analysis.table import DAGGER, NOT_RUN, Entry, marks, signed

ALL_CALLS = "All calls"
_SMALL = 0.01


def number(value: float, text: str = ".2f") -> Entry:
    """A number as an entry, blank where there is none."""
    return Entry() if pd.isna(value) else Entry(format(value, text))


def accuracies(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """Accuracies, published and measured, each side with its own best and second best.

    A calibrated value carries its sign instead of a difference: agreeing with the paper is how it was made. Below a
    measured value stands its interval, and where it is of several seeds, seed 0 alone.
    """
    printed = [
        number(value)._replace(mark=mark)
        for value, mark in zip(frame["published"], marks(frame["published"]), strict=True)
    ]
    measured = [
        _measured(row)._replace(mark=mark)
        for row, mark in zip(frame.itertuples(), marks(frame["measured"].where(frame["ran"])), strict=True)
    ]
    return {"Publ.": printed, "Meas.": measured}


def _measured(row: Any) -> Entry:
    if not row.ran:
        return Entry(NOT_RUN)
    alone = f"; seed 0: {row.seed0:.2f}" if row.several is True and not pd.isna(row.seed0) else ""
    return Entry(
        text=f"{row.measured:.2f}",
        sign=DAGGER if row.calibrated else "",
        beside="" if pd.isna(row.difference) else signed(row.difference),
        below=f"{row.low:.1f}–{row.high:.1f}{alone}",
    )


def costs(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """Costs of one question in 1e-4, published and measured; a calibrated one carries its sign instead of a ratio."""
    printed = [number(UNIT * value) for value in frame["published_cost_per_query"]]
    return {"Publ.": printed, "Meas.": [_measured_cost(row) for row in frame.itertuples()]}


def _measured_cost(row: Any) -> Entry:
    if not row.ran:
        return Entry(NOT_RUN)
    alone = "" if pd.isna(row.cost_seed0) else f"; seed 0: {UNIT * row.cost_seed0:.2f}"
    return Entry(
        text=f"{UNIT * row.cost_per_query:.2f}",
        sign=DAGGER if row.calibrated else "",
        beside="" if pd.isna(row.cost_ratio) else f"×{row.cost_ratio:.2f}",
        below=f"{UNIT * row.cost_low:.2f}–{UNIT * row.cost_high:.2f}{alone}",
    )


def all_calls(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """Measured costs of one question, of all its calls."""
    column = frame["cost_per_query_all_calls"]
    return {ALL_CALLS: [Entry(NOT_RUN) if pd.isna(value) else number(UNIT * value) for value in column]}


def totals(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """Costs of the paper's test set: as printed, and the measured mean times its number of questions."""
    printed = [Entry(_printed_total(value)) for value in frame["published_total"]]
    return {"Publ.": printed, "Meas.": [Entry(_scaled_total(row)) for row in frame.itertuples()]}


def _printed_total(total: float) -> str:
    """With three decimals like the paper, or as many more as it once prints."""
    if pd.isna(total):
        return ""
    return f"{total:.3f}" if round(total, 3) == total else f"{total:g}"


def _scaled_total(row: Any) -> str:
    """With the same decimals, and one more where they would say little."""
    if pd.isna(row.total_scaled):
        return "" if row.ran else NOT_RUN
    return f"{row.total_scaled:.3f}" if row.total_scaled >= _SMALL else f"{row.total_scaled:.4f}"


def by_benchmark(results: Results, frame: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Key, title, number of questions as ``n = 128``, and the rows of each benchmark."""
    for key, title in results.benchmarks.items():
        yield key, title, results.questions(key), frame.xs(key, level="benchmark", drop_level=False)

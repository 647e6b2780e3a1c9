"""The table of answers without a verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from analysis.source import Source
from analysis.table import Entry
from tests.analysis.reading import Read as Table
from tests.analysis.reading import errors
from tests.analysis.spending import record_of

WriteCell = Callable[..., Path]


def entries(table: Table, title: str) -> list[Entry]:
    [row] = [row for row in table.rows if row.labels[0] == title]
    return list(row.entries)


def test_a_place_shows_how_many_have_no_verdict_and_why(write_cell: WriteCell) -> None:
    statuses = ["graded", "graded", "unparsable", "unparsable", "empty", "truncated", "call_failed", "sandbox_error"]
    correct = [True] + [False] * 7
    folders = [write_cell("cot", correct=correct, statuses=statuses), write_cell("single", correct=[True] * 8)]
    table = errors.build(Source.of(folders))
    assert entries(table, "CoT") == [Entry("75.0", below="N 25.0, E 12.5, R 12.5, C 12.5, S 12.5")]
    assert entries(table, "Single LLM") == [Entry("0.0")]
    found = record_of(table, method="cot")
    names = ("measured", "measured_of_graded", "graded", "unparsable", "empty", "truncated", "call_failed")
    assert [float(found[name]) for name in names] == [12.5, 50, 25, 25, 12.5, 12.5, 12.5]
    [note] = [note for note in table.notes if note.startswith("No verdict")]
    assert "N no answer found, E empty answer, R reply cut off, C call failed, S sandbox failed" in note


def test_programs_are_counted_by_how_they_ended(write_cell: WriteCell) -> None:
    details = [
        "passed",
        "wrong_answer: assert f(1) == 2",
        "exception: ValueError: cpu_limit",
        "cpu_limit",
        "memory_limit",
        "HTTP 400: too long",
        "",
        "killed: signal 11",
    ]
    statuses = [*["graded"] * 5, "call_failed", "unparsable", "graded"]
    correct = [True] + [False] * 7
    folders = [
        write_cell("cot", benchmark="mbpp", correct=correct, statuses=statuses, details=details),
        write_cell("cot", benchmark="gsm_hard", correct=[True]),
    ]
    table = errors.build(Source.of(folders))
    assert [group.columns for group in table.groups] == [("No verdict",), ("No verdict", "Stopped")]
    assert [entry.text for entry in entries(table, "CoT")] == ["0.0", "25.0", "37.5"]
    found = record_of(table, benchmark="mbpp")
    ends = ("passed", "wrong_answer", "exception", "cpu_limit", "memory_limit", "killed", "wall_limit")
    assert [float(found[name]) for name in ends] == [12.5] * 6 + [0]
    assert record_of(table, benchmark="gsm_hard")["passed"] == ""

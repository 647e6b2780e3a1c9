"""The three ways of routing."""

from __future__ import annotations

import pytest

from analysis.registry import artefact
from analysis.source import Source
from harness.runner.config import preset
from tests.analysis.reading import paradigm
from tests.analysis.spending import cell_of, record_of, row_of, spend, title

SAVED = f"Saved (%) by {title('gmr')}"


def build(folders):
    return paradigm.build(Source.of(folders))


@pytest.mark.parametrize(
    ("method", "key", "saved"),
    [
        ("masrouter", "gsm_hard", "42.00"),
        ("masrouter", "humaneval", "43.86"),
        ("full_history", "gsm_hard", "40.41"),
        ("full_history", "humaneval", "52.94"),
    ],
)
def test_published_savings_are_those_the_paper_speaks_of(write_cell, method, key, saved):
    table = build([write_cell(one, "pool", key) for one in (method, "gmr")])
    assert cell_of(table, row_of(table, title(method)), SAVED, "Publ.").text == saved


def test_measured_savings_are_of_the_cost_of_a_question(write_cell):
    folders = [
        spend(write_cell("gmr", "pool"), [1e-4, 1e-4, 3e-4, 3e-4]),
        spend(write_cell("masrouter", "pool"), [8e-4, 8e-4, 8e-4, 8e-4]),
        spend(write_cell("full_history", "pool"), [1e-4, 1e-4, 1e-4, 1e-4]),
    ]
    table = build(folders)
    masrouter = cell_of(table, row_of(table, title("masrouter")), SAVED, "Meas.")
    history = cell_of(table, row_of(table, title("full_history")), SAVED, "Meas.")
    assert (masrouter.text, history.text) == ("75.00", "−100.00")
    low, high = (float(end.replace("−", "-")) for end in masrouter.below.split(" to "))
    assert 62.5 <= low < 75 < high <= 87.5
    record = record_of(table, method="masrouter")
    assert float(record["cost_factor"]) == pytest.approx(4)


def test_rows_stand_in_the_order_of_the_paper(write_cell):
    table = build([write_cell(method, "pool") for method in ("gmr", "full_history", "masrouter")])
    assert [row.labels[1] for row in table.rows] == [title("masrouter"), title("full_history"), title("gmr")]
    assert cell_of(table, table.rows[2], SAVED, "Meas.").text == ""


def test_the_twin_of_full_history_is_named(write_cell):
    table = build([write_cell(method, "pool") for method in ("gmr", "full_history", "masrouter")])
    assert any("D-GMR-8" in note and "one configuration" in note for note in table.notes)
    assert table.label == "paradigm"


@pytest.mark.parametrize("free", ["gmr", "masrouter"])
def test_nothing_is_saved_where_one_of_both_cost_nothing(write_cell, free):
    folders = [spend(write_cell(one, "pool"), [0 if one == free else 1e-4] * 4) for one in ("gmr", "masrouter")]
    table = build(folders)
    assert cell_of(table, row_of(table, title("masrouter")), SAVED, "Meas.").text == ""


def test_a_single_question_leaves_the_interval_open(write_cell):
    folders = [
        spend(write_cell(one, "pool", correct=[True]), [cost]) for one, cost in (("gmr", 1e-4), ("masrouter", 2e-4))
    ]
    table = build(folders)
    saved = cell_of(table, row_of(table, title("masrouter")), SAVED, "Meas.")
    assert (saved.text, saved.below) == ("50.00", "")


def test_the_second_training_of_full_history_is_a_row_beside_the_number_of_the_ablation(write_cell):
    table = build([write_cell(method, "pool") for method in ("gmr", "full_history", "gmr_no_memory_gates")])
    assert [row.labels[1] for row in table.rows][-1] == title("gmr_no_memory_gates")
    printed = [cell_of(table, row, "Accuracy (%)", "Publ.").text for row in table.rows]
    assert printed == ["70.27", "70.55", "67.99"]
    planned = artefact("paradigm").cells_of(preset("embedded"))
    assert {cell.method for cell in planned} == {"masrouter", "full_history", "gmr", "gmr_no_memory_gates"}


def test_how_far_apart_two_trainings_end_is_said(write_cell):
    """Of 40 questions the one alone has 7, the other alone 3: ten points."""
    first, second = [True] * 30 + [False] * 10, [True] * 23 + [False] * 14 + [True] * 3
    folders = [
        write_cell("gmr", "pool", correct=first),
        write_cell("full_history", "pool", correct=first),
        write_cell("gmr_no_memory_gates", "pool", correct=second),
    ]
    [note] = [note for note in build(folders).notes if note.startswith("Full-History minus")]
    assert note.startswith("Full-History minus GMR w/o memory gates")
    assert "GSM-Hard published +2.28, measured +10.00 (−" in note
    assert not any(note.startswith("Full-History minus") for note in build(folders[:2]).notes)

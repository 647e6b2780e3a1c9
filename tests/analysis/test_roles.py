"""GMR with fewer roles."""

from __future__ import annotations

import pytest

from analysis.source import Source
from tests.analysis.reading import roles
from tests.analysis.spending import cell_of, row_of, title

ACCURACY, COST, GAIN = "Accuracy (%)", "Cost of a question (1e-4)", f"Accuracy against {title('gmr')}"
BOTH = ("gsm_hard", "humaneval")


def build(write_cell, variant):
    return roles.build(Source.of([write_cell(method, "pool", key) for method in ("gmr", variant) for key in BOTH]))


def printed(table, group):
    return [cell_of(table, row, group, "Publ.").text for row in table.rows]


def test_the_paper_prints_accuracies_of_thirteen_roles_and_no_cost(write_cell):
    table = build(write_cell, "gmr_roles_13")
    assert printed(table, ACCURACY) == ["70.55", "70.74", "89.84", "89.06"]
    assert printed(table, GAIN) == ["", "+0.19", "", "−0.78"]
    assert printed(table, COST) == [f"{1e4 * 0.587 / 1056:.2f}", "", f"{1e4 * 0.032 / 128:.2f}", ""]
    assert any("prints no such value" in note for note in table.notes)


def test_nothing_is_published_for_the_roles_of_the_domain(write_cell):
    table = build(write_cell, "gmr_roles_domain")
    assert printed(table, ACCURACY) == ["70.55", "", "89.84", ""]
    assert printed(table, GAIN) == [""] * 4
    own = [row for row in table.rows if row.labels[1] == title("gmr_roles_domain")]
    assert [cell_of(table, row, ACCURACY, "Meas.").beside for row in own] == ["", ""]
    assert [cell_of(table, row, GAIN, "Meas.").text for row in own] == ["0.00", "0.00"]


@pytest.mark.parametrize("variant", ["gmr_roles_13", "gmr_roles_domain"])
def test_the_two_tables_can_stand_in_one_document(write_cell, variant):
    table = build(write_cell, variant)
    assert table.label == f"roles-{variant}".replace("_", "-")
    assert row_of(table, title(variant), "GSM-Hard, n = 4").labels[2] == "0"

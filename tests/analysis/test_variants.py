"""The ablations, the ways of routing and the role pools, each with the full system."""

from __future__ import annotations

import math

import pytest

from analysis.source import Source
from tests.analysis.reading import ablation, paradigm, roles
from tests.analysis.spending import cell_of, record_of, row_of, spend, title

ACCURACY, COST, TOTAL = "Accuracy (%)", "Cost of a question (1e-4)", "Total cost"
GAIN, FACTOR = f"Accuracy against {title('gmr')}", f"Cost against {title('gmr')}"


def build(folders):
    return ablation.build(Source.of(folders))


def pair(write_cell, **changes):
    """The full system and the ablation of halting on 40 questions: 7 that only the one has right, 2 only the other."""
    full = [True] * 27 + [False] * 13
    ablated = [True] * 20 + [False] * 7 + [True] * 2 + [False] * 11
    return [
        spend(write_cell("gmr", "pool", correct=full), [1e-4] * 40),
        spend(write_cell("gmr_no_halting", "pool", correct=ablated, **changes), [2e-4] * 20 + [4e-4] * 20),
    ]


@pytest.mark.parametrize(
    ("method", "key", "gain", "cost"),
    [
        ("gmr_no_llm_router", "gsm_hard", "−14.02", "×0.95"),
        ("gmr_no_memory_gates", "gsm_hard", "−2.56", "×0.76"),
        ("gmr_no_memory_gates", "humaneval", "−6.25", "×1.03"),
        ("gmr_no_halting", "gsm_hard", "−0.47", "×1.43"),
        ("gmr_no_halting", "humaneval", "−3.12", "×2.69"),
    ],
)
def test_published_differences_are_those_the_paper_speaks_of(write_cell, method, key, gain, cost):
    table = build([write_cell(one, "pool", key) for one in ("gmr", method)])
    row = row_of(table, title(method))
    assert cell_of(table, row, GAIN, "Publ.").text == gain
    assert cell_of(table, row, FACTOR, "Publ.").text == cost


def test_published_costs_are_of_one_question_and_of_all(write_cell):
    table = build(
        [spend(write_cell("gmr", "pool"), [1e-4] * 4), spend(write_cell("gmr", "pool", "humaneval"), [1e-4] * 4)]
    )
    for name, total, n in (("GSM-Hard, n = 4", 0.587, 1056), ("HumanEval, n = 4", 0.032, 128)):
        row = row_of(table, name)
        assert cell_of(table, row, COST, "Publ.").text == f"{1e4 * total / n:.2f}"
        assert cell_of(table, row, TOTAL, "Publ.").text == f"{total:.3f}"
        assert cell_of(table, row, TOTAL, "Meas.").text == f"{1e-4 * n:.3f}"
    assert [group.detail for group in table.groups][2] == "scaled to n = 1056 or 128"


def test_measured_differences_are_paired(write_cell):
    """McNemar by hand: of 9 discordant questions at most 2 on the smaller side, both tails."""
    table = build(pair(write_cell))
    row = row_of(table, title("gmr_no_halting"))
    p = 2 * sum(math.comb(9, k) for k in range(3)) / 2**9
    assert cell_of(table, row, GAIN, "Meas.").text == "−12.50"
    assert cell_of(table, row, GAIN, "p").text == f"{p:.3f}"
    assert cell_of(table, row, FACTOR, "Meas.").text == "×3.00"
    record = record_of(table, method="gmr_no_halting")
    assert (record["only_this"], record["only_reference"], record["p"]) == ("2", "7", f"{p:.10g}")
    assert float(record["gain"]) == -12.5
    assert float(record["gain_low"]) < -12.5 < float(record["gain_high"])
    assert float(record["published_gain"]) == pytest.approx(70.08 - 70.55)


SAVED = f"Saved (%) by {title('gmr')}"


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
    table = paradigm.build(Source.of([write_cell(one, "pool", key) for one in (method, "gmr")]))
    assert cell_of(table, row_of(table, title(method)), SAVED, "Publ.").text == saved


def test_measured_savings_are_of_the_cost_of_a_question(write_cell):
    folders = [
        spend(write_cell("gmr", "pool"), [1e-4, 1e-4, 3e-4, 3e-4]),
        spend(write_cell("masrouter", "pool"), [8e-4, 8e-4, 8e-4, 8e-4]),
        spend(write_cell("full_history", "pool"), [1e-4, 1e-4, 1e-4, 1e-4]),
    ]
    table = paradigm.build(Source.of(folders))
    masrouter = cell_of(table, row_of(table, title("masrouter")), SAVED, "Meas.")
    history = cell_of(table, row_of(table, title("full_history")), SAVED, "Meas.")
    assert (masrouter.text, history.text) == ("75.00", "−100.00")
    low, high = (float(end.replace("−", "-")) for end in masrouter.below.split(" to "))
    assert 62.5 <= low < 75 < high <= 87.5
    record = record_of(table, method="masrouter")
    assert float(record["cost_factor"]) == pytest.approx(4)


BOTH = ("gsm_hard", "humaneval")


def roles_of(write_cell, variant):
    return roles.build(Source.of([write_cell(method, "pool", key) for method in ("gmr", variant) for key in BOTH]))


def printed(table, group):
    return [cell_of(table, row, group, "Publ.").text for row in table.rows]


def test_the_paper_prints_accuracies_of_thirteen_roles_and_no_cost(write_cell):
    table = roles_of(write_cell, "gmr_roles_13")
    assert printed(table, ACCURACY) == ["70.55", "70.74", "89.84", "89.06"]
    assert printed(table, GAIN) == ["", "+0.19", "", "−0.78"]
    assert printed(table, COST) == [f"{1e4 * 0.587 / 1056:.2f}", "", f"{1e4 * 0.032 / 128:.2f}", ""]
    assert any("no such value" in note for note in table.notes)

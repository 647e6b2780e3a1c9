"""Tables of GMR variants: ablations, routing paradigms, role pools, and sweeps of one setting."""

import math
from typing import Any

import pytest

from analysis import figure as drawing
from analysis.exhibit import NO, NOT_RUN, YES
from harness.errors import UserError
from tests.analysis.cells import WriteCell, title, verdicts
from tests.analysis.reading import ablation, depth, lambda_sweep, paradigm, roles

ACCURACY, COST, TOTAL = "Accuracy (%)", "Cost of a question (1e-4)", "Total cost"
GAIN, FACTOR, SAVED = (f"{what} {title('gmr')}" for what in ("Accuracy against", "Cost against", "Saved (%) by"))


@pytest.mark.parametrize(
    ("artefact", "method", "key", "gain", "change"),
    [
        (ablation, "gmr_no_halting", "humaneval", "−3.12", "×2.69"),
        (paradigm, "full_history", "humaneval", "−0.78", "52.94"),
        (roles, "gmr_roles_13", "gsm_hard", "+0.19", None),
    ],
)
def test_published_differences_are_those_the_paper_speaks_of(
    write_cell: WriteCell, artefact: Any, method: str, key: str, gain: str, change: str | None
) -> None:
    table = artefact(*(write_cell(name, "pool", key) for name in ("gmr", method)))
    published = {group.title for group in table.groups if "Publ." in group.columns}
    for group, text in {GAIN: gain, SAVED if artefact is paradigm else FACTOR: change}.items():
        assert (table.entry(group, "Publ.", title(method)).text if group in published else None) == text


def test_measured_differences_are_paired(write_cell: WriteCell) -> None:
    """Of 40 questions 7 that only the full system has right, 2 only the other: McNemar by hand, both tails."""
    full, ablated = [True] * 27 + [False] * 13, [True] * 20 + [False] * 7 + [True] * 2 + [False] * 11
    cells = [
        write_cell("gmr", "pool", correct=full, cost=1e-4),
        write_cell("gmr_no_halting", "pool", correct=ablated, cost=[2e-4] * 20 + [4e-4] * 20),
    ]
    table = ablation(*cells)
    p = 2 * sum(math.comb(9, k) for k in range(3)) / 2**9
    assert [entry.text for entry in table.entries(GAIN, "Meas.")] == ["", "−12.50"]
    assert [entry.text for entry in table.entries(FACTOR, "Meas.")] == ["", "×3.00"]
    assert table.entry(GAIN, "p", title("gmr_no_halting")).text == f"{p:.3f}"
    record = table.record(method="gmr_no_halting")
    assert (record["only_this"], record["only_reference"], record["p"]) == ("2", "7", f"{p:.10g}")
    assert float(record["gain_low"]) < float(record["gain"]) == -12.5 < float(record["gain_high"])
    assert float(record["published_gain"]) == pytest.approx(70.08 - 70.55)


def test_measured_savings_are_of_the_cost_of_a_question(write_cell: WriteCell) -> None:
    costs = {"gmr": [1e-4, 1e-4, 3e-4, 3e-4], "masrouter": [8e-4] * 4, "full_history": [1e-4] * 4}
    table = paradigm(*(write_cell(method, "pool", cost=each) for method, each in costs.items()))
    masrouter, history = (table.entry(SAVED, "Meas.", title(method)) for method in ("masrouter", "full_history"))
    assert (masrouter.text, history.text) == ("75.00", "−100.00")
    low, high = (float(end.replace("−", "-")) for end in masrouter.below.split(" to "))
    reach = 3.1824 * math.sqrt(4 / 3) / 2 / 2
    assert (low, high) == pytest.approx([100 - 25 * math.exp(sign * reach) for sign in (1, -1)], abs=2.5)
    assert float(table.record(method="masrouter")["cost_factor"]) == pytest.approx(4)


def test_weights_of_cost_benchmark_by_benchmark_each_with_its_frontier(make: Any) -> None:
    usual = {"correct": verdicts(1, 4), "cost": 5e-4}
    large = make("gmr_lambda_50", correct=verdicts(3, 4), cost=2e-4, depth=[3, 3, 3, 5])
    table = lambda_sweep(make(**usual), large, make(benchmark="humaneval", **usual))
    rows = [("GSM-Hard, n = 4", "GMR"), ("GSM-Hard, n = 4", "GMR, λ_c = 50"), ("HumanEval, n = 4", "GMR")]
    assert [row.labels[:2] for row in table.rows if row.labels[2]] == rows
    assert [entry.text for entry in table.entries("Test questions", "Frontier")] == [NO, YES, YES, NOT_RUN]
    row = ("GMR, λ_c = 50", "GSM-Hard, n = 4")
    accuracy, cost, steps, total = (
        table.entry(*column, *row)
        for column in ((ACCURACY, "Meas."), (COST, "Meas."), ("Test questions", "Steps"), (TOTAL, "Meas."))
    )
    assert [accuracy.text, cost.text, steps.text, total.text] == ["75.00", "2.00", "3.50", f"{2e-4 * 1056:.3f}"]
    assert steps.below == "0.00–9.85"
    assert "Publ." not in [column for group in table.groups for column in group.columns]


def test_accuracy_above_and_cost_below_by_depth(make: Any) -> None:
    """φ cents of cost a question; 2 of 4 right up to φ = 6, 3 beyond."""
    cells = [
        make(method, benchmark="math", cost_steps=phi / 100, depth=[1, 1, 2, 2], correct=[True, True, phi > 6, False])
        for phi, method in {2: "gmr_depth_2", 4: "gmr_depth_4", 6: "gmr", 8: "gmr_depth_8", 10: "gmr_depth_10"}.items()
    ]
    upper, lower = drawing.picture(depth(*cells).made).axes
    assert upper.lines[0].get_ydata() == pytest.approx([50, 50, 50, 75, 75])
    assert lower.lines[0].get_ydata() == pytest.approx([200, 400, 600, 800, 1000])
    assert list(upper.lines[0].get_xdata()) == [2, 4, 6, 8, 10]
    assert [label.get_text() for label in lower.get_xticklabels()] == [f"{phi}\n(1.50)" for phi in (2, 4, 6, 8, 10)]
    own = drawing.picture(depth(make("gmr", seed=1, benchmark="math", config={"max_depth": 7})).made)
    assert list(own.axes[0].lines[0].get_xdata()) == [7], "whatever the configuration says by now"
    with pytest.raises(UserError, match="expected those of one benchmark"):
        depth(cells[2], make(benchmark="gsm_hard"))

"""Tables about GMR: spread over seeds, gates with intervals, halting, and its variants."""

import math
from typing import Any

import numpy as np
import pytest

from analysis import figure as drawing
from analysis.exhibit import NO, NOT_RUN, YES, Entry, signed
from analysis.paper.training import HALTING, NONE
from analysis.published import load
from analysis.statistics import Ratio, estimates, mean_of, wilson
from harness.errors import UserError
from tests.analysis import reading
from tests.analysis.by_hand import crossed
from tests.analysis.cells import WriteCell, title, trajectory, verdicts
from tests.analysis.reading import Read as Table
from tests.analysis.reading import ablation, gate_behaviour, halting_training, lambda_sweep, paradigm

# Right answers of 50, by benchmark and seed.
RIGHT = {"math": (20, 30, 40), "gsm_hard": (10, 11, 15), "mbpp": (25, 25, 25)}
RIGHT |= {"humaneval": (40, 44, 49), "mmlu_pro": (5, 9, 1)}


def three(write_cell):
    return [
        write_cell("gmr", "pool", key, seed=seed, correct=verdicts(right, 50))
        for key, by_seed in RIGHT.items()
        for seed, right in enumerate(by_seed)
    ]


def test_mean_and_sample_deviation_of_a_benchmark_and_overall_by_seed_first(write_cell):
    table = reading.seed_variance(*three(write_cell))
    assert [row.labels[2] for row in table.rows] == ["mean", "sd"]
    overall = 2 * np.array(list(RIGHT.values())).mean(axis=0)
    for group, percents in (("MATH", 2 * np.array(RIGHT["math"])), ("Overall", overall)):
        texts = [entry.text for entry in table.entries(group, "Meas.")]
        assert texts == [f"{one:.2f}" for one in (percents.mean(), percents.std(ddof=1))]
    assert table.entries("MATH", "Meas.")[0].beside == signed(60 - 78.37)
    record = table.record(benchmark="overall")
    assert [float(one) for one in record["by_seed"].split()] == pytest.approx(overall.tolist())
    assert float(record["sd"]) == pytest.approx(overall.std(ddof=1))
    assert (record["seeds"], len(record["run_id"].split())) == ("0 1 2", 15)
    printed = load().further["seed_variance"]["gmr"]["overall"]
    assert [float(record[f"published_{name}"]) for name in ("mean", "sd")] == [printed["mean"], printed["sd"]]


def test_a_missing_seed_is_refused_by_name(write_cell):
    folders = three(write_cell)
    with pytest.raises(UserError, match=r"no cell of gmr on mbpp with pool and seed 1.*seeds 0, 1, 2"):
        reading.seed_variance(*folders[:7], *folders[8:])


# Three epochs of one update of 12 rollouts: 2 questions × 3 epochs × 6 rollouts.
SIZE: dict[str, Any] = {"per_epoch": 1, "n_train": 2}
SHORT = SIZE | {"updates": [{"steps": steps, "trajectories": 12.0} for steps in (30.0, 42.0, 36.0)]}
LONG = SIZE | {"updates": [{"steps": 72.0, "trajectories": 12.0}] * 3}


def entries(table: Table, title: str, section: str = "") -> tuple[Entry, ...]:
    """Published, measured and cases; the sections repeat their titles."""
    [row] = [row for row in table.rows if row.labels[1].startswith(title) and section in row.section]
    return tuple(row.entries)


def test_gates_by_all_definitions_beside_what_was_published(make: Any) -> None:
    table = gate_behaviour(make(decisions=MADE, depth=DEPTH))
    rows = {
        ("mean depth", ""): ("2.92", "2.25", "−0.67", "4"),
        ("steps written", ""): ("39.6", "44.4", "+4.8", "4"),
        ("nothing stored", ""): ("", "25.0", "", "4"),
        # Three trajectories reach step 1, two of them step 2, where either has two earlier steps.
        ("step 1", "earlier"): ("16", "33.3", "+17.3", "3"),
        ("step 1", "pooled"): ("16", "100.0", "+84.0", "1"),
        ("step 1", "mean of cases"): ("16", "100.0", "+84.0", "1"),
        ("step 2", "earlier"): ("24", "25.0", "+1.0", "2"),
        ("step 2", "pooled"): ("24", "33.3", "+9.3", "2"),
        ("step 2", "mean of cases"): ("24", "25.0", "+1.0", "2"),
        ("step 5", "pooled"): ("11", NOT_RUN, "", "0"),
    }
    for row, expected in rows.items():
        published, measured, cases = entries(table, *row)
        assert (published.text, measured.text, measured.beside, cases.text) == expected, row
    assert "seed 0" not in entries(table, "mean depth")[1].below
    # The order of decisions does not matter, and a gate that is off has no statistics.
    assert gate_behaviour(make(decisions=MADE[::-1], depth=DEPTH)).texts == table.texts
    off = gate_behaviour(make(decisions=[row for row in MADE if row["name"] != "retrieve"], depth=DEPTH))
    assert {text for *_, text in off.texts[3:]} == {"0"}


def test_several_seeds_show_their_mean_and_seed_0(make: Any) -> None:
    table = gate_behaviour(make(decisions=MADE, depth=DEPTH), make(seed=1, decisions=[], depth=[1, 1, 1, 1]))
    depth, pooled = entries(table, "mean depth"), entries(table, "step 2", "pooled")
    assert [entry.text for entry in (*depth[1:], *pooled[1:])] == ["1.62", "4", "33.3", "1"]
    assert depth[1].below.endswith("; seed 0: 2.25")
    alone = gate_behaviour(*(make(seed=seed, correct=[True], decisions=[], depth=[1]) for seed in (0, 1)))
    assert entries(alone, "mean depth")[1].below == "seed 0: 1.00"
    assert (table.record(measure="depth")["by_seed"], table.record(measure="depth")["seeds"]) == ("2.25 1", "0 1")
    assert table.record(measure="write_rate")["by_seed"].split()[1] == "nan"


def test_depth_and_steps_beside_what_was_published(make: Any) -> None:
    table = halting_training(make(HALTING, **SHORT), make(NONE, **LONG))
    assert table.texts == [
        ["3.4", "3.00", "26.5", "0.1"], ["6.0", "6.00", "47.9", "0.2"], ["1.76", "2.00", "1.81", "2.00"],
    ]  # fmt: skip
    assert [entry.beside for entry in table.rows[0].entries] == ["", "−0.40", "", "×0.00"]
    assert [entry.beside for entry in table.rows[2].entries] == ["", "+0.24", "", "+0.19"]
    assert table.groups[0].detail == "2 × 3 × 6"
    table = halting_training(make(HALTING, **SHORT), make(HALTING, 1, **LONG), make(NONE, 1, **LONG))
    depth = table.rows[0].entries[1]
    assert (depth.text, depth.below) == ("4.50", "sd 2.12; seed 0: 3.00")
    assert table.rows[2].entries[1].text == "1.00", "only seed 1 has both"
    assert table.records[0]["by_seed"] == "3 6"


# Question 0 stores at steps 0 and 1, question 1 at step 1 only, question 2 never, question 3 at its only step.
MADE = [
    *trajectory(0, ((), True), ((True,), True), ((True, False), False)),
    *trajectory(1, ((), False), ((), True), ((False,), False)),
    *trajectory(2, ((), False), ((), False)),
    *trajectory(3, ((), True)),
]
DEPTH = (3, 3, 2, 1)


@pytest.mark.parametrize("spread", [0, 0.2])
def test_the_interval_of_a_ratio_is_that_of_its_first_order(spread: float) -> None:
    generator = np.random.default_rng(5)
    bottom = generator.integers(0, 6, size=(3, 400)).astype(float)
    top = np.array([generator.binomial(row.astype(int), 0.3 + spread * seed) for seed, row in enumerate(bottom)], float)
    found = estimates([{"x": Ratio(*pair)} for pair in zip(top, bottom, strict=True)])["x"]
    ratios = top.sum(axis=1, keepdims=True) / bottom.sum(axis=1, keepdims=True)
    mean, reach, _ = crossed(ratios + (top - ratios * bottom) / bottom.mean(axis=1, keepdims=True))
    assert found.mean == pytest.approx(np.mean([a.sum() / b.sum() for a, b in zip(top, bottom, strict=True)]))
    expected = (max(0.0, mean - reach), min(1.0, mean + reach))
    assert (found.low, found.high) == pytest.approx(expected, abs=0.01 * reach)


def test_ratios_with_few_cases() -> None:
    only = estimates([{"x": Ratio(np.array([1.0, 0, 0, 0, 0]), np.array([2.0, 1, 0, 0, 0]))}])["x"]
    assert only.mean == pytest.approx(1 / 3)
    assert 0 <= only.low < 1 / 3 < only.high <= 1
    # A share without spread gets the interval of its cases, another mean and a single question none.
    never = Ratio(np.zeros(6), np.array([2.0, 2, 2, 0, 0, 0]))
    assert estimates([{"x": never}])["x"][:3] == (0, *wilson(0, 3))
    once = Ratio(np.array([1.0] + [0.0] * 31), np.ones(32))
    assert estimates([{"x": once}])["x"][:3] == (1 / 32, *wilson(1, 32))
    assert estimates([{"x": mean_of([2, 2, 2])}])["x"][:3] == (2, 2, 2)
    assert estimates([{"x": mean_of([3.0])}])["x"][:3] == pytest.approx((3, math.nan, math.nan), nan_ok=True)


# Variants: ablations, routing paradigms, role pools, and sweeps of one setting.

ACCURACY, COST, TOTAL = "Accuracy (%)", "Cost of a question (1e-4)", "Total cost"
GAIN, FACTOR, SAVED = (f"{what} {title('gmr')}" for what in ("Accuracy against", "Cost against", "Saved (%) by"))


@pytest.mark.parametrize(
    ("artefact", "method", "key", "gain", "change"),
    [
        (ablation, "gmr_no_halting", "humaneval", "−3.12", "×2.69"),
        (paradigm, "full_history", "humaneval", "−0.78", "52.94"),
        (reading.roles, "gmr_roles_13", "gsm_hard", "+0.19", None),
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
    table = ablation(
        write_cell("gmr", "pool", correct=full, cost=1e-4),
        write_cell("gmr_no_halting", "pool", correct=ablated, cost=[2e-4] * 20 + [4e-4] * 20),
    )
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
    upper, lower = drawing.picture(reading.depth(*cells).made).axes
    assert upper.lines[0].get_ydata() == pytest.approx([50, 50, 50, 75, 75])
    assert lower.lines[0].get_ydata() == pytest.approx([200, 400, 600, 800, 1000])
    assert list(upper.lines[0].get_xdata()) == [2, 4, 6, 8, 10]
    assert [label.get_text() for label in lower.get_xticklabels()] == [f"{phi}\n(1.50)" for phi in (2, 4, 6, 8, 10)]
    own = drawing.picture(reading.depth(make("gmr", seed=1, benchmark="math", config={"max_depth": 7})).made)
    assert list(own.axes[0].lines[0].get_xdata()) == [7], "whatever the configuration says by now"
    with pytest.raises(UserError, match="expected those of one benchmark"):
        reading.depth(cells[2], make(benchmark="gsm_hard"))

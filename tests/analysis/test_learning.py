"""The table of learning on cells made by hand, each value against one computed independently."""

import statistics

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.figures.training_curves import by_epoch
from analysis.finished_cells import mean_of_updates
from analysis.registry import artefact
from analysis.tables.learning import MEASURES
from harness.errors import UserError
from harness.runner import config
from tests.analysis.cells import WriteCell, verdicts
from tests.analysis.reading import Artefact, Read
from tests.analysis.test_training_tables import DEPTH, MADE

OPTIONS = artefact("learning").options
learning = Artefact("analysis.tables.learning", **OPTIONS)


@pytest.fixture
def single(write_cell: WriteCell) -> WriteCell:
    """Write the cell of a single backbone: how many of four are right, and the cost of a question."""
    return lambda backbone, right, cost: write_cell("single", backbone, correct=verdicts(right, 4), cost=cost)


def measured(table: Read, method: str = "gmr", seed: int = 0, benchmark: str = "gsm_hard") -> dict[str, float]:
    cell = {"contrast": "", "method": method, "seed": str(seed), "benchmark": benchmark}
    return {row["measure"]: float(row["value"]) for row in table.records if cell.items() <= row.items()}


def answers(table: Read, name: str, measure: str = "accuracy") -> dict[int, float]:
    rows = [row for row in table.records if (row["contrast"], row["measure"]) == (name, measure)]
    return {int(row["seed"]): float(row["difference"]) for row in rows}


def test_measures_of_the_test_questions(make: WriteCell) -> None:
    other = make(benchmark="humaneval", correct=[False] * 4)
    trained = make(cost_steps=0.001, cost_total=0.0025, depth=[1, 2, 3, 4], utility=[1.0, 0.5, -0.25, -1.0])
    table = learning(trained, make("gmr_lambda_2000"), other, make(seed=1, decisions=MADE, depth=DEPTH))
    values = measured(table)
    expected = {"accuracy": 75, "utility": 75 - 100 * 20 * 0.001, "cost_total": 0.0025, "own_utility": 0.0625}
    assert values == pytest.approx({**expected, "depth": 2.5})
    # One cost weight, whatever a row was trained with; benchmarks stay apart.
    assert measured(table, "gmr_lambda_2000")["utility"] == values["utility"]
    assert "own_utility" not in measured(table, "gmr_lambda_2000")
    assert measured(table, benchmark="humaneval")["accuracy"] == 0
    expected = {"write_rate": 400 / 9, "empty_memory": 25, "retrieved": 50, "retrieved_1": 100, "retrieved_2": 100 / 3}
    values = measured(table, seed=1)
    assert {name: values[name] for name in expected} == pytest.approx(expected)


def test_measures_of_the_last_updates(make: WriteCell) -> None:
    numbers = np.arange(5)
    log = pd.DataFrame({"entropy_backbone": [1.6, 0.5, 0.09, 0.2, 0.05], "equal_reward_groups": numbers / 10})
    # In the second training a gate had nothing to decide in all updates but the last.
    rare = [{"entropy_backbone": 1.0}] * 7 + [{"entropy_backbone": 1.0, "entropy_retrieval": 0.25}]
    table = learning(make(updates=log.to_dict("records")), make(seed=1, updates=rare))
    values = measured(table)
    # A quarter of five updates, rounded up, is two.
    last = {"final_entropy_backbone": (0.2 + 0.05) / 2, "final_equal_reward_groups": 0.35}
    assert {name: value for name, value in values.items() if name.startswith("final")} == pytest.approx(last)
    assert measured(table, seed=1)["final_entropy_retrieval"] == 0.25


def test_a_contrast_is_paired_by_seed(make: WriteCell) -> None:
    trained = [make(seed=seed, correct=verdicts(right, 4)) for seed, right in enumerate((4, 3, 2))]
    table = learning(*trained, *(make("gmr_untrained", seed, correct=verdicts(1, 4)) for seed in (0, 2)))
    assert answers(table, "training") == {0: 75, 2: 25}
    # Neither what is answered nor what asks about a method that the run does not have.
    assert table.notes[-1] == "Not answered, for want of cells: best_single, random."
    low, high = stats.ttest_1samp([75, 25], 0).confidence_interval(0.95)
    row = next(row for row in table.rows if row.section == "training")
    assert [entry.text for entry in row.entries] == ["75.0", "25.0", "+50.0", "2", "+75.0", "–", "+25.0"]
    interval = f"{low:+.1f} to {high:+.1f}".replace("-", "−")
    assert [entry.below for entry in row.entries[:3]] == ["± 35.4", "± 0.0", interval]


def test_the_best_single_backbone_is_the_most_accurate_of_equals_the_cheaper(
    make: WriteCell, single: WriteCell
) -> None:
    singles = [single("weak", 1, 0.001), single("dear", 3, 0.009), single("good", 3, 0.004), single("top", 2, 0.02)]
    table = learning(*singles, *(make(seed=seed, correct=[True] * 4, cost_total=0.006) for seed in (0, 1)))
    assert answers(table, "best_single") == {0: 25, 1: 25}
    assert answers(table, "best_single", "cost_total") == pytest.approx({0: 0.002, 1: 0.002})


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.integers(1, 6))
def test_a_point_is_the_mean_over_the_attempts_of_one_epoch(values: list[float], per_epoch: int) -> None:
    epochs = [values[start : start + per_epoch] for start in range(0, len(values), per_epoch)]
    numbers = np.arange(len(values))
    log = pd.DataFrame({"epoch": numbers // per_epoch, "utility": values, "trajectories": 16.0}, numbers + 1)
    curve = by_epoch(log)
    assert list(curve) == pytest.approx([statistics.fmean(epoch) for epoch in epochs], abs=1e-12)
    assert list(curve.index) == [per_epoch * place + (len(one) + 1) / 2 for place, one in enumerate(epochs)]
    small = pd.DataFrame({"x": [0.5, 1.0], "trajectories": [96.0, 32.0]})
    assert mean_of_updates(small, "x", [1, 1]).tolist() == [0.625]


def test_what_cannot_be_reported_is_refused(make: WriteCell, single: WriteCell) -> None:
    with pytest.raises(UserError, match="no cell of a method that learns"):
        learning(single("good", 3, 0.1))
    with pytest.raises(UserError, match="no results"):
        learning()
    with pytest.raises(UserError, match="cost_wait"):
        learning(make(), cost_wait=20)
    for name in ("decisions", "training"):
        folder = make(seed=len(name))
        (folder / f"{name}.parquet").write_bytes(b"PAR1 torn")
        with pytest.raises(UserError, match=rf"{name}\.parquet"):
            learning(folder)


def test_the_preset_runs_whatever_a_contrast_compares() -> None:
    contrasts = OPTIONS["contrasts"].values()
    sides = {side for contrast in contrasts for side in (contrast["a"], contrast["b"])}
    methods = {OPTIONS["single"], *sides - {"best_single"}}
    assert methods == set(config.preset("learning").methods)
    assert {measure for contrast in contrasts for measure in contrast["measures"]} <= set(MEASURES)

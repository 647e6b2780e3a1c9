"""Gate statistics against decisions made by hand, and their intervals against their first order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import traces
from analysis.finished_cells import read, updates
from analysis.statistics import Ratio, estimates, mean_of, wilson
from harness.errors import UserError
from tests.analysis.by_hand import crossed
from tests.analysis.cells import trajectory

# Question 0 stores at steps 0 and 1, question 1 at step 1 only, question 2 never, question 3 at its only step.
MADE = [
    *trajectory(0, ((), True), ((True,), True), ((True, False), False)),
    *trajectory(1, ((), False), ((), True), ((False,), False)),
    *trajectory(2, ((), False), ((), False)),
    *trajectory(3, ((), True)),
]
DEPTH = (3, 3, 2, 1)


def values(folder: Path) -> dict[str, float]:
    return {name: one.value for name, one in traces.of_gates(read(folder)).items()}


def test_gate_statistics(make: Any) -> None:
    folder = make(decisions=MADE, depth=DEPTH)
    # The order of decisions does not matter.
    assert values(make(seed=1, decisions=MADE[::-1], depth=DEPTH)) == values(folder)
    assert [one.cases for one in traces.of_gates(read(folder)).values()] == [4, 4, 4, 3, 1, 1, 2, 2, 2, 2]
    assert values(folder) == {
        "depth": 9 / 4,
        "write_rate": 4 / 9,
        "empty_memory": 1 / 4,
        # Three trajectories reach step 1, two of them step 2, where either has two earlier steps.
        "retrieved_earlier_1": pytest.approx(1 / 3),
        "retrieved_1": 1.0,
        "retrieved_mean_1": 1.0,
        "retrieved_earlier_2": pytest.approx(1 / 4),
        "retrieved_2": pytest.approx(1 / 3),
        "retrieved_mean_2": pytest.approx((1 / 2 + 0) / 2),
        "retrieved": pytest.approx(2 / 4),
    }
    # A gate that is off has no statistics.
    made = [row for row in MADE if row["name"] != "retrieve"]
    assert set(values(make(seed=2, decisions=made, depth=DEPTH))) == {"depth", "write_rate", "empty_memory"}


def test_the_training_log_has_a_row_an_update(make: Any) -> None:
    cell = read(make(updates=[{"depth": 1.5}, {"depth": 2.5, "steps": 9.0}], per_epoch=1))
    log = updates(cell)
    assert (log.index.tolist(), log["epoch"].tolist(), log["depth"].tolist()) == ([1, 2], [1, 2], [1.5, 2.5])
    assert log["steps"].isna().tolist() == [True, False]
    with pytest.raises(UserError, match=r"training\.parquet"):
        updates(read(make(seed=1, updates=None)))


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
    assert estimates([{"x": mean_of([2, 2, 2])}])["x"][:3] == (2, 2, 2)
    assert estimates([{"x": mean_of([3.0])}])["x"][:3] == (3, 3, 3)

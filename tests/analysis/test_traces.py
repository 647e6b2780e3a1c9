"""Gate statistics against decisions made by hand, and their intervals against a bootstrap of another make."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import statistics, traces, training
from analysis.ratios import Ratio, estimates, mean_of
from analysis.results import read
from analysis.statistics import wilson
from harness.errors import UserError
from tests.analysis import traced
from tests.analysis.traced import trajectory

WriteCell = Callable[..., Path]

# Question 0 stores at steps 0 and 1, question 1 at step 1 only, question 2 never, question 3 at its only step.
MADE = [
    *trajectory(0, ((), True), ((True,), True), ((True, False), False)),
    *trajectory(1, ((), False), ((), True), ((False,), False)),
    *trajectory(2, ((), False), ((), False)),
    *trajectory(3, ((), True)),
]
DEPTH = (3, 3, 2, 1)


@pytest.fixture
def make(write_cell: WriteCell) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell)


def values(folder: Path) -> dict[str, float]:
    return {name: one.value for name, one in traces.ratios(traces.read(read(folder))).items()}


def test_the_trajectories_of_a_cell(make: Any) -> None:
    found = traces.read(read(make(made=MADE, depth=DEPTH)))
    assert found.depth.tolist() == [3, 3, 2, 1]
    assert found.considered.tolist() == [3, 3, 2, 1]
    assert found.written.tolist() == [2, 1, 0, 1]
    assert found.available.tolist() == [[0, 1, 2], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert found.retrieved.tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_gate_statistics(make: Any) -> None:
    found = values(make(made=MADE, depth=DEPTH))
    assert found == {
        "depth": 9 / 4,
        "write_rate": 4 / 9,
        "empty_memory": 1 / 4,
        "retrieved_1": 1.0,
        "retrieved_mean_1": 1.0,
        "retrieved_2": pytest.approx(1 / 3),
        "retrieved_mean_2": pytest.approx((1 / 2 + 0) / 2),
    }


def test_what_is_available_is_what_was_written_before(make: Any) -> None:
    found = traces.read(read(make(made=MADE, depth=DEPTH)))
    written_before = [[0, 1, 2], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert found.available.tolist() == written_before


def test_the_order_of_decisions_does_not_matter(make: Any) -> None:
    one, other = (make(seed=seed, made=made, depth=DEPTH) for seed, made in enumerate((MADE, MADE[::-1])))
    assert values(one) == values(other)


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ("write", {"depth", "retrieved_1", "retrieved_mean_1", "retrieved_2", "retrieved_mean_2"}),
        ("retrieve", {"depth", "write_rate", "empty_memory"}),
    ],
)
def test_a_gate_that_is_off_has_no_statistics(make: Any, gone: str, left: set[str]) -> None:
    made = [row for row in MADE if row["name"] != gone]
    assert set(values(make(made=made, depth=DEPTH))) == left


def test_how_many_cases_a_value_has(make: Any) -> None:
    found = traces.ratios(traces.read(read(make(made=MADE, depth=DEPTH))))
    assert {name: one.cases for name, one in found.items()} == {
        "depth": 4,
        "write_rate": 4,
        "empty_memory": 4,
        "retrieved_1": 1,
        "retrieved_mean_1": 1,
        "retrieved_2": 2,
        "retrieved_mean_2": 2,
    }


def test_decisions_about_a_stranger_are_refused(make: Any) -> None:
    folder = make(made=[*MADE, traced.gate(99, 1, "write", True)], depth=DEPTH)
    with pytest.raises(UserError, match="'item-0099', which is no item of the cell; run"):
        traces.read(read(folder))


@pytest.mark.parametrize("name", ["decisions.parquet", "training.parquet", "training_decisions.parquet"])
def test_a_damaged_table_is_refused_in_one_line(make: Any, name: str) -> None:
    folder = make(made=MADE, depth=DEPTH, updates=[{"depth": 1.0}])
    cell = read(folder)
    pq.write_table(pq.read_table(folder / "items.parquet").select(["item_id"]), folder / name)
    readers = {"decisions.parquet": traces.read, "training.parquet": training.updates}
    with pytest.raises(UserError, match=f"{name}: not a readable table with the columns") as caught:
        readers.get(name, training.rollouts)(cell)
    assert "\n" not in str(caught.value)


def test_a_missing_table_is_refused(make: Any) -> None:
    cell = read(make(updates=None))
    with pytest.raises(UserError, match=r"training\.parquet"):
        training.updates(cell)


def test_the_training_log_has_a_row_an_update(make: Any) -> None:
    log = training.updates(read(make(updates=[{"depth": 1.5}, {"depth": 2.5, "steps": 9.0}], per_epoch=1)))
    assert log.index.tolist() == [1, 2]
    assert log["epoch"].tolist() == [1, 2]
    assert log["depth"].tolist() == [1.5, 2.5]
    assert log["steps"].isna().tolist() == [True, False]


def test_the_number_of_rollouts(make: Any) -> None:
    assert training.rollouts(read(make(rollouts=(2, 3, 6)))) == (2, 3, 6)


def resampled(top: Sequence[Sequence[float]], bottom: Sequence[Sequence[float]], count: int) -> np.ndarray:
    """The same bootstrap, resample by resample, with generators of its own."""
    generator = np.random.default_rng(99)
    seeds, questions = np.shape(top)
    found = []
    for _ in range(count):
        drawn = generator.integers(questions, size=questions)
        chosen = generator.integers(seeds, size=seeds)
        sums = [(np.take(top[seed], drawn).sum(), np.take(bottom[seed], drawn).sum()) for seed in chosen]
        ratios_ = [a / b for a, b in sums if b]
        if ratios_:
            found.append(np.mean(ratios_))
    return np.array(found)


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_interval_is_that_of_another_bootstrap(seeds: int) -> None:
    generator = np.random.default_rng(5)
    bottom = generator.integers(0, 6, size=(seeds, 60)).astype(float)
    top = np.array([generator.binomial(row.astype(int), 0.2 + 0.2 * seed) for seed, row in enumerate(bottom)], float)
    found = estimates([{"x": Ratio(*pair)} for pair in zip(top, bottom, strict=True)])["x"]
    drawn = resampled(top, bottom, 4000)
    assert found.mean == pytest.approx(np.mean([a.sum() / b.sum() for a, b in zip(top, bottom, strict=True)]))
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])), abs=0.02)
    assert found.variance == pytest.approx(drawn.var(ddof=1), rel=0.1)


def test_several_measures_at_once_are_as_one_alone() -> None:
    one, other = (Ratio(np.array(top, float), np.full(4, 2.0)) for top in ([0, 1, 2, 1], [2, 2, 0, 1]))
    both = estimates([{"a": one, "b": other}])
    assert both == {**estimates([{"a": one}]), **estimates([{"b": other}])}


def test_resamples_without_a_case_are_left_out() -> None:
    only = Ratio(np.array([1.0, 0, 0, 0, 0]), np.array([2.0, 1, 0, 0, 0]))
    found = estimates([{"x": only}])["x"]
    assert found.mean == pytest.approx(1 / 3)
    assert 0 <= found.low <= found.high <= 0.5


def test_a_share_without_spread_gets_the_interval_of_its_cases() -> None:
    never = Ratio(np.zeros(6), np.array([2.0, 2, 2, 0, 0, 0]))
    assert estimates([{"x": never}])["x"][:3] == (0, *wilson(0, 3))
    always_two = mean_of([2, 2, 2])
    assert estimates([{"x": always_two}])["x"] == (2, 2, 2, 0)


def test_a_single_question_has_an_interval_too() -> None:
    assert estimates([{"x": mean_of([3.0])}])["x"][:3] == (3, 3, 3)


def test_a_seed_without_a_case_has_no_part_in_the_mean() -> None:
    some = Ratio(np.array([1.0, 0, 1, 0]), np.ones(4))
    nothing = Ratio(np.zeros(4), np.zeros(4))
    without = estimates([{"x": some, "y": some}, {"y": some}])
    assert without["x"].mean == 0.5
    assert without == estimates([{"x": some, "y": some}, {"x": nothing, "y": some}])
    assert estimates([{}, {}]) == {}


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12).filter(
        lambda pairs: any(more + less for more, less in pairs)
    )
)
def test_a_share_lies_in_its_interval_and_that_between_0_and_1(pairs: list[tuple[int, int]]) -> None:
    top = np.array([more for more, _ in pairs], dtype=float)
    share = Ratio(top, top + np.array([less for _, less in pairs]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "RESAMPLES", 200)
        found = estimates([{"x": share}])["x"]
    assert 0 <= found.low <= found.mean <= found.high <= 1
    assert found.mean == pytest.approx(share.value)

"""The sweeps of the paper: what each method has of the setting, and the tables and figures of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis import sweeps
from analysis.figure import Figure
from analysis.source import Source
from analysis.table import BEST, NO, YES
from gmr.config import Config
from harness.errors import UserError
from harness.runner.config import methods
from harness.training.loop import UPDATES
from tests.analysis import traced
from tests.analysis.reading import depth, lambda_frontier, lambda_sweep
from tests.analysis.spending import cell_of, record_of, spend


@pytest.mark.parametrize(
    ("names", "setting", "expected"),
    [(sweeps.COST_WEIGHTS, "lambda_c", [10, 20, 50]), (sweeps.DEPTHS, "max_depth", [2, 4, 6, 8, 10])],
)
def test_the_values_are_those_the_router_is_built_with(names, setting, expected):
    found = sweeps.values(names, setting)
    assert list(found.values()) == expected
    assert found == {name: getattr(Config(**methods()[name].config), setting) for name in names}


ON_TEST = "Test questions"


def cell(write_cell, method, right, cost, *, depth=2, utilities=None, **changes):
    """A cell of 4 questions whose training had two epochs of two updates, the second update half as large."""
    folder = write_cell(method, "pool", correct=[place < right for place in range(4)], **changes)
    spend(folder, [cost] * 4, [depth, depth, depth, depth + 2])
    decisions = {"item_id": ["item-0000"], "step": [1], "name": ["halt"], "choice": ["no"]}
    pq.write_table(pa.table(decisions), folder / "decisions.parquet")
    if utilities is not None:
        write_log(folder, utilities)
    return folder


def write_log(folder, utilities):
    rows = [
        {"epoch": 1 + update // 2, "update": 1 + update, "measure": measure, "value": value}
        for update, utility in enumerate(utilities)
        for measure, value in (("utility", utility), ("trajectories", 96.0 if update % 2 == 0 else 48.0))
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=UPDATES), folder / "training.parquet")


def test_a_benchmark_has_its_own_frontier(write_cell):
    folders = [
        cell(write_cell, "gmr", 1, 5e-4),
        cell(write_cell, "gmr_lambda_50", 3, 1e-4),
        cell(write_cell, "gmr", 1, 5e-4, benchmark="humaneval"),
    ]
    table = lambda_sweep.build(Source.of(folders))
    assert [cell_of(table, row, ON_TEST, "Frontier").text for row in table.rows] == [NO, YES, YES]
    assert [row.labels for row in table.rows] == [
        ("GSM-Hard, n = 4", "20", "0"),
        ("GSM-Hard, n = 4", "50", "0"),
        ("HumanEval, n = 4", "20", "0"),
    ]


def test_accuracy_cost_depth_and_the_total_of_the_papers_size(write_cell):
    table = lambda_sweep.build(Source.of([cell(write_cell, "gmr_lambda_10", 3, 2e-4, depth=3)]))
    [row] = table.rows
    found = {title: cell_of(table, row, ON_TEST, title) for title in ("Accuracy (%)", "Cost (1e-4)", "Steps")}
    assert [entry.text for entry in found.values()] == ["75.00", "2.00", "3.50"]
    assert found["Steps"].below.startswith("3.00–")
    assert cell_of(table, row, "Total cost", "").text == f"{2e-4 * 1056:.3f}"
    assert record_of(table, lambda_c="10")["run_id"]


def test_utility_is_that_of_the_last_epoch_by_rollout(write_cell):
    """The last epoch has updates of 96 and 48 rollouts: their mean is weighted 2 to 1."""
    folders = [
        cell(write_cell, "gmr_lambda_10", 1, 1e-4, utilities=[9, 9, 0.3, 0.6]),
        cell(write_cell, "gmr", 1, 1e-4, utilities=[9, 9, 0.6, 0.9], seed=0),
        cell(write_cell, "gmr", 1, 1e-4, utilities=[9, 9, 0.0, 0.3], seed=1),
    ]
    table = lambda_sweep.build(Source.of(folders))
    utilities = [cell_of(table, row, "Training", "Utility") for row in table.rows]
    assert [(entry.text, entry.mark) for entry in utilities] == [("0.4000", BEST), ("0.4000", BEST)]
    assert [float(record["training_utility"]) for record in table.records] == pytest.approx([0.4, 0.4])
    assert [record["seeds"] for record in table.records] == ["0", "0 1"]


@pytest.fixture
def make(write_cell: Any) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell)


@pytest.fixture
def weights(make: Any) -> list[Path]:
    """λ_c = 20 costs more than 10 and is right less often."""
    return [
        make("gmr_lambda_10", steps=0.002, correct=[True, True, True, False]),
        make("gmr", steps=0.003, correct=[True, True, False, False]),
        make("gmr_lambda_50", steps=0.001, correct=[True, False, False, False]),
    ]


def frontier_of(folders: Sequence[Path]) -> Figure:
    return lambda_frontier.build(Source.of(folders))


def test_the_frontier_leaves_out_what_is_beaten(weights: list[Path]) -> None:
    figure = frontier_of(weights)
    assert [(record["lambda_c"], record["on_frontier"]) for record in figure.records] == [
        ("10", "true"),
        ("20", "false"),
        ("50", "true"),
    ]
    [panel] = traced.picture(figure).axes
    [line] = [line for line in panel.lines if len(line.get_xdata()) > 1]
    assert (line.get_drawstyle(), list(line.get_ydata())) == ("steps-post", [25, 75, 75])
    assert list(line.get_xdata())[:2] == pytest.approx([10, 20])
    assert line.get_xdata()[-1] == panel.get_xlim()[1]


@pytest.fixture
def make_math(write_cell: Any) -> functools.partial[Path]:
    return functools.partial(traced.make, write_cell, benchmark="math")


@pytest.fixture
def depths(make_math: Any) -> list[Path]:
    """φ cents of cost a question; 2 of 4 right up to φ = 6, 3 beyond."""
    return [
        make_math(method, steps=phi / 100, depth=[1, 1, 2, 2], correct=[True, True, phi > 6, False])
        for method, phi in sweeps.values(sweeps.DEPTHS, "max_depth").items()
    ]


def depth_of(folders: Sequence[Path]) -> Figure:
    return depth.build(Source.of(folders))


def test_accuracy_on_the_left_and_cost_on_the_right(depths: list[Path]) -> None:
    left, right = traced.picture(depth_of(depths)).axes
    assert left.lines[0].get_ydata() == pytest.approx([50, 50, 50, 75, 75])
    assert right.lines[0].get_ydata() == pytest.approx([200, 400, 600, 800, 1000])
    assert left.lines[0].get_xdata() == pytest.approx([2, 4, 6, 8, 10], abs=0.1)
    assert [label.get_text() for label in left.get_xticklabels()] == [f"{phi}\n(1.50)" for phi in (2, 4, 6, 8, 10)]


def test_a_method_outside_the_sweep_is_refused(make_math: Any) -> None:
    with pytest.raises(UserError, match="was given the method gmr_greedy; expected only gmr_depth_2"):
        depth_of([make_math("gmr_greedy")])
    with pytest.raises(UserError, match="was given several benchmarks"):
        depth_of([make_math(), make_math(benchmark="gsm_hard")])

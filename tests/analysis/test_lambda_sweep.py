"""Three weights of cost."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.source import Source
from analysis.table import BEST, NO, NOT_RUN, YES
from harness.training.loop import UPDATES
from tests.analysis.reading import lambda_sweep
from tests.analysis.spending import cell_of, record_of, spend

ON_TEST = "Test questions"
NAMES = ("gmr_lambda_10", "gmr", "gmr_lambda_50")


def cell(write_cell, method, right, cost, *, depth=2, utilities=None, **changes):
    """A cell of 4 questions whose training had two epochs of two updates, the second update half as large."""
    folder = write_cell(method, "pool", correct=[place < right for place in range(4)], **changes)
    spend(folder, [cost] * 4, [depth, depth, depth, depth + 2])
    decisions = {"item_id": ["item-0000"], "step": [1], "name": ["halt"], "choice": ["no"]}
    pq.write_table(pa.table(decisions), folder / "decisions.parquet")
    if utilities is not None:
        log(folder, utilities)
    return folder


def log(folder, utilities):
    rows = [
        {"epoch": 1 + update // 2, "update": 1 + update, "measure": measure, "value": value}
        for update, utility in enumerate(utilities)
        for measure, value in (("utility", utility), ("trajectories", 96.0 if update % 2 == 0 else 48.0))
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=UPDATES), folder / "training.parquet")


def sweep(write_cell, accuracies, costs):
    return lambda_sweep.build(Source.of([cell(write_cell, *one) for one in zip(NAMES, accuracies, costs, strict=True)]))


@pytest.mark.parametrize(
    ("accuracies", "costs", "expected"),
    [
        ((1, 2, 3), (1e-4, 2e-4, 3e-4), (True, True, True)),
        ((3, 2, 1), (1e-4, 2e-4, 3e-4), (True, False, False)),
        ((2, 2, 3), (2e-4, 1e-4, 3e-4), (False, True, True)),
        ((2, 2, 2), (1e-4, 1e-4, 1e-4), (True, True, True)),
    ],
)
def test_the_frontier_of_the_sweep(write_cell, accuracies, costs, expected):
    table = sweep(write_cell, accuracies, costs)
    found = [cell_of(table, row, ON_TEST, "Frontier").text for row in table.rows]
    assert found == [YES if one else NO for one in expected]
    assert [record["frontier"] for record in table.records] == [str(one).lower() for one in expected]


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


def test_without_a_log_of_the_training_there_is_no_utility(write_cell):
    table = sweep(write_cell, (1, 2, 3), (1e-4, 2e-4, 3e-4))
    assert {cell_of(table, row, "Training", "Utility").text for row in table.rows} == {NOT_RUN}
    assert {record["training_utility"] for record in table.records} == {""}
    assert any("no log of the training" in note for note in table.notes)


def test_nothing_is_published_and_the_table_says_so(write_cell):
    table = sweep(write_cell, (1, 2, 3), (1e-4, 2e-4, 3e-4))
    assert {record["published"] + record["published_total"] for record in table.records} == {""}
    assert "nothing stands beside" in table.notes[0]
    assert {cell_of(table, row, ON_TEST, "Accuracy (%)").beside for row in table.rows} == {""}

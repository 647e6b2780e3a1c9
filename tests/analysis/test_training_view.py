"""The data of the training page: against values counted and averaged beside them, from tables made by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import results
from analysis.training_view import choices, lines
from analysis.training_view.panels import PANELS, label, panels_of
from analysis.training_view.rows import Row, data, extent, rows_of, told
from harness.training.loop import TABLES
from tests.analysis import learned
from tests.analysis.learned import WriteCell

BIG, SMALL = "qwen-2.5-32B", "llama-3.2-3B"


def decided(name: str, choice: str, *, epoch: int = 1, options: int = 2, log_prob: float = -0.1) -> dict[str, Any]:
    """One decision of training, or without its epoch of the test."""
    drawn = {"item_id": "item-0000", "step": 1, "name": name, "slot": 0, "choice": choice, "options": options}
    return {**drawn, "log_prob": log_prob, "epoch": epoch, "rollout": 0}


def called(item: str, epoch: int, rollout: int) -> dict[str, Any]:
    texts = dict.fromkeys(("purpose", "backbone", "role", "key", "finish_reason"), "")
    numbers = dict.fromkeys(("step", "slot", "prompt_tokens", "completion_tokens"), 1)
    return {**texts, **numbers, "item_id": item, "epoch": epoch, "rollout": rollout, "cost": 0.1, "is_step": True}


@pytest.fixture
def make(write_cell: WriteCell) -> Any:
    """A cell that learned, with what it decided and called in training."""

    def write(
        method: str = "gmr",
        seed: int = 0,
        *,
        trained: Sequence[dict[str, Any]] = (),
        tested: Sequence[dict[str, Any]] = (),
        calls: Sequence[dict[str, Any]] = (),
        **more: Any,
    ) -> Path:
        folder = learned.make(write_cell, method, seed, made=tested, **more)
        for name, rows in {"training_calls": calls, "training_decisions": trained}.items():
            schema = TABLES[name]
            known = [{key: row.get(key) for key in schema.names} for row in rows]
            pq.write_table(pa.Table.from_pylist(known, schema), folder / f"{name}.parquet")
        return folder

    return write


def row_of(*folders: Path) -> Row:
    (row,) = rows_of(map(results.read, folders))
    return row


def panel(charts: Sequence[dict[str, Any]], key: str) -> dict[str, Any]:
    (found,) = [chart for chart in charts if chart["key"] == key]
    return found


def log_of(values: Sequence[float | None], sizes: Sequence[int], per_epoch: int = 2) -> pd.DataFrame:
    epochs = [1 + place // per_epoch for place in range(len(values))]
    columns = {"epoch": epochs, "accuracy": pd.Series(values, dtype=float).to_numpy(), "trajectories": sizes}
    return pd.DataFrame(columns, index=range(1, len(values) + 1))


@given(st.lists(st.tuples(st.none() | st.floats(0, 1), st.integers(1, 20)), min_size=1, max_size=12))
def test_points_are_the_log_and_epochs_are_means_over_attempts(points: list[tuple[float | None, int]]) -> None:
    values, sizes = zip(*points, strict=True)
    charts = lines.charts("gmr", {3: log_of(values, sizes)})
    (line,) = panel(charts, "accuracy")["lines"]
    if not any(value is not None for value in values):
        assert (line["updates"], line["epochs"]) == ({}, {})
        return
    shown = line["updates"]["3"]
    assert shown["x"] == list(range(1, len(values) + 1))
    for value, drawn in zip(values, shown["y"], strict=True):
        assert drawn is None if value is None else drawn == pytest.approx(100 * value, rel=1e-7, abs=1e-12)
    expected = []
    for begin in range(0, len(values), 2):
        known = [(value, size) for value, size in points[begin : begin + 2] if value is not None]
        if known:
            total = sum(size for _, size in known)
            places = range(begin + 1, begin + 1 + len(points[begin : begin + 2]))
            expected.append((np.mean(places), 100 * sum(value * size for value, size in known) / total))
    assert line["epochs"]["3"]["x"] == [x for x, _ in expected]
    assert line["epochs"]["3"]["y"] == pytest.approx([y for _, y in expected], rel=1e-7, abs=1e-12)


def test_the_mean_stands_where_every_seed_has_a_value() -> None:
    logs = {0: log_of([0.2, None, 0.6, 0.8], [4] * 4), 1: log_of([0.4, 0.5, 0.2], [4] * 3)}
    (line,) = panel(lines.charts("gmr", logs), "accuracy")["lines"]
    assert list(line["updates"]) == ["0", "1", "mean"]
    assert line["updates"]["mean"] == {"x": [1, 2, 3, 4], "y": [30, None, 40, None]}
    assert line["updates"]["0"]["y"] == [20, None, 60, 80]


def test_a_measure_that_one_seed_lacks_has_no_mean() -> None:
    logs = {0: log_of([0.2], [4]), 1: log_of([0.4], [4]).rename(columns={"accuracy": "depth"})}
    charts = lines.charts("gmr", logs)
    assert [list(panel(charts, key)["lines"][0]["updates"]) for key in ("accuracy", "depth")] == [["0"], ["1"]]


@pytest.mark.parametrize(
    ("module", "unit"), [("gmr", "λ_c"), ("baselines.masrouter", "κ"), ("baselines.puppeteer", "±1")]
)
def test_one_name_means_what_the_method_means_by_it(module: str, unit: str) -> None:
    (utility,) = [panel for panel in panels_of(module, ["utility"]) if panel.key == "utility"]
    assert unit in utility.unit


def test_a_measure_nobody_knows_is_shown_under_its_own_name() -> None:
    found = list(panels_of("elsewhere", ["surprise", "accuracy", "utility", "share_x"]))
    assert [panel.key for panel in found] == ["utility", "accuracy", "share_x", "surprise"]
    assert [found[0].unit, found[-1].unit] == ["of the method", "as logged"]


def test_every_panel_of_a_module_is_told_apart_and_every_label_is_short() -> None:
    assert len({(panel.key, panel.module) for panel in PANELS}) == len(PANELS)
    assert [label(name) for name in ("entropy", "entropy_role", "share_CoT", "cost_steps", "write_rate")] == [
        "action",
        "role",
        "CoT",
        "steps alone",
        "write rate",
    ]


def test_choices_are_counted_by_epoch_and_in_the_test(make: Any) -> None:
    trained = [
        *[decided("backbone", BIG)] * 3,
        decided("backbone", SMALL),
        *[decided("backbone", SMALL, epoch=2)] * 2,
        decided("write", "yes"),
        decided("short_cut", "2"),
    ]
    folder = make(trained=trained, tested=[decided("backbone", SMALL)] * 5, updates=[{"accuracy": 1}])
    (chart,) = choices.charts({0: results.read(folder)})
    assert (chart["key"], chart["options"]) == ("choice_backbone", [SMALL, BIG])
    assert chart["seeds"] == {"0": {"columns": ["1", "2", "test"], "shares": [[25, 100, 100], [75, 0, 0]]}}


def test_shares_of_several_seeds_have_a_mean(make: Any) -> None:
    cells = {
        seed: results.read(make(seed=seed, trained=[decided("role", role)], tested=[decided("role", "A")]))
        for seed, role in enumerate("AB")
    }
    (chart,) = choices.charts(cells)
    assert chart["seeds"]["mean"] == {"columns": ["1", "test"], "shares": [[50, 100], [50, 0]]}


def test_rare_options_stand_together(make: Any) -> None:
    drawn = [decided("role", f"role {number:02d}") for number in range(26) for _ in range(26 - number)]
    (chart,) = choices.charts({0: results.read(make(trained=drawn))})
    assert chart["options"] == [*(f"role {number:02d}" for number in range(7)), "19 others"]
    (shares,) = [sum(column) for column in zip(*chart["seeds"]["0"]["shares"], strict=True)]
    assert shares == pytest.approx(100)
    assert chart["seeds"]["0"]["shares"][-1] == pytest.approx([100 * sum(range(1, 20)) / sum(range(1, 27))])


def test_eight_options_are_all_named(make: Any) -> None:
    drawn = [decided("role", str(number)) for number in range(8)]
    (chart,) = choices.charts({0: results.read(make(trained=drawn))})
    assert chart["options"] == list("01234567")


def test_a_module_that_is_off_is_said_to_draw_uniformly(make: Any) -> None:
    off = [decided("role", "A", options=4, log_prob=-math.log(4)), decided("backbone", BIG, options=5)]
    shown = {chart["key"]: chart["about"] for chart in choices.charts({0: results.read(make(trained=off))})}
    assert "uniformly" in shown["choice_role"]
    assert "uniformly" not in shown["choice_backbone"]


def test_a_method_left_as_initialised_has_its_test_alone(make: Any) -> None:
    row = row_of(make("gmr_untrained", tested=[decided("backbone", BIG)]))
    found = data(row)
    assert found["lines"] == []
    assert "Left as initialised" in found["points"]
    assert "Left as initialised" in found["choices"][0]["about"]
    assert found["choices"][0]["seeds"]["0"]["columns"] == ["test"]
    assert extent(row) is None


def test_what_a_point_stands_for(make: Any) -> None:
    calls = [called(f"q{n}", epoch, rollout) for n in range(3) for epoch in (1, 2) for rollout in range(4)]
    sizes = [{"trajectories": 8, "accuracy": 1}, {"trajectories": 4, "accuracy": 1}] * 2
    row = row_of(make(calls=[*calls, called("optimizer", 1, 0)], updates=sizes, per_epoch=2))
    found = extent(row)
    assert found is not None
    assert (found.updates, found.epochs, found.questions, found.rollouts, found.sizes) == ((4,), 2, 3, 4, (8, 4))
    assert told(row) == (
        "A point is one update: 8 attempts (2 questions × 4) or 4 attempts (1 question × 4). "
        "4 updates in 2 epochs of 3 questions."
    )


def test_rows_are_methods_with_their_backbone_and_benchmark(make: Any, write_cell: WriteCell) -> None:
    folders = [make(seed=1), make(seed=0), make("puppeteer", backbone=BIG), write_cell("single", BIG)]
    found = rows_of(map(results.read, folders))
    assert [(row.key, row.chunk, list(row.cells)) for row in found] == [
        ("gmr", "training/gmr/pool/gsm_hard", [0, 1]),
        (f"puppeteer/{BIG}", f"training/puppeteer/{BIG}/gsm_hard", [0]),
    ]

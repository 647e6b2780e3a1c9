"""Forecasts: the table against runs, hand-computed sums, prices and hours, in an empty folder."""

import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.forecast import TABLE, forecast, lines, measured
from harness.files import ROOT
from harness.runner import layout
from harness.runner.layout import Cell
from harness.runner.preset import resolve
from harness.runner.results import CALLS, TRAINING_TABLES
from tests.command import gmr

COT, GMR = Cell("cot", "gsm_hard", "qwen-2.5-14B", 0), Cell("gmr", "gsm_hard", "pool", 0)
RATES = pd.read_csv(TABLE, comment="#", index_col=["method", "phase"])
TOKENS = ["prompt_tokens", "completion_tokens"]


def test_the_table_is_that_of_a_simulated_run_and_its_roughness_that_of_a_recorded_one(
    finished: Path, tmp_path: Path
) -> None:
    with ZipFile(ROOT / "evidence/open_grid/open_grid.zip") as archive:
        archive.extractall(tmp_path)
    for folder, name, methods in (
        (finished, "smoke", {"single", "gmr", "masrouter", "puppeteer"}),
        (tmp_path, "open_grid", {"single"}),
    ):
        with contextlib.chdir(folder):
            # What a search asks, and who learns from each backbone's answer, is another number by pool and questions.
            ratios = (measured(name) / RATES).drop(index=["aflow", "knn_router"], errors="ignore").dropna()
        assert methods <= {*ratios.index.unique("method")}
        assert ratios["calls"].between(1 / 2, 2).all(), ratios
        # Replies of the preset smoke have a tenth of their length.
        assert name == "smoke" or ratios[TOKENS].apply(lambda column: column.between(1 / 4, 4)).all(axis=None), ratios
    assert set(resolve("paper").methods) <= {*RATES.index.unique("method")}


def test_it_needs_nothing_prepared_and_no_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    output = gmr("forecast", "--preset", "paper", "main_table", "--speed", "8000", "1000").output
    assert "165 cells of preset paper, 0 estimated from finished cells" in output
    calls = sum(n for n in (416, 1056, 500, 129, 880)) * 5
    assert re.search(rf"^single +{calls:,} ", output, re.MULTILINE)
    assert "Hours at full load: llama-3.2-3B " in output
    assert [*tmp_path.iterdir()] == []


def test_limits_by_benchmark_answers_to_training_questions_and_second_askings_are_counted() -> None:
    preset = resolve("open_grid")
    cells = [*preset.cells(), *preset.asked_again()]
    asked = forecast(preset, cells, RATES)["calls"].sum()
    assert asked == 2 * (3 * (100 + 200) + (100 + 500) + 2 * (32 + 129))


def finish(cell: Cell, test: Sequence[str], train: Sequence[str] = (), passes: int = 1) -> None:
    """Write what a finished cell leaves: its calls by key, of 100 + 10 tokens each, about 2 and 4 questions."""
    folder = layout.cell("embedded", cell)
    folder.mkdir(parents=True)
    tokens = {"prompt_tokens": 100, "completion_tokens": 10}
    for file, schema, keys in (("calls", CALLS, test), ("training_calls", TRAINING_TABLES["training_calls"], train)):
        rows = [{"item_id": "a", "key": key, "epoch": passes, **tokens} for key in keys]
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{file}.parquet")
    (folder / "run.json").write_text(json.dumps({"data": {"n_test": 4, "n_train": 2}}))


def test_distinct_calls_of_finished_cells_are_scaled_to_questions_and_passes(folder: Path) -> None:
    finish(COT, ["a", "b", "b", "c", "d", "e", "f"])
    finish(GMR, ["a"] * 8, ["a", "b", "c", "c", *"defghijkl"], passes=3)
    preset = resolve("embedded", {"benchmarks": ["gsm_hard"], "limit": {"test": 20, "train": 10}})
    rates = measured("embedded").combine_first(RATES)
    [cot] = forecast(preset, [COT], rates).to_dict("records")
    assert [cot[name] for name in ("method", "backbone", "calls", *TOKENS)] == ["cot", "qwen-2.5-14B", 30, 3000, 300]
    # A router's calls are divided evenly; GSM-Hard has five passes, unless the run has fewer.
    for limit, passes in (({}, 5), ({"epochs": 2}, 2)):
        shorter = resolve("embedded", {"limit": {"test": 20, "train": 10, **limit}})
        amounts = forecast(shorter, [GMR], rates)
        assert amounts["calls"].tolist() == [pytest.approx((20 / 4 + 10 * passes * 12 / 2 / 3) / 5)] * 5
    # A variant is forecast as the first method of its module.
    assert forecast(preset, [replace(GMR, method="gmr_dot")], rates)["calls"].sum() > 0


def test_hours_are_by_the_speeds_that_the_check_measured_and_costs_by_the_prices_of_the_pool(folder: Path) -> None:
    finish(COT, ["a", "b", "c", "d"])
    about = {"model": "me/mine", "parameters_b": 1, "description": "My own."}
    keys = {"endpoints": "served", "benchmarks": ["gsm_hard"], "limit": {"test": 36}, "large": None}

    def said(**price: Any) -> str:
        preset = resolve("embedded", {**keys, "backbones": ["mine"], "pool": {"mine": {**about, **price}}})
        return "\n".join(lines(preset, [replace(COT, backbone="mine")]))

    # 36 calls of 100 + 10 tokens.
    priced = said(price={"input": 2.0, "output": 30.0})
    assert "Cost at the prices of the pool: 0.018.\nNo hours: state --speed, or let `gmr check" in priced
    assert "Cost at" not in said()
    path = layout.served("embedded")
    speed = {"at_once": 4, "write": 1.0, "read": 10.0}
    path.write_text(json.dumps({"weights": None, "backbones": {"mine": speed}}))
    assert said().endswith("Hours at full load: mine 0.2; 0.2 if all share one server.")

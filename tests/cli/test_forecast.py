"""A forecast against the cells it is measured on: itself, at another size, of another backbone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from cli.forecast import charges, forecast, lines, most_like, speeds
from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import Price
from harness.llm.endpoints import Endpoint
from harness.runner import config, layout
from harness.runner.config import Cell
from harness.runner.results import CALLS
from harness.training.loop import TABLES
from tests.command import gmr
from tests.small_run import prepare_questions

COT = Cell("cot", "gsm_hard", "qwen-2.5-14B", 0)
LARGE = Cell("cot", "gsm_hard", "qwen-2.5-32B", 0)
GMR = Cell("gmr", "gsm_hard", "pool", 0)
SOURCE = config.preset("embedded", {"benchmarks": ["gsm_hard"], "limit": {}})
Ids = tuple[list[str], list[str]]
Call = dict[str, object]


@pytest.fixture(autouse=True)
def questions(folder: Path) -> Ids:
    """Prepare the measured preset in a new folder; return the ids of its training and test questions."""
    prepare_questions("embedded")
    prepared = read(layout.manifest("embedded", "gsm_hard"), layout.items("embedded", "gsm_hard"))
    return [item.id for item in prepared.train], [item.id for item in prepared.test]


def call(item: str, key: str, backbone: str = "qwen-2.5-14B", prompt: int = 100) -> Call:
    """Return a use of a model; equal keys are one call."""
    given = {"item_id": item, "backbone": backbone, "key": key, "prompt_tokens": prompt, "completion_tokens": 10}
    others = {"step": 1, "purpose": "solve", "slot": 0, "role": "", "cost": 0.0, "is_step": True}
    return {**given, **others, "finish_reason": "stop", "error": None}


def finished(cell: Cell, test: Sequence[Call], passes: Iterable[Sequence[Call]] = ()) -> None:
    """Write what a finished cell leaves: its test calls, and those of each pass of its training."""
    folder = layout.cell("embedded", cell)
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(list(test), CALLS), folder / "calls.parquet")
    rows = [{"epoch": number, "rollout": 0, **one} for number, calls in enumerate(passes, 1) for one in calls]
    if rows:
        pq.write_table(pa.Table.from_pylist(rows, TABLES["training_calls"]), folder / "training_calls.parquet")
    (folder / "run.json").write_text("{}")


def of(cell: Cell, **changes: object) -> pd.Series[float]:
    preset = config.preset("embedded", {"benchmarks": ["gsm_hard"], "limit": {}, **changes})
    amounts, unlike = forecast(preset, [cell], SOURCE)
    assert not unlike
    return amounts.sum()


def test_a_cell_that_was_run_whole_is_forecast_as_it_was_up_to_the_epochs_of_the_run(questions: Ids) -> None:
    train, test = questions
    # The third pass asks nothing that the first has not.
    passes = [[call(item, f"{item}-{number % 2}") for item in train] for number in range(3)]
    finished(GMR, [call(item, item, prompt=len(item)) for item in test], [*passes, [call("optimizer", "o")]])
    amounts = of(GMR)
    assert amounts["calls"] == len(test) + 2 * len(train) + 1
    assert amounts["prompt"] == sum(map(len, test)) + 100 * (2 * len(train) + 1)
    assert amounts["completion"] == 10 * amounts["calls"]
    for epochs, learned in ((0, 0), (1, len(train)), (3, 2 * len(train)), (4, 2 * len(train) + 1)):
        assert of(GMR, limit={"epochs": epochs})["calls"] == len(test) + learned


def test_questions_scale_and_calls_about_none_do_not(questions: Ids) -> None:
    train, test = questions
    learned = [call(train[0], "a"), call(train[1], "b"), call(train[1], "b"), call("optimizer", "o")]
    finished(GMR, [call(test[0], "c"), call(test[1], "d"), call(test[1], "e")], [learned])
    amounts = of(GMR, limit={"train": 8, "test": 20})
    assert amounts["calls"] == pytest.approx(2 / 2 * 8 + 1 + 3 / 2 * 20)


def test_methods_of_ones_own_choice_are_all_that_is_forecast(questions: Ids) -> None:
    """CoT has two rows in the main table; the ablations of GMR are of no method that was chosen, and not lacking."""
    finished(COT, [call(item, item) for item in questions[1]])
    settings = ("--set", "benchmarks=[gsm_hard]", "--set", "methods=[cot]")
    output = gmr("forecast", "--preset", "embedded", "--from", "embedded", *settings).output
    assert output.startswith("2 cells of preset embedded")
    assert "are like none" not in output


def test_the_likest_cell_stands_for_one_that_was_not_run() -> None:
    measured = [COT, GMR, Cell("aflow", "gsm_hard", "qwen-2.5-14B", 0)]
    for cell, like in (
        (COT, COT),
        (Cell("gmr", "gsm_hard", "pool", 2), GMR),
        (LARGE, COT),
        (Cell("cot", "math", "qwen-2.5-32B", 0), COT),
        (Cell("complex_cot", "gsm_hard", "qwen-2.5-14B", 0), COT),
        (Cell("gmr_depth_2", "math", "pool", 0), GMR),
        (Cell("masrouter", "gsm_hard", "pool", 0), None),
        (Cell("random_matched", "gsm_hard", "pool", 0), GMR),
    ):
        assert most_like(cell, measured) == like


POOL = ("small", "middle", "large")


def own(**changes: object) -> config.Preset:
    """Return a preset with a pool of three, from the smallest on, whose replies have at most 8 tokens."""
    pool = {
        key: {"model": f"me/{key}", "parameters_b": size, "description": "My own.", "max_tokens": 8}
        for size, key in enumerate(POOL, 1)
    }
    servers = {key: {"url": f"http://localhost:{port}/v1"} for port, key in enumerate(POOL, 8001)}
    keys = {"backbones": list(POOL), "large": ["large"], "pool": pool, "servers": servers, "endpoints": "served"}
    return config.preset("embedded", {"benchmarks": ["gsm_hard"], "limit": {}, **keys, **changes})


def measured_by_health(preset: config.Preset, **speeds: float) -> None:
    """Write what ``gmr health`` does of backbones that read ten times and write once so many tokens a second."""
    backbones = {
        key: {"url": "http://x/v1", "speed": {"alone": 1, "at_once": 4, "together": n, "read": 10 * n}}
        for key, n in speeds.items()
    }
    path = layout.served(preset.name, "gsm_hard")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"weights": None, "asked": "2026-01-01", "backbones": backbones}))


def test_on_another_pool_calls_are_spread_evenly_and_hours_are_those_of_servers_that_health_has_timed(
    questions: Ids,
) -> None:
    finished(GMR, [call(item, item) for item in questions[1]])
    preset = own(limit={"test": 3})
    amounts, _ = forecast(preset, [GMR], SOURCE)
    assert sorted(amounts.index) == sorted(("gmr", key) for key in POOL)
    assert amounts["calls"].tolist() == pytest.approx([1, 1, 1])
    # No reply is longer than its backbone's.
    assert amounts["completion"].tolist() == pytest.approx([8, 8, 8])
    assert "has not timed small, middle, large" in list(lines(preset, [GMR], SOURCE))[-1]
    measured_by_health(preset, small=1.0, middle=0.5, large=0.25)
    assert speeds(preset.model_copy(update={"weights": "q4_k_m"})) == {}
    # A backbone reads 100 and writes 8 tokens: 18 s at 10 and 1 a second.
    hours = [18 * times / 3600 for times in (1, 2, 4)]
    line = list(lines(preset, [GMR], SOURCE))[-1]
    assert [float(one) for one in re.findall(r"(?<=[a-z] |; )[\d.e-]+(?=[,;]| where)", line)] == pytest.approx(
        [*hours, sum(hours)], rel=0.05
    )


def test_asked_calls_cost_what_endpoints_charge(questions: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    _, test = questions
    # Two uses of each call, of which one is asked.
    finished(COT, [call(item, item) for item in test for _ in range(2)])
    amounts, _ = forecast(SOURCE, [COT], SOURCE)
    tokens = amounts.groupby("backbone")[["prompt", "completion"]].sum()
    url, price = "http://x/v1", Price(input=2, output=30)
    free, priced = Endpoint(url=url), Endpoint(url=url, price=price, currency="EUR")
    ((currency, cost),) = charges(tokens, {"qwen-2.5-14B": priced}).to_numpy()
    assert (currency, cost) == ("EUR", pytest.approx(len(test) * (100 * 2 + 10 * 30) / 1e6))
    assert charges(tokens, {"qwen-2.5-14B": free}).empty
    with pytest.raises(UserError, match=r"of large has a price and that of qwen-2\.5-14B has none"):
        charges(tokens, {"large": priced, "qwen-2.5-14B": free})
    with pytest.raises(ValidationError, match="needs both price and currency"):
        Endpoint(url=url, price=price)
    text = (ROOT / "config" / "endpoints.hosted.example.yaml").read_text()
    monkeypatch.setenv("GMR_ENDPOINTS", "hosted.yaml")
    Path("hosted.yaml").write_text(text)
    preset = config.preset("cpu_server", {"benchmarks": ["gsm_hard"]})
    with pytest.raises(UserError, match=r"hosted\.yaml: llama-3\.2-3B\.price\.input: 'FILL-IN' should be a number"):
        list(lines(preset, [COT], SOURCE))
    Path("hosted.yaml").write_text(re.sub("FILL-IN(?=[,}])", "3", text).replace("currency: 3", "currency: CHF"))
    assert " CHF." in list(lines(preset, [COT], SOURCE))[-1]


def test_nothing_measured_and_questions_of_other_data_are_refused(questions: Ids) -> None:
    with pytest.raises(UserError, match="has finished no cell like these; name one that has by --from, or measure"):
        forecast(SOURCE, [COT], SOURCE)
    finished(COT, [call(questions[1][0], "a")])
    with pytest.raises(UserError, match=r"results/paper/data"):
        forecast(config.preset("paper"), [COT], SOURCE)

"""A forecast against the cells it is measured on: itself, at another size, of another backbone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.agents.results import CALLS
from harness.benchmarks.prepare import prepare, read
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import load
from harness.runner import config, layout
from harness.runner.config import Cell
from harness.training.loop import TABLES
from studies.forecast import forecast, hours, main, most_like

COT = Cell("cot", "gsm_hard", "qwen-2.5-14B", 0)
LARGE = Cell("cot", "gsm_hard", "qwen-2.5-32B", 0)
GMR = Cell("gmr", "gsm_hard", "pool", 0)
SOURCE = config.preset("embedded", {"benchmarks": ["gsm_hard"]})


@pytest.fixture(autouse=True)
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """Ids of the prepared training and test questions of the measured preset, in a fresh folder."""
    monkeypatch.chdir(tmp_path)
    where = layout.items("embedded", "gsm_hard"), layout.manifest("embedded", "gsm_hard")
    prepare("gsm_hard", "embedded", "official", *where)
    prepared = read(where[1], where[0])
    return [item.id for item in prepared.train], [item.id for item in prepared.test]


def call(item: str, key: str, backbone: str = "qwen-2.5-14B", prompt: int = 100) -> dict[str, object]:
    """A use of a model; equal keys are one call."""
    given = {"item_id": item, "backbone": backbone, "key": key, "prompt_tokens": prompt, "completion_tokens": 10}
    others = {"step": 1, "purpose": "solve", "slot": 0, "role": "", "cost": 0.0, "is_step": True}
    return {**given, **others, "finish_reason": "stop", "error": None}


def finished(cell: Cell, test: Sequence[dict[str, object]], passes: Iterable[Sequence[dict[str, object]]] = ()) -> None:
    """Write what a finished cell leaves: its test calls, and those of each pass of its training."""
    folder = layout.cell("embedded", cell)
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(list(test), CALLS), folder / "calls.parquet")
    rows = [{"epoch": number, "rollout": 0, **one} for number, calls in enumerate(passes, 1) for one in calls]
    if rows:
        pq.write_table(pa.Table.from_pylist(rows, TABLES["training_calls"]), folder / "training_calls.parquet")
    (folder / "run.json").write_text("{}")


def of(cell: Cell, **changes: object) -> pd.Series[float]:
    preset = config.preset("embedded", {"benchmarks": ["gsm_hard"], **changes})
    found, unlike = forecast(preset, [cell], SOURCE)
    assert not unlike
    return found.sum()


def test_a_cell_that_was_run_whole_is_forecast_as_it_was(questions: tuple[list[str], list[str]]) -> None:
    train, test = questions
    passes = [[call(item, f"{item}-{number // 2}") for item in train] for number in range(3)]
    finished(GMR, [call(item, item, prompt=len(item)) for item in test], [*passes, [call("optimizer", "o")]])
    found = of(GMR)
    assert found["used"] == len(test) + 3 * len(train) + 1
    assert found["asked"] == len(test) + 2 * len(train) + 1
    assert found["used_prompt"] == sum(map(len, test)) + 100 * (3 * len(train) + 1)
    assert found["completion"] == 10 * found["asked"]


def test_questions_scale_and_calls_about_none_do_not(questions: tuple[list[str], list[str]]) -> None:
    train, test = questions
    learned = [call(train[0], "a"), call(train[1], "b"), call(train[1], "b"), call("optimizer", "o")]
    finished(GMR, [call(test[0], "c"), call(test[1], "d"), call(test[1], "e")], [learned])
    found = of(GMR, limit={"train": 8, "test": 20})
    assert found["used"] == pytest.approx(3 / 2 * 8 + 1 + 3 / 2 * 20)
    assert found["asked"] == pytest.approx(2 / 2 * 8 + 1 + 3 / 2 * 20)


def test_methods_of_ones_own_choice_are_all_that_is_forecast(
    questions: tuple[list[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """CoT has two rows in the main table; the ablations of GMR are of no method that was chosen, and not lacking."""
    finished(COT, [call(item, item) for item in questions[1]])
    main(None, "embedded", "embedded", None, ["benchmarks=[gsm_hard]", "methods=[cot]"])
    said = capsys.readouterr().out
    assert said.startswith("2 cells of preset embedded")
    assert "are like none" not in said


def test_another_backbone_has_its_own_price(questions: tuple[list[str], list[str]]) -> None:
    _, test = questions
    finished(COT, [call(test[0], "a")])
    found, _ = forecast(config.preset("embedded"), [LARGE], SOURCE)
    assert list(found.index) == [("cot", "qwen-2.5-32B")]
    backbones = load(ROOT / "config" / "backbones.yaml")
    assert found["cost"].sum() == pytest.approx(len(test) * backbones["qwen-2.5-32B"].cost(100, 10))
    assert (hours(found, None)[1]["least"] > 0).all()


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
    ):
        assert most_like(cell, measured) == like


def test_hours_are_tokens_over_rates(tmp_path: Path) -> None:
    index = pd.MultiIndex.from_tuples([("cot", "a"), ("gmr", "a")], names=["method", "backbone"])
    amounts = pd.DataFrame({"prompt": [1000.0, 3000.0], "completion": [10.0, 30.0]}, index=index)
    table = tmp_path / "throughput.yaml"
    table.write_text("X: {a: {prefill: [1000, 2000], decode: [10, 20]}}")
    gpu, found = hours(amounts, None, table)
    assert (gpu, found.loc["a"].tolist()) == ("X", pytest.approx([(2 + 2) / 3600, (4 + 4) / 3600]))
    with pytest.raises(UserError, match="unknown GPU 'Y'"):
        hours(amounts, "Y", table)
    table.write_text("X: {a: {prefill: [0, 1], decode: [1, 1]}}")
    with pytest.raises(UserError, match="prefill"):
        hours(amounts, "X", table)


def test_nothing_measured_and_questions_of_other_data_are_refused(questions: tuple[list[str], list[str]]) -> None:
    with pytest.raises(UserError, match="has finished no cell like these; measure a slice first"):
        forecast(SOURCE, [COT], SOURCE)
    finished(COT, [call(questions[1][0], "a")])
    with pytest.raises(UserError, match=r"results/paper/data"):
        forecast(config.preset("paper"), [COT], SOURCE)

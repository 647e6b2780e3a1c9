"""The forecast of targets from cells that stand for those to come, what it says, and what came of it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from harness import config
from harness.backbones import load
from harness.config import Cell
from harness.errors import UserError
from harness.files import ROOT
from tests.workflow.forecasting.made import TEST, TRAIN, call, finished, prepared
from workflow.app import app
from workflow.commands import forecasting as _commands
from workflow.forecasting.forecast import actual, forecast
from workflow.forecasting.likeness import like
from workflow.forecasting.scaling import Amounts, total
from workflow.forecasting.sizes import size_of
from workflow.forecasting.targets import wanted
from workflow.forecasting.throughput import gpus, hours

assert _commands
COT = Cell("cot", "gsm_hard", "qwen-2.5-14B", 0)
ONE = {"benchmarks": ["gsm_hard"], "methods": ["cot"], "seeds": [0]}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    prepared("gsm_hard")
    return tmp_path


def measured_cot(questions: int = 4) -> None:
    finished(COT, [call(f"test/{number}", str(number)) for number in range(questions)])


def of(result: Amounts, column: str) -> float:
    return float(result.point[column].sum())


def test_sizes_are_the_paper_s_with_its_limits() -> None:
    paper = config.preset("paper")
    gmr = Cell("gmr", "gsm_hard", "pool", 0)
    assert size_of(paper, gmr, "rehearsal").passes == 5
    found = size_of(paper, Cell("aflow", "gsm_hard", "qwen-2.5-14B", 0), "rehearsal")
    assert (found.test, found.train, found.passes, found.searches) == (TEST, TRAIN, 21, True)
    cut = config.preset("paper", {"limit": {"share": 0.25, "epochs": 2}})
    assert (size_of(cut, gmr, "rehearsal").test, size_of(cut, gmr, "rehearsal").train) == (10, 3)
    assert size_of(cut, gmr, "rehearsal").passes == 2
    assert size_of(paper, COT, "rehearsal").train == 0


def test_questions_of_other_data_are_not_counted() -> None:
    with pytest.raises(UserError, match=r"results/embedded/data/gsm_hard\.json is needed"):
        size_of(config.preset("embedded"), COT, "rehearsal")


def test_another_backbone_has_its_own_price() -> None:
    measured_cot()
    larger = Cell("cot", "gsm_hard", "qwen-2.5-32B", 0)
    source, paper = config.preset("rehearsal"), config.preset("paper")
    found = forecast(paper, wanted(["results/paper/cells/cot/gsm_hard/qwen-2.5-32B/seed0/run.json"], paper), source)
    (one,) = found.cells
    backbone = load(ROOT / "config" / "backbones.yaml")["qwen-2.5-32B"]
    assert (one.cell, one.source, one.likeness) == (larger, COT, "another backbone")
    assert list(one.amounts.point.index) == ["qwen-2.5-32B"]
    assert of(one.amounts, "asked") == TEST
    assert of(one.amounts, "cost") == pytest.approx(TEST * backbone.cost(100, 10))
    assert float(one.amounts.high["asked"].sum()) > TEST
    assert one.disk.logs == pytest.approx(1000 * TEST / 4)


@pytest.mark.parametrize(
    ("cell", "how"),
    [
        (COT, "itself"),
        (Cell("gmr", "gsm_hard", "pool", 2), "another seed"),
        (Cell("cot", "gsm_hard", "qwen-2.5-32B", 0), "another backbone"),
        (Cell("cot", "math", "qwen-2.5-32B", 0), "another benchmark"),
        (Cell("complex_cot", "gsm_hard", "qwen-2.5-14B", 0), "a variant of the method"),
        (Cell("gmr_depth_2", "math", "pool", 0), "a variant on another benchmark"),
        (Cell("masrouter", "gsm_hard", "pool", 0), None),
    ],
)
def test_the_likest_cell_stands_for_one_that_was_not_run(cell: Cell, how: str | None) -> None:
    found = like(cell, [COT, Cell("gmr", "gsm_hard", "pool", 0), Cell("aflow", "gsm_hard", "qwen-2.5-14B", 0)])
    assert (found and found[1].words) == how


def test_targets_are_those_of_snakemake() -> None:
    paper = config.preset("paper")
    table = wanted(["reports/main_table.tex"], paper)
    assert list(table.cells) == config.cells(paper)
    assert wanted(["reports/paper/main_table.csv"], paper) == wanted(["main_table"], paper) == table
    assert set(table.cells) < set(wanted(["all"], paper).cells)
    assert wanted(["hw_cost.pdf"], paper).timed
    assert wanted(["reports/ablation/no_halting.tex"], paper).cells


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("main_tabel", "unknown target 'main_tabel'; did you mean 'main_table'"),
        ("reports/embedded/main_table.tex", "is of preset embedded, while --preset is paper"),
        ("results/paper/world.json", "is the result of no cell"),
        ("simulator_sensitivity", "cannot be made of preset paper"),
    ],
)
def test_what_is_no_target_is_told(target: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        wanted([target], config.preset("paper"))


def test_hours_are_tokens_over_rates(tmp_path: Path) -> None:
    table = tmp_path / "throughput.yaml"
    table.write_text("X: {qwen-2.5-14B: {prefill: [1000, 2000], decode: [10, 20]}}")
    measured_cot(TEST)
    preset = config.preset("rehearsal", ONE)
    found = forecast(preset, wanted(["results/rehearsal/cells/cot/gsm_hard/qwen-2.5-14B/seed0"], preset), preset)
    one = hours(found.amounts, "X", table)["qwen-2.5-14B"]
    assert one.low == pytest.approx((TEST * 100 / 2000 + TEST * 10 / 20) / 3600)
    assert one.high == pytest.approx((TEST * 100 / 1000 + TEST * 10 / 10) / 3600)
    with pytest.raises(UserError, match="unknown GPU 'Y'"):
        hours(found.amounts, "Y", table)
    table.write_text("X: {qwen: {prefill: [0, 1], decode: [1, 1]}}")
    with pytest.raises(UserError, match="prefill"):
        hours(found.amounts, "X", table)


def test_every_backbone_has_rates_for_every_gpu() -> None:
    for gpu in gpus():
        measured_cot()
        for key in load(ROOT / "config" / "backbones.yaml"):
            frame = forecast_of(key)
            assert hours(frame, gpu)[key].low > 0


def forecast_of(backbone: str) -> Amounts:
    import pandas as pd

    from workflow.forecasting.measured import COLUMNS

    frame = pd.DataFrame([dict.fromkeys(COLUMNS, 1000.0)], index=[backbone])
    return total([Amounts(frame, frame, frame)])


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["forecast", *words])
    return result.exit_code, result.output if result.exception is None else str(result.exception)


def test_the_command_tells_calls_tokens_cost_hours_and_bytes() -> None:
    measured_cot()
    status, said = run("results/paper/cells/cot/gsm_hard/qwen-2.5-14B/seed0/run.json")
    assert status == 0
    assert said.startswith("SIMULATED BACKBONES were measured")
    assert "1 cells, from rehearsal (1 measured themselves)" in said
    row = next(line for line in said.splitlines() if line.startswith("qwen-2.5-14B"))
    assert row.split()[1:3] == ["40", "40"]
    assert "GPU-hours of one H100-80GB" in said
    assert "assumptions" in said
    assert "Storage: logs 10kB" in said


def test_scripts_get_the_same_numbers() -> None:
    measured_cot()
    _, said = run("results/paper/cells/cot/gsm_hard/qwen-2.5-14B/seed0/run.json", "--json")
    found = orjson.loads(said)
    assert found["all"]["asked"]["point"] == found["methods"]["cot"]["uses"]["point"] == TEST
    assert found["cells"] == {"itself": 1}
    assert found["actual"] is None


def test_afterwards_the_forecast_stands_beside_what_was() -> None:
    measured_cot()
    target = "results/paper/cells/cot/gsm_hard/qwen-2.5-14B/seed0/run.json"
    status, said = run(target, "--actual")
    assert status == 1
    assert "none of these cells of preset paper is finished" in said
    prepared("gsm_hard", "paper")
    finished(COT, [call(f"test/{n}", str(n), prompt=150) for n in range(TEST)], preset="paper")
    status, said = run(target, "--actual")
    row = next(line for line in said.splitlines() if line.startswith("cot ") and "->" in line)
    assert "40 -> 40 (x1.00)" in row
    assert "4.4k -> 6.4k (x1.45)" in row
    done = actual(config.preset("paper"), [COT])
    assert done is not None
    assert of(done.amounts, "prompt") == 150 * TEST


def test_timing_jobs_ask_everything_once_more() -> None:
    cell = Cell("gmr", "humaneval", "pool", 0)
    prepared("humaneval", train=2, test=2)
    finished(cell, [call("test/0", "a"), call("test/0", "a"), call("test/1", "b")], [[call("train/0", "c")]])
    paper = config.preset("paper", {"benchmarks": ["humaneval"]})
    found = forecast(
        paper, wanted(["results/paper/timings/gmr/humaneval/pool/seed0/timing.json"], paper), config.preset("rehearsal")
    )
    assert found.timings is not None
    assert of(found.timings, "asked") == of(found.timings, "uses") == 3


def test_nothing_measured_is_one_line_that_says_how_to_measure() -> None:
    with pytest.raises(UserError, match=r"measure a slice first.*share: 0\.05"):
        forecast(
            config.preset("paper", ONE), wanted(["main_table"], config.preset("paper", ONE)), config.preset("rehearsal")
        )


def test_what_nothing_tells_about_is_named() -> None:
    measured_cot()
    paper = config.preset("paper", {"benchmarks": ["gsm_hard"]})
    status, said = run("main_table", "--set", "benchmarks=[gsm_hard]")
    assert status == 0
    assert "further cells cannot be reckoned" in said
    assert "masrouter" in said
    assert wanted(["main_table"], paper).cells

"""The scenarios of a sensitivity run, what flips between them, and the table that says so."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from analysis.frames import IDENTITY
from analysis.sensitivity import conclusions, plan
from analysis.source import Source
from analysis.table import DAGGER
from analysis.tables import simulator_sensitivity as simulator_sensitivity_module
from harness.errors import UserError
from harness.runner import config, layout
from harness.runner.config import Preset
from harness.simulator.parameters import load_settings
from tests.analysis.conftest import WriteCell
from tests.analysis.reading import simulator_sensitivity
from tests.analysis.spending import spend

EMBEDDED = config.preset("embedded")
CONFIG = """
parameters: [slope]
conclusions:
  - title: GMR − Single
    measure: accuracy
    benchmark: humaneval
    first: {method: gmr, backbone: pool}
    second: {method: single, backbone: qwen-2.5-32B}
  - title: GMR / Single
    measure: cost
    benchmark: humaneval
    first: {method: gmr, backbone: pool}
    second: {method: single, backbone: qwen-2.5-32B}
"""
N = 40


@pytest.fixture
def stated_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small study: one parameter, two conclusions."""
    path = tmp_path / "sensitivity.yaml"
    path.write_text(CONFIG)
    monkeypatch.setattr(simulator_sensitivity_module, "plan", lambda preset: plan(preset, path))
    monkeypatch.setattr(simulator_sensitivity_module, "conclusions", lambda preset: conclusions(preset, path))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def run(stated_file: Path, write_cell: WriteCell, verdicts: Callable[[int, int], list[bool]]) -> Callable[..., Preset]:
    """Write the cells of three scenarios: how many of 40 GMR got right in each; the other row always got 20."""

    def write(right: Mapping[str, int], n: int = N, **changes: object) -> Preset:
        for preset, correct in right.items():
            rows = {("gmr", "pool"): correct, ("single", "qwen-2.5-32B"): n // 2}
            for (method, backbone), count in rows.items():
                folder = write_cell(
                    method,
                    backbone,
                    "humaneval",
                    correct=verdicts(count, n),
                    **{"preset": preset, "calibrated": method == "single", **changes},
                )
                target = layout.RESULTS / preset / "cells" / method / "humaneval" / backbone / "seed0"
                shutil.move(folder, target)
        return EMBEDDED

    return write


def scenarios(stated: int, low: int, high: int) -> dict[str, int]:
    return {"embedded": stated, "embedded@slope=4.0": low, "embedded@slope=7.0": high}


def test_the_plan_moves_every_parameter_to_both_ends_and_has_the_stated_values_first():
    found = plan(EMBEDDED)
    assert (found[0].parameter, found[0].preset) == ("", "embedded")
    ranges = {name: one.range for name, one in load_settings().assumed.items()}
    moved = {(scenario.parameter, scenario.value) for scenario in found[1:]}
    assert moved == {(name, end) for name in {scenario.parameter for scenario in found[1:]} for end in ranges[name]}
    assert len(found) == len({scenario.preset for scenario in found}) == 1 + len(moved)
    for scenario in found:
        # The names are those that the rules of the workflow admit, and each is a preset that can have its cells.
        assert re.fullmatch(r"embedded(@\w+=[\d.]+)?", scenario.preset)
        preset = config.preset(scenario.preset)
        assert preset.simulator == ({scenario.parameter: scenario.value} if scenario.parameter else {})
        for cell, folder in zip(scenario.cells, scenario.folders, strict=True):
            config.check_cell(preset, cell)
            assert (folder, cell.seed) == (layout.cell(scenario.preset, cell), EMBEDDED.seeds[0])


def test_what_a_preset_lacks_has_no_scenarios():
    assert plan(config.preset("paper")) == plan(config.preset("embedded@slope=4.0")) == []
    assert plan(EMBEDDED.model_copy(update={"benchmarks": ("math",)})) == []
    one = EMBEDDED.model_copy(update={"benchmarks": ("gsm_hard",)})
    assert {cell.benchmark for scenario in plan(one) for cell in scenario.cells} == {"gsm_hard"}
    pool = conclusions(EMBEDDED.model_copy(update={"backbones": ("llama-3.2-3B",)}))
    assert {key.backbone for conclusion in pool for key in (conclusion.first, conclusion.second)} == {"pool"}
    with pytest.raises(UserError, match="preset paper has no scenarios"):
        simulator_sensitivity.build(Source(preset=config.preset("paper")))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[slope]", "[slop]", "unknown parameter 'slop'; did you mean 'slope'"),
        ("method: gmr", "method: gmrr", "unknown method 'gmrr'; did you mean 'gmr'"),
        ("qwen-2.5-32B", "qwen-2.5-32", "unknown backbone 'qwen-2.5-32'.*sensitivity.yaml"),
    ],
)
def test_a_slip_in_the_file_is_refused(tmp_path: Path, old: str, new: str, message: str):
    path = tmp_path / "sensitivity.yaml"
    path.write_text(CONFIG.replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        plan(EMBEDDED, path)


@pytest.mark.parametrize(
    ("stated", "low", "high", "decisions", "flipped"),
    [
        (35, 35, 5, ["holds", "holds", "fails"], [False, False, True]),
        (21, 19, 35, ["open", "open", "holds"], [False, True, False]),
        (20, 21, 19, ["open", "open", "open"], [False, False, False]),
        (19, 20, 21, ["open", "open", "open"], [False, False, True]),
    ],
)
def test_what_flips(
    run: Callable[..., Preset], stated: int, low: int, high: int, decisions: list[str], flipped: list[bool]
):
    """Against 20 of 40 right: a tie is on neither side, so it neither flips nor is flipped."""
    made = simulator_sensitivity.build(Source(preset=run(scenarios(stated, low, high))))
    found = made.frame[made.frame["measure"] == "accuracy"]
    assert list(found["decision"]) == decisions
    assert list(found["flipped"]) == flipped
    assert list(found["preset"]) == list(scenarios(0, 0, 0))
    assert list(found["measured"]) == pytest.approx([(count - 20) / 40 for count in (stated, low, high)])


@pytest.mark.parametrize(("dear", "decision", "ratio"), [("single", "holds", 0.5), ("gmr", "fails", 4.0)])
def test_a_cost_conclusion_is_that_the_first_is_cheaper(
    run: Callable[..., Preset], dear: str, decision: str, ratio: float
):
    """Every question of a made cell costs the same, half of it in the final call, which GMR's cost leaves out."""
    preset = run(scenarios(20, 20, 20))
    if dear == "gmr":
        for folder in layout.RESULTS.glob("*/cells/gmr/humaneval/pool/seed0"):
            spend(folder, [1.0] * N)
    found = simulator_sensitivity.build(Source(preset=preset)).frame
    costs = found[found["measure"] == "cost"]
    assert list(costs["measured"]) == pytest.approx([ratio] * 3)
    assert set(costs["decision"]) == {decision}


def test_the_table_and_its_records(run: Callable[..., Preset]):
    made = simulator_sensitivity.build(Source(preset=run(scenarios(35, 36, 5))))
    # 89.84 and 84.37 are printed.
    assert {row.labels[:2]: row.entries[0][:4] for row in made.rows} == {
        ("in the paper", ""): ("+5.47", "", "", ""),
        ("as stated", ""): ("+37.50", "", DAGGER, "holds"),
        ("slope (5)", "4"): ("+40.00", "", DAGGER, ""),
        ("slope (5)", "7"): ("−37.50", "", f"{DAGGER}‡", "fails"),
    }
    notes = " ".join(made.notes)
    assert "Flipped (‡): GMR − Single (HumanEval, accuracy) at slope = 7." in notes
    assert "Decided otherwise: GMR − Single (HumanEval, accuracy) holds as stated, fails at slope = 7." in notes
    assert (made.simulated, "One training seed (0)" in notes) == (True, True)
    last = made.records[-2]
    assert (last["parameter"], last["value"], last["flipped"]) == ("slope", "7", "true")
    assert (last["measured"], last["decision"], last["stated_decision"]) == ("-0.375", "fails", "holds")
    assert float(last["published"]) == pytest.approx(0.0547)
    assert all(last[f"{side}_{name}"] for side in ("first", "second") for name in IDENTITY)


def test_a_scenario_that_was_not_run_is_named(run: Callable[..., Preset]):
    with pytest.raises(UserError, match=r"embedded@slope=7\.0.* missing"):
        simulator_sensitivity.build(Source(preset=run({"embedded": 35, "embedded@slope=4.0": 36})))

"""The scenarios of a sensitivity run, what flips between them, and the table that says so."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.frames import IDENTITY
from analysis.sensitivity import conclusions, plan
from analysis.source import Source
from analysis.table import DAGGER
from analysis.tables import simulator_sensitivity as module
from harness.errors import UserError
from harness.runner import config, layout
from harness.simulator.parameters import load_settings
from tests.analysis.cells import verdicts
from tests.analysis.reading import Read as Table
from tests.analysis.reading import simulator_sensitivity

EMBEDDED = config.preset("embedded")
CONFIG = """
parameters: [slope]
conclusions:
  - title: GMR − Single
    measure: accuracy
    benchmark: humaneval
    first: &first {method: gmr, backbone: pool}
    second: &second {method: single, backbone: qwen-2.5-32B}
  - title: GMR / Single
    measure: cost
    benchmark: humaneval
    first: *first
    second: *second
"""
PRESETS = ["embedded", "embedded@slope=4.0", "embedded@slope=7.0"]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_cell: Any) -> Callable[..., Table]:
    """The table of a study of one parameter and two conclusions, of how many of 40 GMR got right in each scenario; the
    other row always got 20.
    """
    path = tmp_path / "sensitivity.yaml"
    path.write_text(CONFIG)
    monkeypatch.setattr(module, "plan", lambda preset: plan(preset, path))
    monkeypatch.setattr(module, "conclusions", lambda preset: conclusions(preset, path))
    monkeypatch.chdir(tmp_path)

    def build(*right: int, gmr_cost: float | None = None) -> Table:
        for preset, correct in zip(PRESETS, right, strict=False):
            for method, backbone, count in (("gmr", "pool", correct), ("single", "qwen-2.5-32B", 20)):
                made = {"correct": verdicts(count, 40), "preset": preset, "calibrated": method == "single"}
                if gmr_cost and method == "gmr":
                    made["cost"] = gmr_cost
                folder = write_cell(method, backbone, "humaneval", **made)
                target = layout.RESULTS / preset / "cells" / method / "humaneval" / backbone / "seed0"
                shutil.move(folder, target)
        return simulator_sensitivity.build(Source(preset=EMBEDDED))

    return build


def test_the_plan_moves_every_parameter_to_both_ends_and_has_the_stated_values_first() -> None:
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


def test_a_slip_in_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sensitivity.yaml"
    path.write_text(CONFIG.replace("[slope]", "[slop]"))
    with pytest.raises(UserError, match="unknown parameter 'slop'; did you mean 'slope'"):
        plan(EMBEDDED, path)


@pytest.mark.parametrize(
    ("right", "decisions", "flipped"),
    [
        ((21, 19, 35), ["open", "open", "holds"], [False, True, False]),
        ((20, 21, 19), ["open", "open", "open"], [False, False, False]),
        ((19, 20, 21), ["open", "open", "open"], [False, False, True]),
    ],
)
def test_what_flips(build: Any, right: tuple[int, ...], decisions: list[str], flipped: list[bool]) -> None:
    """Against 20 of 40 right: a tie is on neither side, so it neither flips nor is flipped."""
    made = build(*right).frame
    found = made[made["measure"] == "accuracy"]
    assert (list(found["decision"]), list(found["flipped"]), list(found["preset"])) == (decisions, flipped, PRESETS)
    assert list(found["measured"]) == pytest.approx([(count - 20) / 40 for count in right])


@pytest.mark.parametrize(("gmr_cost", "decision", "ratio"), [(None, "holds", 0.5), (1.0, "fails", 4.0)])
def test_a_cost_conclusion_is_that_the_first_is_cheaper(build: Any, gmr_cost: Any, decision: str, ratio: float) -> None:
    """Every question of a made cell costs the same, half of it in the final call, which GMR's cost leaves out."""
    found = build(20, 20, 20, gmr_cost=gmr_cost).frame
    costs = found[found["measure"] == "cost"]
    assert (list(costs["measured"]), set(costs["decision"])) == (pytest.approx([ratio] * 3), {decision})


def test_the_table_and_its_records(build: Any) -> None:
    made = build(35, 36, 5)
    # 89.84 and 84.37 are printed.
    assert {row.labels[:2]: (row.entries[0][0], *row.entries[0][2:4]) for row in made.rows} == {
        ("in the paper", ""): ("+5.47", "", ""),
        ("as stated", ""): ("+37.50", DAGGER, "holds"),
        ("slope (5)", "4"): ("+40.00", DAGGER, ""),
        ("slope (5)", "7"): ("−37.50", f"{DAGGER}‡", "fails"),
    }
    notes = " ".join(made.notes)
    assert "Flipped (‡): GMR − Single (HumanEval, accuracy) at slope = 7." in notes
    assert "Decided otherwise: GMR − Single (HumanEval, accuracy) holds as stated, fails at slope = 7." in notes
    last = made.records[-2]
    assert (last["parameter"], last["value"], last["flipped"]) == ("slope", "7", "true")
    assert (last["measured"], last["decision"], last["stated_decision"]) == ("-0.375", "fails", "holds")
    assert float(last["published"]) == pytest.approx(0.0547)
    assert all(last[f"{side}_{name}"] for side in ("first", "second") for name in IDENTITY)


def test_a_scenario_that_was_not_run_is_named(build: Any) -> None:
    with pytest.raises(UserError, match=r"embedded@slope=7\.0.* missing"):
        build(35, 36)

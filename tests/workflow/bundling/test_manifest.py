"""What a bundle says of the run, and of the terms of its parts."""

import dataclasses

import pytest

from harness.errors import UserError
from harness.files import ROOT
from harness.runner import config
from harness.runner.config import Preset
from harness.yaml_files import parse
from workflow.bundling import manifest, source
from workflow.bundling.contents import Contents
from workflow.bundling.settings import settings


def empty(preset: Preset) -> Contents:
    return Contents(preset, ["main_table"], [], [], [], [])


def licences(preset: Preset) -> dict[str, str]:
    return {one["of"]: one["licence"] for one in manifest.facts(empty(preset), questions=True)["licences"]}


@pytest.mark.parametrize("name", config.preset_names())
@pytest.mark.parametrize("changes", [{}, {"seeds": [3, 1], "limit": {"test": 5}, "max_error_share": 0.5}])
def test_settings_make_the_preset_again(name: str, changes: dict[str, object]) -> None:
    chosen = config.preset(name, changes)
    again = config.preset(name, settings(chosen))
    assert dataclasses.replace(again, budget=None, in_flight=None) == dataclasses.replace(
        chosen, budget=None, in_flight=None
    )


def test_settings_hold_whatever_the_file_of_the_preset_says_then() -> None:
    recorded = config.preset("smoke", {"length_scale": 0.5, "benchmarks": ["mbpp"]})
    assert config.preset("embedded", settings(recorded)) == dataclasses.replace(recorded, name="embedded")


def test_settings_leave_out_what_no_result_shows() -> None:
    chosen = config.preset("smoke", {"in_flight": 3, "budget": {"calls": 10}})
    assert settings(chosen) == settings(config.preset("smoke"))


def test_every_question_and_model_of_a_real_run_has_a_licence() -> None:
    found = licences(config.preset("paper"))
    assert found["the questions of mbpp"] == "CC-BY-4.0"
    assert found["the replies of llama-3.1-8B"] == "Llama 3.1 Community License"
    assert len(found) == 5 + 5 + 2


def test_a_simulated_run_on_its_own_questions_names_the_suite_and_the_encoder_alone() -> None:
    assert set(licences(config.preset("embedded"))) == {"the sentence encoder behind the embeddings", "everything else"}


def test_whatever_can_be_run_has_a_licence() -> None:
    known = parse(ROOT / "config" / "licences.yaml")
    assert set(parse(ROOT / "config" / "benchmarks.yaml")) == set(known["questions"])
    assert set(parse(ROOT / "config" / "backbones.yaml")) == set(known["backbones"])


def test_weights_of_nobody_are_not_put_under_the_terms_of_those_they_stand_for() -> None:
    assert licences(config.preset("cpu_server"))["the replies"] == "Apache-2.0"
    assert not [part for part in licences(config.preset("cpu_server")) if "qwen" in part]
    assert licences(config.preset("paper_4bit")) == licences(config.preset("paper"))


def test_a_backbone_without_a_licence_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    known = parse(ROOT / "config" / "licences.yaml")
    del known["backbones"]["qwen-2.5-14B"]
    monkeypatch.setattr(manifest, "parse", lambda path: known)
    with pytest.raises(UserError, match=r"licences\.yaml says nothing of qwen-2\.5-14B"):
        licences(config.preset("paper"))


def test_every_file_of_the_configuration_is_accounted_for() -> None:
    """A new one has to be put to those that decide about results, or here."""
    others = {"config", "endpoints", "faults", "licences", "throughput"}
    known = {path.stem for path in source.configuration()} | others
    assert {path.stem for path in (ROOT / "config").glob("*.yaml")} == known

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.simulator.parameters import DEFAULT_FILE, Settings, load_settings


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = DEFAULT_FILE.read_text()
    assert old in text
    path = tmp_path / "simulator.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


def test_every_assumed_number_lies_in_its_range(settings: Settings):
    for name, entry in settings.document["parameters"].items():
        low, high = entry["range"]
        centre = entry["value"] if isinstance(entry["value"], int | float) else 1.0
        assert low <= centre <= high, name


def test_every_calibrated_number_names_its_source(settings: Settings):
    for section in ("published_accuracy", "published_cost"):
        assert settings.document[section]["source"].startswith("calibrated: ")


def test_published_averages_of_the_single_call_rows(settings: Settings):
    # The last column of the published table, to catch a mistyped cell.
    averages = {"llama-3.2-3B": 43.62, "llama-3.1-8B": 51.85, "mistral-nemo-12B": 44.83}
    averages |= {"qwen-2.5-14B": 72.06, "qwen-2.5-32B": 73.86}
    styled = {"step_by_step": {"qwen-2.5-14B": 72.11, "qwen-2.5-32B": 74.83}}
    styled |= {"complex": {"qwen-2.5-14B": 71.36, "qwen-2.5-32B": 74.95}, "direct": averages}
    for style, rows in styled.items():
        for backbone, average in rows.items():
            cells = [settings.accuracy[benchmark][style][backbone] for benchmark in settings.accuracy]
            assert abs(sum(cells) / len(cells) - average) < 0.0051


def test_what_is_stated_stands_beside_what_is_published_and_never_in_its_place(tmp_path: Path, settings: Settings):
    weekdays = "{direct: {mine: 5.0}, step_by_step: {mine: 6.0}, complex: {mine: 7.0}}"
    stated = f"stated_accuracy: {{math: {{direct: {{mine: 12.0, qwen-2.5-14B: 1.0}}}}, weekdays: {weekdays}}}"
    found = load_settings(changed(tmp_path, "stated_accuracy: {}", stated)).accuracy
    assert found["math"]["direct"] == {**settings.accuracy["math"]["direct"], "mine": 12.0}
    assert found["weekdays"]["direct"] == {"mine": 5.0}


def test_override_replaces_one_value(settings: Settings):
    other = load_settings(overrides={"slope": 4.0})
    assert other.parameters.slope == 4.0
    assert other.parameters.disagreement_sd == settings.parameters.disagreement_sd
    assert other.document["parameters"]["slope"]["value"] == 4.0
    assert settings.parameters.slope == 5.0


def test_ranges_cover_every_parameter(settings: Settings):
    assert set(settings.ranges()) == set(settings.document["parameters"])


@pytest.mark.parametrize("overrides", [{"slop": 4.0}, {"slope": "steep"}, {"slope": -1}, {"wrong_weights": [1.0]}])
def test_impossible_overrides_are_refused(overrides: dict[str, object]):
    with pytest.raises(UserError, match=r"simulator\.yaml"):
        load_settings(overrides=overrides)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  slope:\n", "  slop:\n", "slop"),
        ("value: 5.0", "value: fast", "slope"),
        ("source: assumed", "source: guessed", "assumed"),
        ("range: [4.0, 7.0]", "range: [4.0]", "range"),
        ("  feedback_discernment:\n", "  feedback_discernment:\n    note: x\n", "note"),
        ('accuracy: "calibrated: main', 'accuracy: "somewhere: main', "somewhere"),
        ("stated_accuracy: {}", "stated_accuracy: {math: {direct: {mine: 143.27}}}", "143.27"),
    ],
)
def test_a_broken_file_is_refused_with_one_line(tmp_path: Path, old: str, new: str, message: str):
    path = changed(tmp_path, old, new)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        load_settings(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)

import re
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.files import read_yaml
from harness.simulator.parameters import DEFAULT_FILE, Settings, load_settings


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = DEFAULT_FILE.read_text()
    assert old in text
    path = tmp_path / "simulator.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


def test_every_assumed_number_lies_in_its_range() -> None:
    for name, entry in read_yaml(DEFAULT_FILE)["parameters"].items():
        (low, high), value = entry["range"], entry["value"]
        assert low <= (1.0 if isinstance(value, dict | list) else value) <= high, name


def test_what_is_stated_stands_beside_what_is_published_and_never_in_its_place(
    tmp_path: Path, settings: Settings
) -> None:
    weekdays = "{direct: {mine: 5.0}, step_by_step: {mine: 6.0}, complex: {mine: 7.0}}"
    stated = f"stated_accuracy: {{math: {{direct: {{mine: 12.0, qwen-2.5-14B: 1.0}}}}, weekdays: {weekdays}}}"
    found = load_settings(changed(tmp_path, "stated_accuracy: {}", stated)).accuracy
    assert found["math"]["direct"] == {**settings.accuracy["math"]["direct"], "mine": 12.0}
    assert found["weekdays"]["direct"] == {"mine": 5.0}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  slope:\n", "  slop:\n", "slop"),
        ("value: 5.0", "value: fast", "slope"),
        ("stated_accuracy: {}", "stated_accuracy: {math: {direct: {mine: 143.27}}}", "143.27"),
        ("stated_accuracy: {}", "stated_accuracy: {weekdays: {direct: {mine: 3.0}}}", "at least 3 items"),
        ("stated_cost: {}", "stated_cost: {weekdays: {n: 3}}", "missing"),
        ("stated_cost: {}", "stated_cost: {gsm_hard: {direct: 5}}", "gsm_hard.direct: 5 should be a mapping"),
        ("lender: gsm_hard", "lender: gsm_hart", "did you mean 'gsm_hard'?"),
    ],
)
def test_a_broken_file_is_refused_with_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        load_settings(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)

"""Reading YAML: every way a file can be none ends in one line that names it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.files import read_yaml, yaml_value, yaml_values

# The plain loader and the fast one differ in the line ends that only Unicode has.
TEXT = st.text(st.characters(exclude_characters="\x85\u2028\u2029", codec="utf-8"), max_size=9)


@given(
    document=st.recursive(
        st.none() | st.booleans() | st.integers() | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=8,
    )
)
def test_reads_what_the_plain_safe_loader_reads(tmp_path_factory: pytest.TempPathFactory, document: object) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    assert read_yaml(path) == yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"a: 1\nb: 2\na: 3\n", "line 3: duplicate key 'a'"),
        (b"outer:\n  a: 1\n  a: 1\n", "line 3: duplicate key 'a'"),
        (b"? [a, b]\n: 1\n", "line 1: found unhashable key"),
        (b"a: [1, 2\n", "line 2: "),
        (b"a: !!python/object/apply:os.getcwd []\n", "line 1: could not determine a constructor"),
        (b"a: \xff\n", "not UTF-8 text (byte 3)"),
        (b"a: \x00\n", "characters are not allowed"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_yaml(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert complaint in message
    assert "\n" not in message


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.yaml: cannot be read \(No such file"):
        read_yaml(tmp_path / "absent.yaml")


def test_a_value_taken_over_from_an_anchor_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "merged.yaml"
    path.write_text("base: &base {a: 1, b: 2}\nother: {<<: *base, a: 3}\n")
    assert read_yaml(path)["other"] == {"a": 3, "b": 2}


def test_values_from_a_command_line_get_their_types_back() -> None:
    assert yaml_values("a: b: c") == "a: b: c"
    given = {"limit": {"train": "32", "test": "null"}, "seeds": ["0", "1"], "data": "real", "length_scale": 0.5}
    wanted = {"limit": {"train": 32, "test": None}, "seeds": [0, 1], "data": "real", "length_scale": 0.5}
    assert yaml_values(given) == wanted


@pytest.mark.parametrize(("text", "value"), [("1e-4", 1e-4), ("-2.5E3", -2500.0), ("0e9e39f", "0e9e39f")])
def test_a_number_with_an_exponent_needs_no_point(text: str, value: object) -> None:
    assert yaml_value(text) == value

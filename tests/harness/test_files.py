from pathlib import Path

import pytest

from harness import files
from harness.errors import UserError


def test_a_failed_write_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    files.write_atomically(path, "old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot write .*No space left on device; free space"):
        files.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_fingerprint_sees_code_and_data_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROOT", tmp_path)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text("1")
    (tmp_path / "room" / "b.yaml").write_text("x: 1")
    before = files.fingerprint([tmp_path / "room"])
    (tmp_path / "room" / "notes.txt").write_text("scribble")
    assert files.fingerprint([tmp_path / "room"]) == before
    assert files.fingerprint([tmp_path / "room" / "b.yaml", tmp_path / "room"]) == before
    (tmp_path / "room" / "b.yaml").write_text("x: 2")
    changed = files.fingerprint([tmp_path / "room"])
    assert changed != before
    (tmp_path / "room" / "data").mkdir()
    (tmp_path / "room" / "data" / "questions.jsonl").write_text("{}\n")
    assert files.fingerprint([tmp_path / "room"]) != changed


SOURCE = """
'''Says what it is.'''
import os  # of the standard library

class Scale:
    '''A factor.'''
    def of(self, number, *, by: float = 1.5):
        return f"{number * by:.1f}" if number else None
"""
LIKE_IT = """
import os
class Scale:

    def of(self, number, *,
           by: float = 1.5,):
        # What is nothing has no scale.
        return (f'{number * by:.1f}' if number else None)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python file of a checkout."""
    monkeypatch.setattr(files, "ROOT", tmp_path)
    (tmp_path / "a.py").write_text(SOURCE)
    return tmp_path / "a.py"


def test_comments_docstrings_and_formatting_are_no_part_of_the_fingerprint(module: Path) -> None:
    before = files.fingerprint([module])
    module.write_text(LIKE_IT)
    assert files.fingerprint([module]) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [("1.5", "1.25"), ("* by", "/ by"), ("of(", "for_("), ("None", "''"), ("Scale:", "Scale(dict):"), (".1f", ".2f")],
)
def test_a_change_of_the_syntax_tree_is_another_fingerprint(module: Path, old: str, new: str) -> None:
    before = files.fingerprint([module])
    module.write_text(SOURCE.replace(old, new, 1))
    assert files.fingerprint([module]) != before


def test_the_fingerprint_is_the_same_in_every_version_of_python(module: Path) -> None:
    assert files.fingerprint([module]) == "ddf152806c21f251ef8e607d1cbaec16216b1426d8337b2a4491127ad880f8c6"


def test_a_file_that_is_no_python_has_a_fingerprint_all_the_same(module: Path) -> None:
    module.write_text("def half(")
    before = files.fingerprint([module])
    module.write_text("def half(:")
    assert files.fingerprint([module]) != before

"""Files: atomic writes, one-line errors for invalid YAML, and fingerprints that cover only code."""

import ast
import os
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import PositiveInt

from harness import files, fingerprint
from harness.errors import UserError
from harness.files import Declaration, Distinct, Word, check_entries, read_yaml, yaml_values


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


SOURCE = """
'''Says what it is.'''
import os  # of the standard library

class Scale:
    def of(self, number, *, by: float = 1.5):
        return f"{number * by:.1f}" if number else None
"""


def test_the_fingerprint_sees_code_and_data_and_neither_comments_docstrings_nor_layout(tmp_path: Path) -> None:
    def of(content: str, name: str = "package/a.py") -> str:
        (tmp_path / name).write_text(content)
        return fingerprint.fingerprint([tmp_path / "package"])

    (tmp_path / "package" / "data").mkdir(parents=True)
    changes = [("1.5", "1.25"), ("* by", "/ by"), ("of(", "for_("), (".1f", ".2f"), ("):", ") -> int")]
    assert len({of(SOURCE), *(of(SOURCE.replace(old, new, 1)) for old, new in changes)}) == len(changes) + 1
    known = of(SOURCE)
    bare = ast.unparse(ast.parse(SOURCE)).replace('"""Says what it is."""', "")
    assert of(bare) == of("scribble", "package/notes.txt") == known
    data = [
        of(text, f"package/{name}") for name, text in (("b.yaml", "x: 1"), ("b.yaml", "x: 2"), ("data/q.jsonl", ""))
    ]
    assert len({known, *data}) == 4


def test_the_files_of_a_method_are_those_it_imports_or_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tools").mkdir()
    texts = {"mine.py": "import torch\nfrom tools import near\nfrom baselines.cot import build", "other.py": ""}
    texts |= {"tools/__init__.py": "", "tools/near.py": "from . import far\nTEXTS = 'far.yaml'", "tools/far.py": ""}
    for name, text in {**texts, "tools/far.yaml": "", "methods.yaml": ""}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    found = [str(path.relative_to(tmp_path)) for path in fingerprint.files_of("mine") if tmp_path in path.parents]
    assert found == ["mine.py", "tools/__init__.py", "tools/far.py", "tools/far.yaml", "tools/near.py"]
    assert files.ROOT / "baselines" / "cot.py" in fingerprint.files_of("mine")
    roles = files.ROOT / "harness" / "agents" / "roles.yaml"
    of_modules = [fingerprint.files_of(module) for module in ("mine", "baselines.single", "gmr")]
    assert [roles in each for each in of_modules] == [False, False, True]


def test_a_broken_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    for content, complaint in (
        (b"a: 1\nb: 2\na: 3\n", "duplicate key 'a' in"),
        (b"a: [1, 2\n", "line 2, column 1"),
        (b"a: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
        (b"a: \xff\n", "position 3; expected YAML"),
    ):
        path.write_bytes(content)
        with pytest.raises(UserError, match=rf"\A{path}: .*{complaint}.*\Z"):
            read_yaml(path)


def test_values_from_a_command_line_get_their_types_back() -> None:
    given = {"limit": {"train": "32", "test": "null"}, "seeds": ["0", "1"], "length_scale": 0.5, "lr": "-2.5E3"}
    wanted = {"limit": {"train": 32, "test": None}, "seeds": [0, 1], "length_scale": 0.5, "lr": -2500.0}
    assert yaml_values(given) == wanted
    assert yaml_values("1e-4") == 1e-4
    for text in ("a: b: c", {"pool": {"mine": {"attribution": "Model: maker"}}}, "real", "0e9e39f"):
        assert yaml_values(text) == text


class Limit(Declaration):
    test: PositiveInt | None = None


class Entry(Declaration):
    key: str
    names: Distinct[str]
    limit: Limit = Limit()
    word: Word = "word"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"limits": {}}, "one: unknown key 'limits'; did you mean 'limit'?"),
        ({"limit": {"test": True}}, "one.limit.test: Input should be a valid integer, not True"),
        ({"names": "a"}, "one.names: Input should be a list, not 'a'"),
        ({"key": "b"}, "one: leave out 'key', which is 'one' already"),
        ({"word": "x " * 5000}, "one.word: String should match pattern '^\\S+$', not 'x x "),
    ],
)
def test_a_mistake_is_one_line(entry: dict[str, Any], message: str) -> None:
    assert check_entries({"one": {"names": ["a"]}}, Entry, "some.yaml")["one"].key == "one"
    with pytest.raises(UserError, match=rf"\Asome.yaml: {re.escape(message)}.{{0,200}}\Z"):
        check_entries({"one": {"names": ["a"], **entry}}, Entry, "some.yaml")


def test_temporary_files_of_killed_processes_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen(["true"])
    ended.wait()
    host = socket.gethostname()
    kept = [
        tmp_path / name for name in (f"gmr-newer-{host}-{os.getpid()}-a", f"gmr-newer-elsewhere-{ended.pid}-a", "mine")
    ]
    folder, file = (tmp_path / f"gmr-{kind}-{host}-{ended.pid}-a" for kind in ("recording", "newer"))
    (folder / "results").mkdir(parents=True)
    for path in (file, *kept):
        path.touch()
    assert files.temporary_prefix("replay") == f"gmr-replay-{host}-{os.getpid()}-"
    assert {*tmp_path.iterdir()} == {*kept}

"""``gmr sandbox``: programs executed by hand, and which levels work here."""

from functools import partial
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.sandbox.pool import best_level
from tests.command import gmr

sandbox = partial(gmr, "sandbox")

MIDDLE = "def middle(values):\n    return sorted(values)[1]\n"
CHECKS = "assert middle([3, 1, 2]) == 2\nassert middle([5, 5, 1]) == 5\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a right program and its checks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "middle.py").write_text(MIDDLE, encoding="utf-8-sig")
    (tmp_path / "checks.py").write_text(CHECKS)
    return tmp_path


def test_a_right_program_passes_with_status_0() -> None:
    found = sandbox("middle.py", "--tests", "checks.py")
    assert found.exit_code == 0
    assert found.stdout.splitlines() == ["outcome   passed", f"level     {best_level()}"]


def test_a_wrong_program_does_not_says_where_and_does_not_steer_the_terminal() -> None:
    program = MIDDLE.replace("return sorted(values)[1]", "raise ValueError('\\x1b[2J')")
    found = sandbox("-", "--tests", "checks.py", "--level", "rlimit", given=program)
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        "outcome   exception",
        "detail    ValueError:  [2J (program, line 2)",
        "level     rlimit",
    ]


def test_without_checks_the_question_is_whether_it_runs() -> None:
    assert sandbox("-", given="1 + 1").exit_code == 0
    assert "ZeroDivisionError: division by zero (program, line 1)" in sandbox("-", given="1 / 0").stdout


def test_a_failure_of_the_sandbox_is_not_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.sandbox.worker._BOOT", "pass")
    monkeypatch.setattr("harness.sandbox.pool.best_level", lambda: "rlimit")
    found = sandbox("middle.py")
    assert found.exit_code == 3
    assert "outcome   sandbox_error\ndetail    WorkerLostError: the worker ended" in found.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("absent.py",), "cannot read absent.py: No such file"),
        (("binary",), r"binary is no text \(byte 2 is not UTF-8\)"),
        (("middle.py", "--tests", "unfinished"), r"unfinished has to be Python.*\(unfinished, line 2\)"),
        (("middle.py", "--level", "docker"), "unknown sandbox level 'docker'"),
    ],
)
def test_a_mistake_is_one_line_and_executes_nothing(words: tuple[str, ...], message: str, folder: Path) -> None:
    (folder / "binary").write_bytes(b"ab\xff\xfe")
    (folder / "unfinished").write_text("x = 1\nassert (")
    with pytest.raises(UserError, match=message) as caught:
        sandbox(*words)
    assert "\n" not in str(caught.value)


def test_without_a_program_it_says_what_works_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.sandbox.pool.refusal", lambda level: "unshare: no" if level == "full" else "")
    found = sandbox()
    assert found.exit_code == 1
    assert found.stdout.splitlines() == ["full      does not work: unshare: no", "rlimit    works"]

"""``gmr sandbox``: programs executed by hand, and what the doctor says of machines good and bad."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness.errors import UserError
from harness.sandbox import Execution, Outcome
from harness.sandbox.levels import LEVELS, best_level
from harness.sandbox.machine import Hindrance, Machine, Speed, is_fit
from workflow.cli import app
from workflow.sandbox_text import Findings, diagnosis, outcome

MIDDLE = "def middle(values):\n    print('looking at', values)\n    return sorted(values)[1]\n"
CHECKS = "assert middle([3, 1, 2]) == 2\nassert middle([5, 5, 1]) == 5\n"
PASSED, REFUSED = (
    Execution(Outcome.PASSED, "", ""),
    Execution(Outcome.SANDBOX_ERROR, "OSError: [Errno 1] unshare: no", ""),
)
LINUX = Machine(
    kernel="6.1.0",
    container="",
    missing_rights=(),
    is_alone=False,
    filters=True,
    hindrances=(),
    cgroup=2,
    memory_mib=None,
    processes=None,
)
USUAL = Findings("Linux 6.1.0, x86_64", LINUX, 1000, 7, "/usr/bin/bwrap, 0.8.0", {}, None, None)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to give commands in, with a right program, a wrong one, and their checks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "middle.py").write_text(MIDDLE)
    (tmp_path / "greatest.py").write_text(MIDDLE.replace("sorted(values)[1]", "max(values)"))
    (tmp_path / "checks.py").write_text(CHECKS)
    return tmp_path


def gmr(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["sandbox", *words], input=given, catch_exceptions=False)


def test_a_right_program_passes_with_status_0() -> None:
    found = gmr("run", "middle.py", "--tests", "checks.py")
    assert found.exit_code == 0
    assert found.stdout.splitlines() == [
        "outcome   passed",
        "held      2 assertions of the checks",
        f"level     {best_level()}",
        "output",
        "  looking at [3, 1, 2]",
        "  looking at [5, 5, 1]",
    ]


def test_a_wrong_program_does_not_and_says_where() -> None:
    found = gmr("run", "greatest.py", "--tests", "checks.py", "--json")
    assert found.exit_code == 1
    document = json.loads(found.stdout)
    assert (document["outcome"], document["detail"]) == ("wrong_answer", "AssertionError (checks, line 1)")
    assert (document["level"], document["limits"]["cpu_s"]) == (best_level(), 10)


def test_the_program_may_come_from_standard_input() -> None:
    assert gmr("run", "-", "--tests", "checks.py", given=MIDDLE).exit_code == 0


def test_without_checks_the_question_is_whether_it_runs() -> None:
    assert gmr("run", "-", given="1 + 1").exit_code == 0
    found = gmr("run", "-", given="1 / 0")
    assert found.exit_code == 1
    assert "ZeroDivisionError: division by zero (program, line 1)" in found.stdout


def test_the_setup_runs_before_the_program_and_before_the_checks(folder: Path) -> None:
    (folder / "setup.py").write_text("import math\n")
    (folder / "checks.py").write_text("assert area(2) == 4 * math.pi\n")
    program = "def area(r):\n    return math.pi * r * r\n"
    assert gmr("run", "-", "--tests", "checks.py", "--setup", "setup.py", given=program).exit_code == 0
    assert "NameError" in gmr("run", "-", "--tests", "checks.py", given=program).stdout


def test_a_built_in_does_not_stand_in_for_the_entry_point(folder: Path) -> None:
    (folder / "checks.py").write_text("assert max([1, 2]) == 2\n")
    words = ("run", "-", "--tests", "checks.py")
    assert gmr(*words, given="pass").exit_code == 0
    assert gmr(*words, "--entry-point", "max", given="pass").exit_code == 1
    assert gmr(*words, "--entry-point", "max", given="def max(values):\n    return 2").exit_code == 0


@pytest.mark.parametrize(
    ("program", "words", "expected"),
    [
        ("while True: pass", ("--cpu", "1"), "cpu_limit"),
        ("import time; time.sleep(9)", ("--wall", "0.5"), "wall_limit"),
        ("x = bytearray(400 << 20)", ("--memory", "300"), "memory_limit"),
    ],
)
def test_limits_are_those_given(program: str, words: tuple[str, ...], expected: str) -> None:
    found = gmr("run", "-", *words, "--json", given=program)
    assert (found.exit_code, json.loads(found.stdout)["outcome"]) == (1, expected)


def test_the_level_is_the_one_given() -> None:
    assert json.loads(gmr("run", "middle.py", "--level", "rlimit", "--json").stdout)["level"] == "rlimit"


def test_a_failure_of_the_sandbox_is_not_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.sandbox.worker.Worker.start", lambda worker: worker._read(b""))
    monkeypatch.setattr("harness.sandbox.pool.best_level", lambda: "rlimit")
    found = gmr("run", "middle.py")
    assert found.exit_code == 3
    assert "outcome   sandbox_error\ndetail    OSError: the worker ended" in found.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "absent.py"), "cannot read absent.py: No such file"),
        (("run", "results"), "cannot read results: Is a directory"),
        (("run", "binary"), r"binary is no text \(byte 2 is not UTF-8\)"),
        (("run", "middle.py", "--tests", "absent.py"), "cannot read absent.py"),
        (("run", "middle.py", "--tests", "unfinished"), r"unfinished has to be Python.*\(unfinished, line 2\)"),
        (("run", "middle.py", "--setup", "unfinished"), "unfinished has to be Python"),
        (("run", "middle.py", "--entry-point", "middle"), "give --tests too"),
        (("run", "middle.py", "--cpu", "0"), "sandbox limit cpu_s is 0"),
        (("run", "middle.py", "--level", "docker"), "unknown sandbox level 'docker'"),
    ],
)
def test_a_mistake_is_one_line_and_executes_nothing(words: tuple[str, ...], message: str, folder: Path) -> None:
    (folder / "binary").write_bytes(b"ab\xff\xfe")
    (folder / "unfinished").write_text("x = 1\nassert (")
    with pytest.raises(UserError, match=message) as caught:
        gmr(*words)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_does_no_harm(folder: Path) -> None:
    (folder / "middle.py").write_text(MIDDLE, encoding="utf-8-sig")
    assert gmr("run", "middle.py", "--tests", "checks.py").exit_code == 0


def test_what_a_program_prints_does_not_steer_the_terminal() -> None:
    printed = outcome(Execution(Outcome.EXCEPTION, "Err: \x1b[2J", "a\x1b]0;x\x07\tb\r\x9b1m\u202e\nc"), "full")
    assert printed.splitlines() == [
        "outcome   exception",
        r"detail    Err: \x1b[2J",
        "level     full",
        "output",
        "  a\\x1b]0;x\\x07\tb",
        r"  \x9b1m\u202e",
        "  c",
    ]


def test_a_second_execution_is_told() -> None:
    assert "at first  wall_limit" in outcome(Execution(Outcome.PASSED, "", "", first=Outcome.WALL_LIMIT), "full")


def test_the_doctor_agrees_with_the_sandbox() -> None:
    found = gmr("doctor")
    assert f"Programs run at level {best_level()}" in found.stdout
    assert found.exit_code == (0 if is_fit(best_level()) else 1)


def test_the_doctor_on_a_machine_with_resource_limits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.sandbox.levels.probe", lambda level: PASSED if level == "rlimit" else REFUSED)
    found = gmr("doctor")
    assert found.exit_code == 1
    text = " ".join(found.stdout.split())
    assert "simulated backbones work. Presets with real models need one of full, full/bubblewrap, no-names" in text


def test_the_doctor_where_nothing_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.sandbox.levels.probe", lambda level: REFUSED)
    found = gmr("doctor")
    assert found.exit_code == 1
    assert "No program can be executed here" in found.stdout


def tried(best: str | None) -> dict[str, Execution]:
    """How the trials end where everything from a level on works."""
    first = LEVELS.index(best) if best else len(LEVELS)
    return {level: PASSED if place >= first else REFUSED for place, level in enumerate(LEVELS)}


def told(best: str | None, found: Findings = USUAL, **of_machine: object) -> str:
    machine = replace(found.machine, **of_machine)  # type: ignore[arg-type]
    speed = Speed(0.25, 0.0031) if best else None
    return " ".join(diagnosis(found._replace(machine=machine, tried=tried(best), best=best, speed=speed)).split())


def test_the_best_machine_needs_no_remedy() -> None:
    text = told("full")
    assert "For a better level" not in text
    assert "user namespaces open" in text
    assert "A worker starts in 0.25 s; an honest program and its check take 0.0031 s." in text


REMEDIES: Mapping[Hindrance, str] = {
    Hindrance.NOT_BUILT: "CONFIG_USER_NS",
    Hindrance.NONE_ALLOWED: "sysctl user.max_user_namespaces=10000",
    Hindrance.ROOT_ONLY: "sysctl kernel.unprivileged_userns_clone=1",
    Hindrance.APPARMOR: "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    Hindrance.FILTERED: "--security-opt seccomp=unconfined",
}


@pytest.mark.parametrize("hindrance", Hindrance)
def test_every_hindrance_is_named_and_has_its_remedy(hindrance: Hindrance) -> None:
    text = told("no-namespaces", hindrances=(hindrance,))
    assert f"user namespaces {hindrance}" in text
    assert "full does not work: unshare: no" in text
    head, _, remedies = text.partition("For a better level")
    assert "fit for those of real models" in head
    assert [one for one in Hindrance if REMEDIES[one] in remedies] == [hindrance]


@pytest.mark.parametrize(
    ("found", "of_machine", "remedy"),
    [
        (USUAL._replace(landlock=None), {}, "lsm="),
        (USUAL._replace(landlock=None), {"container": "/.dockerenv"}, "a container engine whose filter knows it"),
        (USUAL._replace(bubblewrap=None), {}, "apt-get install bubblewrap"),
        (USUAL._replace(user=0), {"missing_rights": ("CAP_SETUID",)}, "run the suite as an ordinary user"),
        (USUAL._replace(user=0), {"is_alone": True}, "/etc/subuid"),
        (USUAL, {"filters": False}, "CONFIG_SECCOMP_FILTER"),
        (USUAL, {}, "virtual machine of its own"),
    ],
)
def test_what_is_missing_has_its_remedy(found: Findings, of_machine: dict[str, object], remedy: str) -> None:
    assert remedy in told("rlimit", found, **of_machine)
    assert remedy not in told("full", found, **of_machine)


def test_another_system_is_told_of_linux_alone() -> None:
    mac = USUAL._replace(system="Darwin 24.1.0, arm64", landlock=None, bubblewrap=None)
    _, _, remedies = told("rlimit", mac, kernel="", filters=False, cgroup=None).partition("For a better level")
    assert remedies == " - run the suite in a Linux virtual machine or container, and ask again there"

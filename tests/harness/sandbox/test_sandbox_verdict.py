"""From every report of a worker to the one execution it amounts to."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.sandbox import Execution, Limits, Outcome
from harness.sandbox.jail import grader, nursery
from harness.sandbox.orders import BOX_BYTES, BOX_ENTRIES
from harness.sandbox.verdict import failed, judge, out_of_time

LIMITS = Limits(cpu_s=3, wall_s=7.5, output_kib=2)
EXITED, KILLED = 3 << 8, signal.SIGKILL.value
REPORT: dict[str, Any] = {
    "outcome": "passed",
    "detail": "",
    "status": KILLED,
    "cpu_s": 0.1,
    "cut": "",
    "soiled": False,
    "assertions": 0,
    "shown": None,
    "stdout": b"out",
}
TIME = "more than 3 s of processor time"


@pytest.mark.parametrize(
    ("found", "execution"),
    [
        ({}, Execution(Outcome.PASSED, "", "out")),
        ({"outcome": "wrong_answer", "detail": "x"}, Execution(Outcome.WRONG_ANSWER, "x", "out")),
        ({"outcome": "exception", "detail": "x"}, Execution(Outcome.EXCEPTION, "x", "out")),
        ({"outcome": "not_executable", "detail": "x"}, Execution(Outcome.NOT_EXECUTABLE, "x", "out")),
        ({"outcome": "memory_limit", "detail": "x"}, Execution(Outcome.MEMORY_LIMIT, "x", "out")),
        ({"outcome": "output_limit", "detail": "x"}, Execution(Outcome.OUTPUT_LIMIT, "x", "out")),
        ({"outcome": "failure", "detail": "x"}, Execution(Outcome.SANDBOX_ERROR, "x", "")),
        ({"cut": "wall"}, Execution(Outcome.WALL_LIMIT, "more than 7.5 s of wall time", "")),
        ({"cut": "wall", "outcome": "gone"}, Execution(Outcome.WALL_LIMIT, "more than 7.5 s of wall time", "")),
        ({"cut": "wall", "outcome": "wrong_answer"}, Execution(Outcome.WALL_LIMIT, "more than 7.5 s of wall time", "")),
        (
            {"cut": "crowded", "outcome": "gone"},
            Execution(Outcome.OUTPUT_LIMIT, "more than 1000 files or 16 MiB of them", "out"),
        ),
        # The status decides for a program that is gone, and for no other.
        *[({"status": status}, Execution(Outcome.PASSED, "", "out")) for status in (0, EXITED, KILLED, 24, 11)],
    ],
)
def test_every_report(found: dict[str, Any], execution: Execution) -> None:
    assert judge({**REPORT, **found}, LIMITS) == execution


@pytest.mark.parametrize(
    ("status", "cpu_s", "outcome", "detail", "stdout"),
    [
        (0, 0.1, Outcome.EXCEPTION, "exit with status 0 before the last check", "out"),
        (EXITED, 0.1, Outcome.EXCEPTION, "exit with status 3 before the last check", "out"),
        (255 << 8, 9.0, Outcome.EXCEPTION, "exit with status 255 before the last check", "out"),
        (signal.SIGXCPU.value, 0.1, Outcome.CPU_LIMIT, TIME, ""),
        (signal.SIGXCPU.value | 0x80, 3.1, Outcome.CPU_LIMIT, TIME, ""),
        (KILLED, 2.99, Outcome.KILLED, "SIGKILL", ""),
        (KILLED, 3.0, Outcome.CPU_LIMIT, TIME, ""),
        (KILLED, 4.1, Outcome.CPU_LIMIT, TIME, ""),
        (signal.SIGSEGV.value | 0x80, 4.1, Outcome.KILLED, "SIGSEGV", ""),
        (signal.SIGABRT.value, 0.1, Outcome.KILLED, "SIGABRT", ""),
        (40, 0.1, Outcome.KILLED, "signal 40", ""),
    ],
)
def test_how_a_program_that_is_gone_ended(
    status: int, cpu_s: float, outcome: Outcome, detail: str, stdout: str
) -> None:
    found = {**REPORT, "outcome": "gone", "status": status, "cpu_s": cpu_s}
    assert judge(found, LIMITS) == Execution(outcome, detail, stdout)


@pytest.mark.parametrize("outcome", ["passed", "wrong_answer", "exception", "output_limit"])
def test_only_a_program_that_passed_shows_anything(outcome: str) -> None:
    shown = judge({**REPORT, "outcome": outcome, "shown": "4\ud800"}, LIMITS).shown
    assert shown == ("4?" if outcome == "passed" else None)
    assert judge({**REPORT, "cut": "wall", "shown": "4"}, LIMITS).shown is None


def test_assertions_that_held_are_told_however_it_ended() -> None:
    for outcome in ("passed", "wrong_answer", "exception"):
        assert judge({**REPORT, "outcome": outcome, "assertions": 5}, LIMITS).assertions == 5
    assert judge({**REPORT, "cut": "wall", "assertions": 5}, LIMITS).assertions == 5


def test_an_empty_text_is_shown() -> None:
    assert judge({**REPORT, "shown": ""}, LIMITS).shown == ""


def test_what_differs_between_two_runs_is_left_out() -> None:
    detail = "ValueError: <A object at 0x7f12ab34cd56>, 0xABCDEF and 0x12345, x0x7f12ab34cd56"
    found = judge({**REPORT, "outcome": "exception", "detail": detail}, LIMITS)
    assert found.detail == "ValueError: <A object at 0x...>, 0x... and 0x12345, x0x7f12ab34cd56"


@example("\ud800", b"\xff")
@given(st.text(st.characters(exclude_categories=()), max_size=700), st.binary(max_size=50))
def test_whatever_is_told_can_be_written_to_a_file(detail: str, stdout: bytes) -> None:
    found = judge({**REPORT, "outcome": "exception", "detail": detail, "stdout": stdout}, LIMITS)
    assert found.detail.encode().decode() == found.detail
    assert len(found.detail) <= 300
    assert len(found.detail.splitlines()) <= 1
    assert not found.detail.endswith("\n")
    assert found.stdout == stdout.decode("utf-8", "replace")


def test_what_is_told_is_one_line() -> None:
    found = judge({**REPORT, "outcome": "exception", "detail": "a\r\n\tb\x1b[31mc\u2028d\x85e"}, LIMITS)
    assert found.detail == "a b [31mc d e"
    assert failed("a\nb").detail == "a b"


def test_an_unknown_word_is_no_outcome() -> None:
    with pytest.raises(ValueError, match="unheard"):
        judge({**REPORT, "outcome": "unheard"}, LIMITS)


def test_failures_of_the_sandbox_and_of_its_checks() -> None:
    assert failed(OSError("no")) == Execution(Outcome.SANDBOX_ERROR, "no", "")
    assert len(failed("x" * 1000).detail) == 300
    assert out_of_time(LIMITS) == Execution(Outcome.CPU_LIMIT, f"{TIME} in the checks", "")


def test_the_words_are_those_of_the_report() -> None:
    assert (nursery.WALL, nursery.CROWDED, grader.GONE, grader.FAILURE) == ("wall", "crowded", "gone", "failure")
    assert (BOX_ENTRIES, BOX_BYTES) == (1000, 16 << 20)

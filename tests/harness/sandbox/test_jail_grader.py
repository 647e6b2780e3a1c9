"""How a verdict comes about: every reply a program can send, and every way not to send one."""

from __future__ import annotations

import contextlib
import marshal
import os
import socket
import struct
from collections.abc import Iterator

import pytest

from harness.sandbox import Outcome
from harness.sandbox.jail import candidate, checks, grader
from harness.sandbox.jail.channel import LONGEST
from tests.harness.sandbox.pretended import CONFINED, LIMIT, Judge, found, framed, remote, reply

ANSWER = "assert f(20) == 42"
FUNCTION = found({"f": remote(0)})
AT_LINE = "(checks, line {})"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    with monkeypatch.context() as patch, contextlib.closing(Judge(patch)) as judge:
        yield judge


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        (reply("value", 42), ("passed", "")),
        (reply("value", 41), ("wrong_answer", "AssertionError (checks, line 1)")),
        (reply("value", remote(1)), ("wrong_answer", "AssertionError (checks, line 1)")),
        (reply("raised", "ValueError", "ValueError: no", "program"), ("exception", "ValueError: no")),
        (reply("raised", "AssertionError", "AssertionError (checks, line 1)", "checks"), ("exception", None)),
        (reply("raised", "MemoryError", "MemoryError", "program"), ("memory_limit", "MemoryError")),
        (reply("raised", "SystemExit", "SystemExit: 0", "program"), ("exception", "SystemExit: 0")),
        (reply("raised", "KeyboardInterrupt", "KeyboardInterrupt", ""), ("exception", "KeyboardInterrupt")),
        (reply("raised", "GeneratorExit", "GeneratorExit", ""), ("exception", "GeneratorExit")),
        (reply("raised", "StopIteration", "StopIteration", ""), ("exception", "StopIteration")),
        (reply("raised", "UnicodeDecodeError", "UnicodeDecodeError: x", ""), ("exception", "UnicodeDecodeError: x")),
        (reply("raised", "EOFError", "EOFError: x", ""), ("exception", "EOFError: x")),
        (reply("raised", "OutputLimitError", "x", ""), ("exception", "x")),
        (reply("raised", "Dismissed", "x", ""), ("exception", "x")),
        (reply("unreadable", "SyntaxError", "SyntaxError: x", ""), ("not_executable", "SyntaxError: x")),
        (reply("ended", "StopIteration", "", ""), ("exception", "_End (checks, line 1)")),
        (reply("passed", 42), ("exception", "an unreadable value was returned: a reply of no known form")),
        (framed(b"\xff\x00"), ("exception", None)),
        (framed(b"[" * 100_000), ("exception", None)),
        (framed(b""), ("exception", None)),
        (b"", ("gone", "")),
        (b"\x01", ("gone", "")),
        (framed(b'["value", 42]')[:-1], ("gone", "")),
        (struct.pack("<I", LONGEST + 1), ("output_limit", f"a value of {LONGEST + 1} bytes was returned")),
    ],
)
def test_every_reply_to_a_call(judge: Judge, answer: bytes, ended: tuple[str, str | None]) -> None:
    judged = judge.on(FUNCTION + answer, ANSWER)
    assert judged.outcome == ended[0]
    assert ended[1] is None or judged.ended[1] == ended[1]
    assert judged.grading.assertions == (ended[0] == "passed")
    assert len(judged.asked) == 2


@pytest.mark.parametrize(
    ("first", "outcome"),
    [
        (framed(candidate.UNCONFINED + b"OSError: no \xff"), "failure"),
        (framed(b""), "failure"),
        (framed(b"++"), "failure"),
        (b"", "gone"),
        (CONFINED, "gone"),
        (CONFINED + reply("raised", "ZeroDivisionError", "x", "program"), "exception"),
        (CONFINED + reply("raised", "MemoryError", "x", "program"), "memory_limit"),
        (CONFINED + reply("unreadable", "MemoryError", "x", ""), "memory_limit"),
        (CONFINED + reply("unreadable", "ValueError", "x", ""), "not_executable"),
        (CONFINED + reply("value", 5), "exception"),
        (CONFINED + reply("value", []), "exception"),
        (CONFINED + reply("value", [{"dict": []}]), "exception"),
        (CONFINED + reply("value", ["f", None]), "exception"),
        (CONFINED + reply("value", [None, None]), "exception"),
        (CONFINED + reply("value", remote(0)), "exception"),
        (CONFINED + framed(b"\xff"), "exception"),
        (CONFINED + struct.pack("<I", LONGEST + 1), "output_limit"),
        (found({"g": 1}), "exception"),
    ],
)
def test_every_first_reply(judge: Judge, first: bytes, outcome: str) -> None:
    judged = judge.on(first, ANSWER)
    assert judged.outcome == outcome
    assert judged.grading.assertions == 0


def test_why_it_is_not_confined_is_told(judge: Judge) -> None:
    judged = judge.on(framed(candidate.UNCONFINED + b"OSError: no \xff"), ANSWER)
    assert judged.ended == ("failure", "OSError: no \ufffd")
    assert judged.asked == []


@pytest.mark.parametrize("shown", [5, True, [1], {"dict": []}, remote(0), {"bytes": "00"}, {"type": "str"}])
def test_what_is_shown_is_text_or_the_reply_is_unreadable(judge: Judge, shown: object) -> None:
    judged = judge.on(found(shown=shown), "", show="x")
    assert judged.outcome == "exception"
    assert judged.grading.shown is None


def test_no_more_is_shown_than_an_honest_program_shows(judge: Judge) -> None:
    for length, outcome in ((candidate.LONGEST_SHOWN, "passed"), (candidate.LONGEST_SHOWN + 1, "exception")):
        judged = judge.on(found(shown="x" * length), "", show="x")
        assert judged.outcome == outcome
        assert judged.grading.shown == ("x" * length if outcome == "passed" else None)


@pytest.mark.parametrize(
    ("source", "ended"),
    [
        ("assert f(20) == 41, 'not it'", ("wrong_answer", "AssertionError: not it (checks, line 1)")),
        ("x = 1\nassert f(20) == 42\nassert x == 2", ("wrong_answer", "AssertionError (checks, line 3)")),
        ("def check(g):\n    assert g(20) == 0\ncheck(f)", ("wrong_answer", "AssertionError (checks, line 2)")),
        ("raise AssertionError(f(20))", ("wrong_answer", "AssertionError: 42 (checks, line 1)")),
        ("f(20) + 'a'", ("exception", None)),
        ("assert 1 / 0", ("exception", "ZeroDivisionError: division by zero (checks, line 1)")),
        ("raise MemoryError", ("memory_limit", "MemoryError (checks, line 1)")),
        ("raise SystemExit(0)", ("exception", "SystemExit: 0 (checks, line 1)")),
        (
            "import unittest\nunittest.TestCase().assertEqual(1, 2)",
            ("wrong_answer", "AssertionError: 1 != 2 (checks, line 2)"),
        ),
        ("assert g(1)", ("exception", "NameError: name 'g' is not defined (checks, line 1)")),
        ("", ("passed", "")),
        ("x = f(20)", ("passed", "")),
        ("def check():\n    assert f(20) == 42", ("exception", "no assertion of the checks was reached")),
        ("for x in []:\n    assert x", ("exception", "no assertion of the checks was reached")),
        ("try:\n    assert f(20) == 0\nexcept AssertionError:\n    pass", ("exception", None)),
    ],
)
def test_every_end_of_the_checks_themselves(judge: Judge, source: str, ended: tuple[str, str | None]) -> None:
    judged = judge.on(FUNCTION + reply("value", 42), source)
    assert judged.outcome == ended[0], judged.ended
    assert ended[1] is None or judged.ended[1] == ended[1]


def test_as_many_assertions_are_counted_as_held(judge: Judge) -> None:
    judged = judge.on(FUNCTION + reply("value", 42) + reply("value", 41), f"assert 1\n{ANSWER}\n{ANSWER}\nassert 1")
    assert (judged.outcome, judged.grading.assertions) == ("wrong_answer", 2)


def test_an_object_in_the_message_of_a_check_is_not_asked_for_its_text(judge: Judge) -> None:
    judged = judge.on(FUNCTION + reply("value", remote(1, "A")) * 2, "assert f(20) == 42, f(20)")
    assert judged.ended == ("wrong_answer", "AssertionError: <A of the program> (checks, line 1)")
    assert len(judged.asked) == 3


def test_a_message_that_cannot_be_written_is_left_out(judge: Judge) -> None:
    judged = judge.on(FUNCTION, "assert False, 1 << 100_000")
    assert judged.ended == ("wrong_answer", "AssertionError (checks, line 1)")


RAISES = "try:\n    f(20)\n    raised = False\nexcept Exception:\n    raised = True\nassert raised is "


@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(b"", "gone"), (framed(b"\xff"), "exception"), (struct.pack("<I", LONGEST + 1), "output_limit")],
)
def test_no_check_takes_the_end_of_a_program_for_an_exception(
    judge: Judge, answer: bytes, outcome: str, expected: bool
) -> None:
    assert judge.on(FUNCTION + answer, f"{RAISES}{expected}").outcome == outcome
    raised = judge.on(FUNCTION + reply("raised", "EOFError", "x", ""), f"{RAISES}{expected}")
    assert raised.outcome == ("passed" if expected else "wrong_answer")


def test_the_order_holds_what_the_program_needs_and_no_check(judge: Judge) -> None:
    checks = "assert f(20) == 42 and a and k"
    judged = judge.on(FUNCTION, checks, setup="a = 1", source="the program", show="x", entry_point="f")
    assert marshal.loads(judged.asked[0]) == ("a = 1", "the program", ["f", "k"], "x")  # noqa: S302


@pytest.mark.parametrize("amount", [0, LIMIT, LIMIT + 1, 3 * LIMIT])
def test_output_is_kept_up_to_the_limit(judge: Judge, amount: int) -> None:
    os.write(judge.printing, b"x" * amount)
    judged = judge.on(FUNCTION + reply("value", 42), ANSWER)
    assert judged.outcome == "passed"
    assert judged.stdout == b"x" * min(amount, LIMIT)


CAUGHT = "import os\n{}\ntry:\n    f(20)\nexcept Exception:\n    pass\nassert True"


@pytest.mark.parametrize("way", ["os.dup2(os.open(os.devnull, 0), {})", "os.write({}, b'x')"])
def test_nobody_is_judged_for_nobody(judge: Judge, way: str) -> None:
    source = CAUGHT.format(way.format(judge.asker))
    with pytest.raises(grader.Dismissed):
        judge.on(FUNCTION, source)


def test_a_program_that_does_not_listen_is_gone(judge: Judge) -> None:
    assert judge.on(FUNCTION + reply("value", 42), ANSWER, is_deaf=True).ended == ("gone", "")


def test_output_that_is_left_is_read_without_waiting() -> None:
    output, end = os.pipe()
    conversation = grader._Conversation(output, output, LIMIT)
    for written, kept in ((b"x" * 10, 10), (b"", 10), (b"y" * 2 * LIMIT, LIMIT), (b"z", LIMIT)):
        os.write(end, written)
        conversation.drain()
        assert len(conversation.stdout) == kept
    os.close(end)
    conversation = grader._Conversation(output, output, LIMIT)
    conversation.drain()
    assert conversation.stdout == b"z"
    os.close(output)


def test_the_end_of_output_is_met_once(judge: Judge) -> None:
    ours, theirs = socket.socketpair()
    output, end = os.pipe()
    conversation = grader._Conversation(ours.fileno(), output, LIMIT)
    os.close(end)
    theirs.sendall(framed(b"a"))
    assert conversation.receive() == b"a"
    assert conversation._poll.poll(0) == []
    for one in (ours, theirs):
        one.close()
    os.close(output)


def test_names_of_the_setup_and_of_the_library_are_not_the_programs(judge: Judge) -> None:
    source = "assert (a, math.pi > 3, f(20)) == (1, True, 42)"
    stolen = found({"f": remote(0), "a": 2, "math": 3, "len": 4})
    judged = judge.on(stolen + reply("value", 42), source, setup="a = 1\ndef f(x):\n    return 0", entry_point="f")
    assert judged.ended == ("passed", "")
    assert marshal.loads(judged.asked[0])[2] == ["f"]  # noqa: S302


def test_a_name_of_the_setup_is_no_module(judge: Judge) -> None:
    judged = judge.on(found(), "assert math.answer == 42", setup="class math:\n    answer = 42")
    assert judged.ended == ("passed", "")


def test_an_assertion_of_the_setup_is_no_answer(judge: Judge) -> None:
    assert judge.on(FUNCTION, ANSWER, setup="assert False").ended == ("exception", "AssertionError (setup, line 1)")


def test_a_fault_of_the_setup_asks_nothing(judge: Judge) -> None:
    judged = judge.on(FUNCTION, ANSWER, setup="import nothing_like_this")
    assert judged.outcome == "exception"
    assert judged.ended[1].endswith("(setup, line 1)")
    assert judged.asked == []


def test_without_checks_the_setup_is_the_programs_alone(judge: Judge) -> None:
    assert judge.on(found(), "", setup="import nothing_like_this").ended == ("passed", "")


def test_a_missing_entry_point_is_not_a_built_in(judge: Judge) -> None:
    judged = judge.on(found({"f": remote(0)}), "assert sum([20, 22]) == 42", entry_point="sum")
    assert judged.ended == ("exception", "NameError: name 'sum' is not defined")
    judged = judge.on(found({"sum": remote(0)}) + reply("value", 42), "assert sum([1]) == 42", entry_point="sum")
    assert judged.ended == ("passed", "")


def test_the_words_of_a_report_are_those_of_the_outcomes() -> None:
    words = (grader.PASSED, grader.WRONG_ANSWER, grader.EXCEPTION, grader.MEMORY_LIMIT, grader.OUTPUT_LIMIT)
    assert {*words, grader.NOT_EXECUTABLE} <= {str(outcome) for outcome in Outcome}
    assert {grader.GONE, grader.FAILURE}.isdisjoint(str(outcome) for outcome in Outcome)
    assert checks.PASSED != grader.PASSED

import csv
import io
from pathlib import Path

import pytest

from harness.benchmarks import Tools
from harness.errors import UserError
from harness.sandbox.model import Outcome
from tests.harness.benchmarks.conftest import PlainRunner
from tests.workflow.agreement.samples import line, record, write
from workflow.agreement import comparing, differences, tables
from workflow.agreement.comparing import Comparison, compare
from workflow.agreement.differences import Class, Rule
from workflow.agreement.questions import Questions
from workflow.agreement.records import FILES
from workflow.agreement.study import grade_all

DOUBLE = "def double(n):\n    return 2 * n\n"
TESTS = "def check(candidate):\n    assert candidate(2) == 4\n\ncheck(double)\n"
AGREE = record("mmlu_pro", "The answer is (C).", "C", pred="C", upstream_rule="answer_is")
LAST = record(
    "mmlu_pro", "The answer is (B). Or: the answer is (C).", "B", pred="B", item_id="2", upstream_rule="answer_is"
)
STRAY = record("mmlu_pro", "I give up", "I", pred="I", item_id="3", upstream_rule="last_letter")
UNGRADED = record("mmlu_pro", "The answer is (C).", "C", correct=None, item_id="4", upstream_rule="none")


async def test_text_is_graded_and_compared(tmp_path: Path, tools: Tools) -> None:
    compared = await grade_all([AGREE, LAST, STRAY, UNGRADED], tmp_path, tools)
    assert [(one.ours, one.extracted, one.agrees) for one in compared] == [
        (True, "C", True),
        (False, "C", False),
        (False, None, False),
        (True, "C", None),
    ]
    assert tables.shares(compared) == (1, 3)


async def test_math_is_compared_under_both_rules(tmp_path: Path, tools: Tools) -> None:
    one = record("math", r"\boxed{0.50}", r"\frac{1}{2}", pred="0.50")
    strings, symbols = await compare(one, Questions(tmp_path), tools)
    assert (strings.rule, strings.ours, strings.difference) == (Rule.STRING, False, differences.VALUES)
    assert (symbols.rule, symbols.ours, symbols.difference) == (Rule.SYMBOLIC, True, None)
    silent = await compare(record("math", "nothing", "5", correct=False), Questions(tmp_path), tools)
    assert [comparison.agrees for comparison in silent] == [True, True]


async def test_pairs_are_compared_under_the_rule_they_are_about(tmp_path: Path, tools: Tools) -> None:
    questions = Questions(tmp_path)
    (strings,) = await compare(record("answer_pairs", "1/2", "0.5", upstream="hendrycks/math"), questions, tools)
    (symbols,) = await compare(record("answer_pairs", r"$\frac{2}{4}$", "$0.5$"), questions, tools)
    assert (strings.rule, strings.ours) == (Rule.STRING, True)
    assert (symbols.rule, symbols.ours) == (Rule.SYMBOLIC, True)


@pytest.mark.parametrize(("program", "ours"), [(DOUBLE, True), (DOUBLE.replace("2", "3"), False), ("no (", False)])
async def test_programs_run_against_the_tests_of_the_record(
    tmp_path: Path, tools: Tools, program: str, ours: bool
) -> None:
    one = record("mbpp", program, TESTS, recheck="pass", kind="program")
    (comparison,) = await compare(one, Questions(tmp_path), tools)
    assert (comparison.rule, comparison.ours, comparison.difference) == (Rule.TESTS, ours, None)


async def test_a_sandbox_that_fails_gives_no_verdict(tmp_path: Path, tools: Tools, runner: PlainRunner) -> None:
    runner.forced = Outcome.SANDBOX_ERROR
    with pytest.raises(UserError, match="sandbox failed on mbpp 1/model"):
        await compare(record("mbpp", DOUBLE, TESTS, recheck="pass"), Questions(tmp_path), tools)


def test_who_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Comparison(LAST, Rule.LETTER, False, "C", None)
    unknown = Comparison(AGREE, Rule.LETTER, False, "A", None)
    told = Comparison(STRAY, Rule.LETTER, False, None, differences.STRAY_LETTER)
    reviewed = tmp_path / "reviewed.yaml"
    reviewed.write_text("mmlu_pro:\n  letter:\n    2/model:\n      right: upstream\n      reason: it is\n")
    monkeypatch.setattr(comparing, "REVIEWED", reviewed)
    comparing._reviewed.cache_clear()
    assert known.judged == (Class.UPSTREAM, "it is")
    assert unknown.judged == (Class.AMBIGUOUS, "not reviewed")
    assert told.judged == (Class.OURS, "upstream takes the last letter anywhere in the text")
    monkeypatch.undo()
    comparing._reviewed.cache_clear()


def test_the_list_of_reviewed_records_names_files_and_rules_that_exist() -> None:
    entries = comparing._reviewed()
    assert set(entries) <= set(FILES)
    assert {rule for rules in entries.values() for rule in rules} <= {str(rule) for rule in Rule}


def table_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_what_is_written(tmp_path: Path) -> None:
    compared = [
        Comparison(AGREE, Rule.LETTER, True, "C", None),
        Comparison(LAST, Rule.LETTER, False, "C " * 200, None),
        Comparison(UNGRADED, Rule.LETTER, True, "C", differences.UNGRADED),
        Comparison(STRAY, Rule.LETTER, False, None, differences.STRAY_LETTER),
    ]
    assert [path.name for path in tables.write(compared, tmp_path)] == [
        "agreement.md",
        "agreement.csv",
        "disagreements.csv",
    ]
    same, ungraded, stray = table_of((tmp_path / "agreement.csv").read_text())
    assert (same["upstream's rule"], same["records"], same["compared"], same["agree"]) == ("the same", "2", "2", "1")
    assert (same["agree %"], same["ours right"], same["ambiguous"]) == ("50.00", "0", "1")
    assert (ungraded["records"], ungraded["compared"], ungraded["agree %"]) == ("1", "0", "")
    assert (stray["agree %"], stray["ours right"]) == ("0.00", "1")
    last, strayed = table_of((tmp_path / "disagreements.csv").read_text())
    assert (last["item"], last["ours"], last["upstream"], last["upstream extracted"]) == ("2", "false", "true", "B")
    assert len(last["ours extracted"]) < 200
    assert (strayed["ours extracted"], strayed["class"]) == ("", "ours right")
    text = (tmp_path / "agreement.md").read_text()
    assert "| mmlu_pro | letter | the same | 2 | 2 | 1 | 50.00 | 0 | 0 | 1 |" in text
    assert "| mmlu_pro | letter | another | 2 | 1 | 0 | 0.00 | 1 | 0 | 0 |" in text
    assert "| mmlu_pro | letter | ambiguous | not reviewed | 1 |" in text


def test_there_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from typer.testing import CliRunner

    from workflow.app import app
    from workflow.commands import grading as command  # noqa: F401  importing it adds the command

    lines = [line("gsm8k", f"The answer is {n}.", "5", item_id=n, upstream_correct=n == 5) for n in (4, 5)]
    write(tmp_path, "gsm8k", [{**one, "upstream": "lm-sys/RouteLLM:file@1"} for one in lines])
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    words = ["agreement", "--data-dir", str(tmp_path), "--benchmark", "gsm8k"]
    with caplog.at_level("INFO"):
        assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    assert "2 of 2 verdicts under the same rule agree (100.00 %)" in caplog.text
    assert "recorded outputs: 2/2 graded" in caplog.text
    (row,) = table_of((tmp_path / "reports" / "grading" / "agreement.csv").read_text())
    assert (row["benchmark"], row["records"], row["agree"]) == ("gsm8k", "2", "2")

import pytest

from tests.workflow.agreement.samples import record
from workflow.agreement import differences as d
from workflow.agreement.differences import Difference, Rule, difference
from workflow.agreement.records import Record

ROUTE, RHO, STRINGS = "lm-sys/RouteLLM", "microsoft/rho", "hendrycks/math"
BOX = r"\boxed{x}"


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (record("mmlu_pro", "The answer is (A).", upstream_rule="answer_is"), None),
        (record("mmlu_pro", "The answer is (A), I believe.", upstream_rule="answer_is"), None),
        (record("mmlu_pro", "The answer is (A) and (B).", upstream_rule="answer_is"), d.SEVERAL_OPTIONS),
        (record("mmlu_pro", "The answer is A, B. The answer is C", upstream_rule="answer_is"), d.SEVERAL_OPTIONS),
        (record("mmlu_pro", "I give up", upstream_rule="last_letter"), d.STRAY_LETTER),
        (record("mmlu_pro", "no", correct=None, upstream_rule="random_guess"), d.UNGRADED),
        (record("mmlu_stem", BOX), d.OTHER_LETTER),
    ],
)
def test_letters(one: Record, found: Difference | None) -> None:
    assert difference(one, Rule.LETTER) == found


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (record("gsm8k", "#### 1,540", "1,540", upstream=ROUTE), None),
        (record("gsm8k", "#### -54", "54", upstream=ROUTE), d.DIGITS_ALONE),
        (record("gsm8k", "#### 7.00", "7", upstream=ROUTE), d.DIGITS_ALONE),
        (record("gsm8k", "", "7", pred="7.0", upstream=RHO), None),
        (record("gsm8k", "", "7,000", pred="7,001", upstream=RHO), None),
        (record("gsm8k", "", "7,000", pred="70", upstream=RHO), d.HUNDREDTH),
        (record("gsm8k", "", "7", pred="700", upstream=RHO), d.HUNDREDTH),
        (record("gsm8k", "", "0", pred="0", upstream=RHO), None),
        (record("gsm8k", "", "4", pred="3+1=4", upstream=RHO), d.UNREAD),
        (record("gsm8k", "", "4", upstream=RHO), d.UNREAD),
    ],
)
def test_numbers(one: Record, found: Difference | None) -> None:
    assert difference(one, Rule.NUMBER) == found


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (record("math", BOX, "x", pred="x"), None),
        (record("math", "no statement, 6", "6", pred="6"), d.LAST_NUMBER),
        (record("math", "the answer is x", "x", pred="x.Ihopeitiscorrect"), d.CLOSING_SENTENCE),
        (record("math", BOX, "(0,1]", pred="(0,1)"), d.BRACKETS),
        (record("math", BOX, r"\left(0,1\right)", pred="(0,1)"), None),
        (record("math", BOX, "(0,1)", pred="3"), d.BRACKETS),
        (record("math", BOX, "0.5", pred="50"), d.HUNDREDTH),
    ],
)
def test_formulas(one: Record, found: Difference | None) -> None:
    assert difference(one, Rule.SYMBOLIC) == found
    assert difference(one, Rule.STRING) == (found or d.VALUES)


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (record("answer_pairs", "1/2", "0.5", upstream=STRINGS), None),
        (record("answer_pairs", "$1/2$", "$0.5$"), None),
        (record("answer_pairs", BOX, "$x$", extra={"precision": 2}), d.SETTINGS),
        (record("answer_pairs", "so it is 5", "$5$"), d.PROSE),
        (record("answer_pairs", "1 000", "1000"), d.PLAIN_NUMBERS),
    ],
)
def test_pairs(one: Record, found: Difference | None) -> None:
    assert difference(one, Rule.STRING if one.upstream == STRINGS else Rule.SYMBOLIC) == found


@pytest.mark.parametrize(
    ("outcome", "correct", "found"),
    [
        ("pass", True, None),
        ("fail:AssertionError", False, None),
        ("timeout", False, None),
        ("fail:SyntaxError", False, d.CUT_OFF),
        ("fail:IndentationError", True, d.CUT_OFF),
        ("pass", False, d.OTHER_TESTS),
        ("fail:NameError", True, d.OTHER_TESTS),
    ],
)
def test_tests(outcome: str, correct: bool, found: Difference | None) -> None:
    assert difference(record("mbpp", "", correct=correct, recheck=outcome), Rule.TESTS) == found

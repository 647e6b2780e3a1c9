r"""Where a recorded verdict follows another rule than ours, told from the record alone and never from our verdict."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from workflow.agreement.questions import bare_answer
from workflow.agreement.records import Record


class Class(enum.StrEnum):
    """Who is right where two verdicts disagree."""

    OURS = "ours right"
    UPSTREAM = "upstream right"
    AMBIGUOUS = "ambiguous"


class Rule(enum.StrEnum):
    """The rule of ours whose verdict is compared."""

    LETTER = "letter"
    NUMBER = "number"
    STRING = "string rule"
    SYMBOLIC = "Math-Verify"
    TESTS = "tests"


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which an upstream rule departs from ours.

    Attributes:
        words: What upstream does.
        right: Who is right where the verdicts disagree for this reason.
    """

    words: str
    right: Class


UNGRADED = Difference("stored no answer, or drew one at random, and gave no verdict", Class.OURS)
STRAY_LETTER = Difference("takes the last letter anywhere in the text", Class.OURS)
SEVERAL_OPTIONS = Difference("takes the first of several options named", Class.OURS)
OTHER_LETTER = Difference("takes a letter, or a line, from elsewhere than the box", Class.OURS)
DIGITS_ALONE = Difference("takes the last run of digits, without sign and decimals", Class.OURS)
UNREAD = Difference("keeps the calculation or the unit as part of the answer", Class.OURS)
HUNDREDTH = Difference("accepts a hundredth and a hundredfold of the value", Class.OURS)
CLOSING_SENTENCE = Difference("keeps the closing sentence as part of the answer", Class.OURS)
LAST_NUMBER = Difference("takes the last number where no answer is stated", Class.OURS)
BRACKETS = Difference("compares intervals without their brackets", Class.OURS)
VALUES = Difference("compares values, not spellings", Class.UPSTREAM)
SETTINGS = Difference("the test passes settings of its own", Class.AMBIGUOUS)
PROSE = Difference("finds the answer in prose, or several", Class.UPSTREAM)
PLAIN_NUMBERS = Difference("reads plain text as a number or its own way, not as LaTeX", Class.AMBIGUOUS)
CUT_OFF = Difference("runs a text that breaks off as it stands", Class.AMBIGUOUS)
OTHER_TESTS = Difference("the tests at hand do not give its verdict", Class.OURS)

# The pairs of this project are about the string rule, those of the others about Math-Verify's.
STRING_PAIRS = "hendrycks/math"

_LETTER = r"(?:\([A-J](?![\w'])|(?:[B-HJ](?![\w'])|[AI](?![\w'])(?!\s+[a-z])))"
_SEVERAL = re.compile(rf"answer is \(?[A-J]\)?\s*(?:,|/|&|\band\b|\bor\b)\s*{_LETTER}")
_FIRST = re.compile(r"answer is \(?[A-J]\)?")
_PLAIN_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def difference(record: Record, rule: Rule) -> Difference | None:
    """In what the rule behind a recorded verdict differs from ours, ``None`` where they are the same rule."""
    if rule is Rule.LETTER:
        return _of_letters(record)
    if rule is Rule.NUMBER:
        return _of_numbers(record)
    if rule is Rule.TESTS:
        return _of_tests(record)
    if record.file == "answer_pairs":
        return _of_pairs(record)
    return _of_formulas(record) or (VALUES if rule is Rule.STRING else None)


def _of_letters(record: Record) -> Difference | None:
    if record.file == "mmlu_stem":
        return OTHER_LETTER
    if record.meta["upstream_rule"] == "last_letter":
        return STRAY_LETTER
    if record.upstream_correct is None:
        return UNGRADED
    first = _FIRST.search(record.response)
    return SEVERAL_OPTIONS if first and _SEVERAL.match(record.response, first.start()) else None


def _of_numbers(record: Record) -> Difference | None:
    if record.upstream == "lm-sys/RouteLLM":
        text = record.response.replace(",", "")
        runs = list(re.finditer(r"\d+", text))
        return DIGITS_ALONE if runs and text[: runs[-1].start()].endswith(("-", ".")) else None
    predicted = record.upstream_pred or ""
    if not _PLAIN_NUMBER.fullmatch(predicted):
        return UNREAD
    return HUNDREDTH if _off_by_a_hundred(predicted, record.gold) else None


def _of_formulas(record: Record) -> Difference | None:
    predicted = record.upstream_pred or ""
    if "Ihopeitiscorrect" in predicted:
        return CLOSING_SENTENCE
    if not re.search(r"boxed|answer is", record.response):
        return LAST_NUMBER
    if _brackets(predicted) != _brackets(record.gold):
        return BRACKETS
    return HUNDREDTH if _off_by_a_hundred(predicted, record.gold) else None


def _of_pairs(record: Record) -> Difference | None:
    if record.upstream == STRING_PAIRS:
        return None
    if record.meta.get("extra"):
        return SETTINGS
    if bare_answer(record.gold) is None or bare_answer(record.response) is None:
        return PROSE
    is_formula = all(re.search(r"\$|\\boxed|\\[(\[]", text) for text in (record.gold, record.response))
    return None if is_formula else PLAIN_NUMBERS


def _of_tests(record: Record) -> Difference | None:
    outcome = record.meta["recheck"]
    if outcome in ("fail:SyntaxError", "fail:IndentationError"):
        return CUT_OFF
    return OTHER_TESTS if (outcome == "pass") is not record.upstream_correct else None


def _brackets(answer: str) -> str | None:
    """The brackets that enclose a list of values, if any do."""
    text = answer.replace("\\left", "").replace("\\right", "").strip()
    return text[0] + text[-1] if re.fullmatch(r"[(\[].*,.*[)\]]", text) else None


def _off_by_a_hundred(predicted: str, gold: str) -> bool:
    try:
        given, expected = (float(text.replace(",", "")) for text in (predicted, gold))
    except ValueError:
        return False
    ratio = given / expected if expected else 0.0
    return any(abs(ratio / factor - 1) < 1e-3 for factor in (0.01, 100.0))

r"""GSM-Hard: grade-school word problems with large numbers.

A record of the embedded data, in upstream's form::

    {"input": "Bronagh owns 371267 fossils. Wanjiru is promised 85890 of them, and a search of the attic turns up ...",
     "code": "def solution():\n    owned = 371267\n    after_gift = owned - 85890\n    balance = after_gift ...",
     "target": 286230.0}

A reply is right if its number differs from ``target`` by less than 0.001. ``code`` is not used.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from harness.benchmarks.base import Benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.statements import Statement, decided, own_sentences, pattern, plain, statements

TOLERANCE = 1e-3

# A number as models write it. Of the 1,319 targets, 146 are negative, 41 below 1, and the largest has thirteen digits.
# Sign: before or after the currency ("-$12", "$-12", "-US$12"), or apart at the start ("- 12", "minus 12").
# Digits: grouped by three or as in India ("12,34,567"); they may begin with the point (".5").
# Then an exponent of a program's output or of prose ("9.3 \times 10^{12}", after ``_plain`` "9.3 \times 1e12"), or a
# fraction, alone ("3/4") or after a whole number ("2 1/2 hours").
_NUMBER = re.compile(r"""(?x)
    (?P<sign> (?<![\w)])[+-] | ^\s*[+-]\s* | (?<=\$)[+-]\s* | ^\s*(?:minus|negative)\s+ )?
    (?: [A-Z]{0,2}\$\s* | (?:[A-Z]{3}|Rs\.?)\s* )?
    (?P<digits> (?:\d{1,3}(?:,\d{3}){1,8} | \d{1,2}(?:,\d{2}){1,6},\d{3}) (?:\.\d+)?(?!\d|,\d)
      | \d{1,3}(?:\.\d{3}){2,}(?!\d) | \d+(?:\.\d*)? | \.\d+ )
    (?: [eE](?P<exponent>[+-]?\d{1,3})\b | \s*(?:\\times|\\cdot|[×·⋅∙*x])\s*1e(?P<power>[+-]?\d{1,3})
      | (?:\s+(?P<numerator>\d+))?\s*/\s*(?P<denominator>\d+(?:,\d{3})*(?:\.\d+)?)
      | [\s-]*(?P<scale>(?i:hundred|thousand|million|billion|trillion))s?\b )?
""")
_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{\s*(-?[\d,.]+)\s*\}|(\d))\s*(?:\{\s*([\d,.]+)\s*\}|(\d))")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|(?<=\d[.!?])\s")
# The start of a remark, which may explain a number by an equation: "42 (x = 6)", "42 dollars, as 1 ticket = 6 dollars".
_REMARK = re.compile(
    r"[(\[{]|[,;:]\s|\s(?:[—→|]|-+(?=\s+[A-Za-z]))\s|\s(?:as|since|because|where|when|if|so|which|given|assuming|using|while|but"
    r"|hence|thus|then|therefore|meaning|that)\b|\s(?:for|with|at|by|in|from|on|and|or)\s+(?:the\s+)?[A-Za-z\\]\w*\s*="
)
_MAX_REMARKS = 20
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_CALCULATION = re.compile(r"[\d)]\s*(?:[-+*×·]|\\times|\\cdot)\s*(?!1e[-+\d])[\d$(.]")
# Words before a number that is not the answer: "for 4 liters", "each of the 3".
_CIRCUMSTANCE = pattern(
    r"\b(?:for|in|of|each|every|per|after|at|with|from|by|on|than|within|the|all|between|during)\s+\Z"
)
# Position between the whole number and the fraction of a mixed number.
_MIXED = re.compile(r"(?<=\d)(?=\\[dt]?frac)")
# An ordinary space between digits is not a thousands separator, since it may separate two numbers.
_GROUPED = re.compile(r"(?<=\d)(?:[\u00a0\u2007\u2009\u202f'’_~]|\\[ ,;:!])(?=\d{3}(?!\d))")
# A long dash before a space is punctuation, not a minus sign.
_MINUS = re.compile(r"\{\s*[-\u2010-\u2015\u2212]\s*\}|[\u2010-\u2013\u2212\ufe63\uff0d]|[\u2014\u2015\ufe58](?=\S)")
_CURRENCY = re.compile(r"\\?[¢-¥฿\u20a0-\u20cf\ufe69\uff04\uffe0\uffe1\uffe5\uffe6]")
_POWER = re.compile(r"(?<![\d.,])\{?10\}?(?:\s*\^\s*|\*\*)(?:\{\s*([+-]?\d{1,3})\s*\}|([+-]?\d{1,3}))")
_RAISED = re.compile(r"(?<=10)[⁺⁻⁰¹²³⁴-⁹]+")
_LOWERED = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")


class GsmHard(Benchmark):
    """Data, prompt, extraction and grading of GSM-Hard."""

    rule_version = "10"
    role_domain = "Math"
    output_rules = (
        "Finish with a last line of the form: The answer is <number>. Write the number in plain digits, with a minus "
        "sign and a decimal point where needed, without thousands separators, units, scientific notation or rounding."
    )

    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Convert the records. Upstream has no ids, so the index in upstream's order is the id."""
        return [
            Item(
                id=str(index),
                benchmark=self.key,
                question=record["input"],
                gold=repr(float(record["target"])),
                difficulty=record.get("difficulty"),
            )
            for index, record in enumerate(records)
        ]

    def find_answer(self, item: Item, text: str, stated_only: bool) -> str | None:
        """Find the number of the last statement that has one, or else the last number in the text's own sentences."""
        readable = _plain(text)
        number = decided(statements(readable, stated_only), _stated_number)
        if number is None and not stated_only:
            number = next(reversed(list(_NUMBER.finditer(own_sentences(readable)))), None)
        return _decimal(number) if number else None

    def same(self, item: Item, a: str, b: str) -> bool:
        return abs(float(a) - float(b)) < TOLERANCE


BENCHMARK = GsmHard


def _stated_number(statement: Statement) -> re.Match[str] | None:
    """Find the number in the first sentence of a statement that has one. For a calculation, use its result."""
    for sentence in _SENTENCE_END.split(statement.text if statement.is_box else statement.line):
        parts = _without_remark(sentence).split("=")
        results = [part for part in parts if not _CALCULATION.search(part)]
        for part in reversed(results or parts):
            numbers = list(_NUMBER.finditer(part))
            if statement.is_direct or len(parts) > 1:
                numbers = numbers[:1]
            if numbers:
                return min(numbers, key=lambda it: bool(_CIRCUMSTANCE.search(part, 0, it.start())) - ("$" in it[0]))
    return None


def _without_remark(sentence: str) -> str:
    """Cut off an equation that explains the number of a sentence, but keep one that states the number."""
    for remark in itertools.islice(_REMARK.finditer(sentence), _MAX_REMARKS):
        value, explanation = sentence[: remark.start()], sentence[remark.start() :]
        is_bracket = remark.group().endswith(("(", "[", "{"))
        equation = re.split(r"[)\]}]", explanation, maxsplit=1)[0] if is_bracket else explanation
        is_whole = _NUMBER.search(value) and not _CALCULATION.search(value.rpartition("=")[2])
        if is_whole and "=" in equation:
            return value
    return sentence


def _plain(text: str) -> str:
    r"""Normalise signs, currencies, separators, powers and fractions of Unicode and LaTeX, fonts and bold marks."""
    text = _CURRENCY.sub("$", _MINUS.sub("-", plain(text, fonts=False))).replace("{,}", ",")
    text = _RAISED.sub(lambda match: f"^{match.group().translate(_LOWERED)}", _GROUPED.sub("", text))
    text = _FRACTION.sub(lambda match: f"{match[1] or match[2]}/{match[3] or match[4]}", _MIXED.sub(" ", text))
    text = re.sub(r"\\(?:left|right|[,!$;:]|(?=[ {}]))", "", text)
    text = re.sub(r"(?<=-)\s*[{(]\s*([\d.,/]+)\s*[})]|\{(-[\d.,/]+)\}", r"\1\2", text)
    return _POWER.sub(lambda match: f"1e{match[1] or match[2]}", text)


def _decimal(number: re.Match[str]) -> str:
    """Write a match of ``_NUMBER`` as a decimal number that ``float`` can parse."""
    sign = "-" if (number["sign"] or "+").strip() != "+" else ""
    exponent = number["exponent"] or number["power"] or _SCALES.get((number["scale"] or "").lower())
    digits = number["digits"].replace(",", "").rstrip(".")
    digits = digits if digits.count(".") < 2 else digits.replace(".", "")
    whole, over = (digits, number["numerator"]) if number["numerator"] else ("0", digits)
    if under := Decimal((number["denominator"] or "0").replace(",", "")):
        return f"{sign}{Decimal(whole) + Decimal(over) / under:f}"
    return f"{sign}{digits}e{int(exponent)}" if exponent else f"{sign}{digits}"

"""GSM-Hard: grade-school word problems with unwieldy numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from harness.benchmarks.base import Benchmark
from harness.benchmarks.extraction import after_answer_is, boxes_from_last, without_programs
from harness.benchmarks.items import Item

TOLERANCE = 1e-3

_NUMBER = re.compile(
    r"""
    (?P<sign> (?<![\w)])[+-] | ^\s*[+-]\s* )? (?: \$\s*(?P<late_sign>-)? )?
    (?P<digits> \d{1,3}(?:,\d{3}){1,8}(?:\.\d+)?(?!\d|,\d) | \d+(?:\.\d*)? | \.\d+ )
    (?: [eE](?P<exponent>[+-]?\d{1,3})\b | \s*(?:\\times|×|\*|x)\s*10\s*(?:\^|\*\*)\s*\{?(?P<power>[+-]?\d{1,3})
      | (?:\s+(?P<numerator>\d+))?\s*/\s*(?P<denominator>\d+(?:,\d{3})*(?:\.\d+)?) )?
    """,
    re.VERBOSE,
)
_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{\s*(-?[\d,.]+)\s*\}|(\d))\s*(?:\{\s*([\d,.]+)\s*\}|(\d))")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_UNBOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
# Between the number and the fraction of a mixed number.
_MIXED = re.compile(r"(?<=\d)(?=\\[dt]?frac)")
# An ordinary blank between digits may as well divide two numbers.
_SEPARATING_BLANK = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")


class GsmHard(Benchmark):
    """Graded by an absolute tolerance of 0.001 on the number."""

    rule_version = "6"
    role_domain = "Math"
    output_rules = (
        "Finish with a last line of the form: The answer is <number>. Write the number in plain digits, with a minus "
        "sign and a decimal point where needed, without thousands separators, units, scientific notation or rounding."
    )

    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Return the items; their ids are positions in upstream order, which is all upstream gives."""
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

    def present(self, item: Item, answer: str) -> str:
        """Write the answer line, without an exponent however large or small the number is."""
        return f"The answer is {format(Decimal(answer), 'f').removesuffix('.0')}"

    def read(self, item: Item, text: str, stated_only: bool) -> str | None:
        """Return the number on the last answer line that has one, else in the last such box, else the text's last."""
        readable = _plain(text)
        stated = [*reversed(after_answer_is(_UNBOXED.sub("", readable), stated_only)), *boxes_from_last(readable)]
        number = next(filter(None, map(_first_number, stated)), None)
        if number is None and not stated_only:
            *_, number = [None, *_NUMBER.finditer(_UNBOXED.sub("", without_programs(readable)))]
        return _decimal(number) if number else None

    def wrong_answers(self, item: Item) -> tuple[str, ...]:
        """Return slips of sign, of one step, of a factor, of a digit."""
        gold = float(item.gold)
        candidates = (gold + 1, gold * 2, -gold, gold / 2, gold - 1, gold * 10, gold + 10, 0.0)
        kept: list[str] = []
        for candidate in map(repr, candidates):
            if not any(self.same(item, candidate, other) for other in (item.gold, *kept)):
                kept.append(candidate)
        return tuple(kept)

    def same(self, item: Item, a: str, b: str) -> bool:
        """Return whether two numbers lie closer than the tolerance."""
        return abs(float(a) - float(b)) < TOLERANCE


BENCHMARK = GsmHard


def _first_number(statement: str) -> re.Match[str] | None:
    """Return the first number of a statement's first sentence with one; a calculation may precede it: "12 + 3 = 15"."""
    parts = (part for sentence in _SENTENCE_END.split(statement) for part in reversed(sentence.split("=")))
    return next(filter(None, map(_NUMBER.search, parts)), None)


def _plain(text: str) -> str:
    r"""Undo typography: minus sign and separating blanks of Unicode, LaTeX's fractions and separators, bold marks."""
    text = text.replace("−", "-").replace("{,}", ",")
    text = _SEPARATING_BLANK.sub("", text)
    text = _FRACTION.sub(lambda match: f"{match[1] or match[2]}/{match[3] or match[4]}", _MIXED.sub(" ", text))
    return re.sub(r"\\[,!$]|\*\*(?!\d)|(?<!\d)\*\*", "", text)


def _decimal(number: re.Match[str]) -> str:
    """Return a match of ``_NUMBER`` as a decimal number that ``float`` reads."""
    sign = "-" if "-" in f"{number['sign']}{number['late_sign']}" else ""
    exponent = number["exponent"] or number["power"]
    digits = number["digits"].replace(",", "").rstrip(".")
    whole, over = (digits, number["numerator"]) if number["numerator"] else ("0", digits)
    if under := Decimal((number["denominator"] or "0").replace(",", "")):
        return f"{sign}{Decimal(whole) + Decimal(over) / under:f}"
    return f"{sign}{digits}e{int(exponent)}" if exponent else f"{sign}{digits}"

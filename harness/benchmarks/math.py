r"""MATH: competition problems whose answer is in a box.

A record of the embedded data, in upstream's form::

    {"problem": "The lines $v=7t-27$ and $v=-3t-18$ meet at one value of $t$. Find it.",
     "solution": "Collecting terms gives $10t=9$. The result is $\boxed{\frac{9}{10}}$.",
     "type": "Algebra", "level": "Level 1"}

A reply is right if its answer equals the answer in ``solution`` by the string rules that MATH was published with. They
unify spellings and go no further: ``0.25`` and ``\frac{1}{4}`` stay different, since published accuracies were counted
this way. We add two rules: a percent sign is ignored with or without its backslash, and the letter of an option is the
same in any font. Math-Verify's verdict is a second column.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.items import Item, Split, Status, Verdict, share_split, stratified_sample
from harness.benchmarks.statements import FONT, Statement, decided, last_box, plain, statements

_WORDS = rf"(?:{FONT}\{{\s*)?(?!and\b|or\b)[A-Za-z]{{2}}[A-Za-z\s,.'-]*\}}?"
# "(C) Plane", "\text{(C) Plane}", "\text{(C)} Plane", "\textbf{(B)}\ 3(1 + r/10)^x = 7", but not "(A) and (B)".
_OPTION = re.compile(
    rf"({FONT}\{{)?(\([A-Z]\))\}}?(?:[\s~:.]|\\[ ,;:]|\\q?quad\b)+"
    r"(?!and\b|or\b|[-+*/=<>,&^|]|\\(?:cup|cap|cdot|times|in)\b).+",
    re.DOTALL,
)
_SET_OPTION = re.compile(rf"{FONT}\{{\s*(\([A-Z]\))\s*\}}")
# "12^{th} grade", "12^{\text{th}} \text{ grade}", "12th grade", "12^{\mathrm{th}}".
_ORDINAL = re.compile(rf"(\d+)\^?\{{?(?:{FONT}\{{)?(?:st|nd|rd|th)\}}{{0,2}}(?:(?:[\s~]|\\ )*(?<=[\s~}}]){_WORDS})?")
# "23, we will see", "7, which is odd": the word after the comma shows a clause. "23 because" needs no comma.
_CLAUSE = re.compile(
    r"(?:,\s+(?:as|because|but|hence|it|since|so|that|the|then|therefore|this|thus|we|where|which)|(?<!\s)\s+because)\s+[A-Za-z]"
)
# In a calculation ("12 + 12 - 7 = 17", "\frac{84}{2} = 42"), letters name commands, constants or bound variables.
_EQUALS = re.compile(r"(?<![<>!\\:])=(?![^{]*\})")
_UNKNOWN = re.compile(
    r"\\(?:sum|prod|int|lim)(?s:.*)|\\(?:text|mathrm)\s*\{[^{}]*\}|\\[A-Za-z]+|(?:sqrt|sin|cos|tan|log|ln|gcd|lcm|max|min)\b"
    r"|[ei](?![A-Za-z])|([A-Za-z])"
)
# "8 grams of tea", but not "5 and x" or "2 pi".
_COUNTED = re.compile(rf"(-?\d+(?:,\d{{3}})*(?:\.\d+)?%?)\s+(?!pi\b){_WORDS}")


class Math(Benchmark):
    """Data, prompt, extraction and grading of MATH."""

    rule_version = "10"
    role_domain = "Math"
    output_rules = (
        'Finish with a last line that begins with "The answer is" and has the final value inside \\boxed{}: the value '
        "alone, in LaTeX and fully simplified, without any units, words or rounding."
    )

    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Convert the records. An id is subject and hash of the problem, since no copy has upstream's file names."""
        return [self._item(record) for record in records]

    def _item(self, record: Mapping[str, Any]) -> Item:
        gold = last_box(record["solution"])
        if gold is None:
            raise ValueError(f"the solution of {record['problem'][:60]!r} has no \\boxed answer")
        subject = record["type"].lower().replace("&", "and").replace(" ", "_")
        return Item(
            id=f"{subject}/{hashlib.sha256(record['problem'].encode()).hexdigest()[:12]}",
            benchmark=self.key,
            question=record["problem"],
            gold=gold,
            stratum=f"{record['type']}/{record['level']}",
            difficulty=record.get("difficulty"),
        )

    def _published_split(self, items: Sequence[Item]) -> Split:
        # 519 problems, a tenth of every subject and level, rounded up; 103 of them for training.
        strata = {item.id: item.stratum for item in items}
        sizes = {name: -(-count // 10) for name, count in Counter(strata.values()).items()}
        return share_split(stratified_sample(strata, sizes, self.key), self.key)

    def find_answer(self, item: Item, text: str, stated_only: bool) -> str | None:
        """Return the value of the last statement, without words that explain it."""
        found = statements(plain(text, fonts=True), stated_only)
        return decided(found, lambda statement: _value(statement, item.question))

    def same(self, item: Item, a: str, b: str) -> bool:
        return equivalent(a, b)

    async def grade_answer(self, item: Item, answer: str, tools: Tools) -> Verdict:
        """Grade by the string rules. ``also["math_verify"]`` is the verdict of Math-Verify, if there is one."""
        correct = equivalent(item.gold, answer)
        verified = await tools.math_verify.equal(item.gold, answer)
        also = {} if verified is None else {"math_verify": verified}
        return Verdict(correct, answer, Status.GRADED, also=also)


BENCHMARK = Math


def _value(statement: Statement, question: str) -> str | None:
    answer = statement.text if statement.is_box else _result(_first_formula(statement.line), question)
    return _without_explanation(answer) or None


def _first_formula(line: str) -> str:
    formula = re.match(r"\\\((.+?)\\\)|\\\[(.+?)\\\]|\$+((?:\\.|[^$\\])+)\$", line)
    if formula:
        return re.sub(r"(?<![\\.])[.,]$", "", (formula[1] or formula[2] or formula[3]).strip())
    return re.split(r"\.(?=[\s*_]|$)", line, maxsplit=1)[0].strip(" *_`")


def _result(line: str, question: str) -> str:
    """Reduce a calculation, or an equation whose left side is in the question, to the right side. Drop units."""
    *left, right = _EQUALS.split(line)
    is_calculation = left and not any(name[1] for name in _UNKNOWN.finditer(left[-1]))
    result = right.strip() or line if is_calculation or f"${'='.join(left).strip()}$" in question else line
    counted = _COUNTED.fullmatch(result)
    return counted[1] if counted else result


def _without_explanation(answer: str) -> str:
    """Drop the words after an option's letter, the noun after an ordinal, or a clause after the answer."""
    option = _OPTION.fullmatch(answer)
    if option:
        return f"{option[1]}{option[2]}}}" if option[1] else option[2]
    ordinal = _ORDINAL.fullmatch(answer)
    if ordinal:
        return ordinal[1]
    value = _CLAUSE.split(answer, maxsplit=1)[0]
    is_whole = value.count("{") == value.count("}") and re.search(r"[\d\\]", value)
    return value if is_whole else answer


_INTEGER_RATIO = re.compile(r"(-?\d+)/(-?\d+)")
_TOKEN = re.compile(r"\s*(\\[a-zA-Z]+|[^\s{}\[\]\\])")


def equivalent(a: str, b: str) -> bool:
    return a == b or normal_form(a) == normal_form(b)


def normal_form(answer: str) -> str:
    """Normalise an answer: spellings that the rules call equal become the same text."""
    text = answer.replace("\n", "").replace(r"\!", "").replace(r"\\", "\\")
    text = text.replace(r"\tfrac", r"\frac").replace(r"\dfrac", r"\frac")
    for mark in (r"\left", r"\right", r"^{\circ}", r"^\circ", r"\$", r"\%", "%"):
        text = text.replace(mark, "")
    text = _SET_OPTION.sub(r"\1", text)
    # Text that begins with a space is a unit. Other text belongs to the answer.
    text = text.split(r"\text{ ", 1)[0].replace(" .", " 0.").replace("{.", "{0.")
    text = f"0{text}" if text.startswith(".") else text
    # ``x = 5`` is 5; a longer left side is part of the answer.
    left, _, right = text.partition("=")
    text = right if right and "=" not in right and len(left) <= 2 else text
    text = _with_braced_arguments(text, r"\sqrt", arguments=1)
    text = _with_braced_arguments(text, r"\frac", arguments=2)
    text = re.sub(r"\s+", "", text)
    # 0.5 is the only decimal that the rules equate with a fraction.
    ratio = _INTEGER_RATIO.fullmatch("1/2" if text == "0.5" else text)
    return rf"\frac{{{ratio[1]}}}{{{ratio[2]}}}" if ratio else text


def _with_braced_arguments(text: str, command: str, arguments: int) -> str:
    r"""Write ``\frac12`` as ``\frac{1}{2}`` and ``\sqrt3`` as ``\sqrt{3}``, at any depth."""
    head, *tails = re.split(re.escape(command) + r"(?![a-zA-Z])", text)
    parts = [head]
    for tail in tails:
        parts.append(command)
        for _ in range(arguments):
            token = _TOKEN.match(tail)
            if token is None:
                break
            parts.append(f"{{{token[1]}}}")
            tail = tail[token.end() :]
        parts.append(tail)
    return "".join(parts)

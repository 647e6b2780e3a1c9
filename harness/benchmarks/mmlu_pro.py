"""MMLU-Pro: questions from fourteen fields with up to ten options."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.extraction import boxes_from_last
from harness.benchmarks.items import Item, Split, Status, Verdict, proportional_sample, share_split

LETTERS = "ABCDEFGHIJ"
PUBLISHED_SAMPLE = 1100
_DEEPEST_WRAPPING = 3

# A bare A or I with a word behind it is the article or the pronoun.
_BARE = r"(?:[B-HJ](?![\w'])|[AI](?![\w'])(?!\s+[a-z]))"
# Two options are no choice: "A and C", "(B), (D)".
_ALONE = rf"(?!\)?\s*(?:,|/|&|\band\b|\bor\b)\s*(?:\([A-J](?![\w'])|{_BARE}))"
_NOUN = r"(?i:(?:option|choice|letter)\s+)?"
_BOXED_LETTER = re.compile(rf"{_NOUN}\(?([A-J]){_ALONE}\)?(?:[.:)]?\s.*|[.:)].*)?", re.DOTALL)
_WRAPPED = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|boldsymbol)\s*\{([^{}]*)\}")
_ANSWER_LETTER = re.compile(
    rf"(?i:\b(?:answer|correct\s+(?:option|choice))(?:\s+is\b|\s*:))[\s:]*{_NOUN}"
    rf"(?:\(\s*([A-J])(?![\w'])|({_BARE})){_ALONE}"
)
# A line that begins another question: "Question: ...", "### Question 2", "Q3. ...", or the next turn of a dialogue.
_NEXT_QUESTION = re.compile(
    r"^[ \t>#*_]*(?:(?:next\s+)?(?:question|problem)[ \t]*\d*[*_]*(?:[ \t]*[:.]|[ \t]*$)|q[ \t]*\d*[*_]*[ \t]*[:.]"
    r"|(?:user|human)[*_]*:|<\|(?:user\b|im_start\|>user\b)|the following (?:is|are) (?:a )?multiple[ -]choice)",
    re.IGNORECASE | re.MULTILINE,
)
_MARKUP = re.compile(r"[*_$`\"“”]|\\(?:q?quad|mathbf|mathrm|bf|rm)\b|\\(?:[,;:! ]|$)")


class MmluPro(Benchmark):
    """Graded by the letter; a reply that names none is wrong, and none is drawn for it."""

    rule_version = "3"
    role_domain = "Commonsense"
    output_rules = (
        "Finish with a last line of the form: The answer is \\boxed{X}, where X is the letter of the one option that "
        "you choose. Options are lettered from A to J at most; the box holds the letter alone."
    )

    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """The question text shows the options, lettered in order."""
        return [self._item(record) for record in records]

    def _item(self, record: Mapping[str, Any]) -> Item:
        options = tuple(record["options"])
        # The letter is the answer: in question 3983 its index points at another option.
        gold = record["answer"]
        if gold not in LETTERS[: len(options)]:
            raise ValueError(f"question {record['question_id']} has {len(options)} options and the answer {gold!r}")
        lettered = [f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)]
        return Item(
            id=str(record["question_id"]),
            benchmark=self.key,
            question="\n".join([record["question"], *lettered]),
            gold=gold,
            stratum=record["category"],
            options=options,
            difficulty=record.get("difficulty"),
        )

    def _published_split(self, items: Sequence[Item]) -> Split:
        """1100 questions in proportion to the categories, 220 of them for training."""
        strata = {item.id: item.stratum for item in items}
        return share_split(proportional_sample(strata, PUBLISHED_SAMPLE, self.key), self.key)

    def present(self, item: Item, answer: str) -> str:
        """The answer line with a boxed letter."""
        return f"The answer is \\boxed{{{answer}}}"

    def extract(self, item: Item, text: str) -> str | None:
        """The last boxed letter, else that after the last "answer is", before any next question; else in all of it."""
        unwrapped = _unwrapped(text)
        return _stated(_NEXT_QUESTION.split(unwrapped, maxsplit=1)[0]) or _stated(unwrapped)

    def wrong_answers(self, item: Item) -> tuple[str, ...]:
        """The other letters, in an order of the question's own."""

        def place(letter: str) -> bytes:
            return hashlib.sha256(f"{item.id}/{letter}".encode()).digest()

        return tuple(sorted(set(LETTERS[: len(item.options)]) - {item.gold}, key=place))

    def same(self, item: Item, a: str, b: str) -> bool:
        """Whether the letters are equal."""
        return a == b

    async def judge(self, item: Item, answer: str, tools: Tools) -> Verdict:
        """Compare the letters."""
        return Verdict(answer == item.gold, answer, Status.GRADED)


BENCHMARK = MmluPro


def _stated(text: str) -> str | None:
    for content in boxes_from_last(text):
        letter = _BOXED_LETTER.fullmatch(_MARKUP.sub("", content).strip())
        if letter:
            return letter[1]
    found = _ANSWER_LETTER.findall(_MARKUP.sub("", text))
    return "".join(found[-1]) if found else None


def _unwrapped(text: str) -> str:
    r"""Text without ``\text{...}`` and its kind, which may stand in one another."""
    for _ in range(_DEEPEST_WRAPPING):
        text = _WRAPPED.sub(r"\1", text)
    return text

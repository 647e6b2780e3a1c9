"""MMLU-Pro: questions from fourteen fields with up to ten options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness.benchmarks.base import Benchmark
from harness.benchmarks.extraction import FONT, boxes_from_last, letters_and_digits
from harness.benchmarks.items import Item, Split, largest_remainder, share_split, stratified_sample

LETTERS = "ABCDEFGHIJ"
PUBLISHED_SAMPLE = 1100
_DEEPEST_WRAPPING = 3

# A bare A or I with a word behind it is the article or the pronoun.
_BARE = r"(?:[B-HJ](?![\w'])|[AI](?![\w'])(?!\s+[a-z]))"
# Two options are no choice: "A and C", "(B), (D)".
_ALONE = rf"(?!\)?\s*(?:,|/|&|\band\b|\bor\b)\s*(?:\([A-J](?![\w'])|{_BARE}))"
_NOUN = r"(?i:(?:option|choice|letter)\s+)?"
# An equation in a box, such as "A = 2", is no option.
_BOXED_LETTER = re.compile(
    rf"{_NOUN}\(?([A-J]){_ALONE}\)?(?:[.:)\s](?!\s*(?:[=≈]|\\approx)).*)?|\(?([a-j])[.)]*", re.DOTALL
)
_WRAPPED = re.compile(FONT + r"\{([^{}]*)\}")
_LEAD = (
    r"(?i:\b(?:the\s+)?(?:(?:final|correct)\s+)?(?:answer|correct\s+(?:option|choice))(?:\s+is\b|\s*:)|<answer>"
    r"|^[ \t>#]*(?:the\s+)?(?:(?:final|correct)\s+)?(?:answer|choice|option)[ \t#]*\n)[\s:]*"
)
# "neither A nor B is right", "if B is right" and "why B is right" choose nothing.
_SUBJECT = r"(?<!or\s)(?<!and\s)(?<![Ii]f\s)(?<!why\s)(?<![\w(])\(?([A-J])\)?\s+"
_RIGHT = r"is\s+(?:\w+ly\s+)?(?:the\s+)?(?:most\s+|only\s+|single\s+)?(?:correct|right|best|accurate|appropriate)"
# The letter behind "the answer is" and the like, or in front of "is the correct answer". Answer lines on consecutive
# lines are a list, and the later ones no correction.
_ANSWER_LETTER = re.compile(
    rf"{_LEAD}{_NOUN}(?:\(\s*([A-J])(?![\w'])|({_BARE})){_ALONE}"
    rf"(?:[.)]{{0,2}}[ \t]*\n\s*{_LEAD}{_NOUN}\(?[A-J](?![\w']))*"
    rf"|{_SUBJECT}{_RIGHT}\s+(?i:answer|choice|option|one)\b",
    re.MULTILINE,
)
# "C", "(C) seven", "Option C: seven"; and the end of "The most likely one is C." or "Hence option C is correct."
# What stands before II is a number.
_CHOICE = re.compile(rf"{_NOUN}\(?([A-J]|II)(?![\w'])(?:[.:)]+\s*(.*))?")
_CONCLUSION = re.compile(
    rf"\b(?:is|be|choose|pick|select)\s*:?\s+{_NOUN}(?:\(([A-J])\){_ALONE}|([A-J])[.!]?$)"
    rf"|{_SUBJECT}{_RIGHT}\b"
)
# "(B) is wrong because", "B. no" and their like reject an option.
_REJECTED = re.compile(r"[\W_]*(?:is|are|was|were|not?|n[o']t|wrong|incorrect|false)\b", re.IGNORECASE)
# Small letters name an option in brackets, or alone at the end of their line.
_SMALL = re.compile(
    r"(?<![\w)])\([a-j]\)"
    r"|(?:(?<=is\s)|(?<=answer:\s)|(?<=option\s)|(?<=choice\s)|(?<=letter\s)|^)[a-j](?=[.)]?[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
# "The answer is:\nA. four\nB. six" lists the options.
_OPTION_BELOW = re.compile(r"[^\n]{0,400}\n(\s*)\(?B[.):]+[ \t]*([^\n]*)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
# "A. four B. six C. seven" on one line does, too.
_LISTED = re.compile(r"(?<!\w)\(?[A-J][.)]\s")
# Words of a line that gives an option in other words than the question: "E. coli is found in ..." is a sentence.
_MOST_WORDS = 3
_MARKUP = re.compile(
    r"[*_$`\"“”]|(?<!\w)['‘](?=[A-J]\b)|(?<=\b[A-J])['’](?!\w)"
    r"|\\(?:boxed|fbox)\s*\{|\\(?:q?quad|mathbf|mathrm|bf|rm)\b|\\(?:[,;:! ()\[\]]|$)"
)


class MmluPro(Benchmark):
    """Graded by the letter; a reply that names none is wrong, and none is drawn for it."""

    rule_version = "7"
    role_domain = "Commonsense"
    output_rules = (
        "Finish with a last line of the form: The answer is \\boxed{X}, where X is the letter of the one option that "
        "you choose. Options are lettered from A to J at most; the box holds the letter alone."
    )

    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Return the items; their text shows the options, lettered in order."""
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
        """Divide 1100 questions, in proportion to the categories: 220 of them for training."""
        strata = {item.id: item.stratum for item in items}
        sizes = largest_remainder(Counter(strata.values()), PUBLISHED_SAMPLE)
        return share_split(stratified_sample(strata, sizes, self.key), self.key)

    def read(self, item: Item, text: str, stated_only: bool) -> str | None:
        """Return the last boxed letter, else that after the last "answer is", else that of a bare choice."""
        # ``\text{...}`` and its kind may stand in one another.
        for _ in range(_DEEPEST_WRAPPING):
            text = _WRAPPED.sub(r"\1", text)
        for content in boxes_from_last(text):
            plain = _MARKUP.sub("", content).strip()
            letter = _BOXED_LETTER.fullmatch(plain)
            if letter and not _heads_list(item, plain, letter):
                return (letter[1] or letter[2]).upper()
        plain = _MARKUP.sub("", text)
        plain = plain if "(ii)" in plain else _SMALL.sub(lambda match: match.group().upper(), plain)
        for answer in reversed(list(_ANSWER_LETTER.finditer(plain))):
            if not _heads_list(item, plain, answer):
                return answer[answer.lastindex or 0]
        return _bare_choice(item, plain, stated_only)


BENCHMARK = MmluPro


def _heads_list(item: Item, text: str, letter: re.Match[str]) -> bool:
    """Return whether a letter A begins a list of options, with option B below; "(B) is wrong" is none."""
    group = letter.lastindex or 0
    below = _OPTION_BELOW.match(text, letter.end(group)) if letter[group] == "A" else None
    if below is None:
        return False
    if len(item.options) > 1:
        return letters_and_digits(below[2]) == letters_and_digits(item.options[1])
    return below[1].count("\n") == 0 and not _REJECTED.match(below[2])


def _bare_choice(item: Item, text: str, stated_only: bool) -> str | None:
    """Return the letter that ends a text, or the only one whose line begins it; a list of options is no choice."""
    lines = [line.strip() for line in text.split("\n")]
    # A text that is cut off ends amid its last line.
    unfinished = stated_only and bool(lines[-1])
    lines = [line for line in (lines[:-1] if unfinished else lines) if line]
    if not lines:
        return None
    if not unfinished and (concluded := list(_CONCLUSION.finditer(_SENTENCE_END.split(lines[-1])[-1]))):
        return concluded[-1][concluded[-1].lastindex or 0]
    options = {match[1] for match in map(_CHOICE.fullmatch, lines) if match}
    ends = lines[:1] if unfinished else [lines[-1], lines[0]]
    if len(options) != 1 or "II" in options:
        return None
    return next(filter(None, (_letter_of_line(item, line) for line in ends)), None)


def _letter_of_line(item: Item, line: str) -> str | None:
    """Return the letter of a line that gives an option, by itself or with its words, None for any other line."""
    match = _CHOICE.fullmatch(line)
    if match is None:
        return None
    letter, words = match[1], letters_and_digits(match[2] or "")
    options = dict(zip(LETTERS, map(letters_and_digits, item.options), strict=False))
    option = options.get(letter, "")
    if not words or words == option:
        return letter
    if _REJECTED.match(match[2]) or _LISTED.search(match[2]) or {words, letters_and_digits(line)} & {*options.values()}:
        return None
    is_prefix = option and (words.startswith(option) or option.startswith(words))
    return letter if is_prefix or len(match[2].split()) <= _MOST_WORDS else None

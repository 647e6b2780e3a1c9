"""MMLU-Pro: questions from fourteen fields with up to ten options.

A record of the embedded data, in upstream's form::

    {"question_id": 0, "question": "What do lawyers call the following? A prisoner demands to be brought before ...",
     "options": ["negligence", "habeas corpus", "subpoena", "force majeure", "injunction", "double jeopardy", ...],
     "answer": "B", "answer_index": 1, "category": "law", "src": "mini-legal_term"}

A reply is right if its letter is ``answer``. A reply without a letter is wrong. No random letter replaces it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from harness.benchmarks.base import Benchmark
from harness.benchmarks.extraction import letters_and_digits
from harness.benchmarks.items import Item, Split, largest_remainder, share_split, stratified_sample
from harness.benchmarks.statements import IS, Statement, decided, plain, statements

LETTERS = "ABCDEFGHIJ"
PUBLISHED_SAMPLE = 1100

# Before a word, a bare A or I is the article or the pronoun; before an operator, a bare letter is part of a formula.
_BARE = r"(?:[A-J](?!\w|['’]\w|[-+^*=])(?<![AI](?=\s[a-z])))"
# A letter does not count if a second option follows: "A and C", "(B), (D)".
_ALONE = rf"(?!\)?\s*(?:,|/|&|\band\b|\bor\b)\s*(?:\([A-J](?!\w|['’]\w)|{_BARE}))"
_NOUN = r"(?i:(?:option|choice|letter|answer)[\s_-]+)?"
# The letter of a statement: at its start, unless it begins an equation, or else after a few words.
_HEAD = re.compile(rf"[^\w(.\n]*{_NOUN}(?:\(\s*([A-J])(?!\w|['’]\w)|({_BARE})){_ALONE}(?!\)?\s*(?:[=≈]|\\approx))")
_LATER = re.compile(
    rf"(?m)(?:[a-z'’,-]+\s){{0,6}}?([a-z]+,?\s)(?:\(([A-J])\)|([A-J])(?=[.,;:!)]*(?:\s*$|\s+[A-Z]|,?\s(?:because|since|as)\b))){_ALONE}"
)
# Consecutive answer lines are a list of options. The later lines do not correct the first.
_ONE_OF_LIST = re.compile(r"\W*[A-J][.)]{0,2}[ \t]*\n\s*(?:the\s+(?:(?:final|correct)\s+)?)?", re.IGNORECASE)
# "C", "(C) seven", "Option C: seven", "C - seven". "II" is a Roman numeral, not option I.
_CHOICE = re.compile(
    rf"{_NOUN}\(?\s?([A-J]|II)(?!\w|['’]\w)\s?(?:(?:[.:)]+|[.:)]*(?:[-–—|]>?(?=\s)|\())\s*(.*)|,?\s?(?:because|since)\b.*)?"
)
# "The answer is:\nA. four\nB. six" lists the options, and so does "A. four B. six C. seven".
_OPTION_BELOW = re.compile(r"[^\n]{0,400}\n(\s*)\(?B[.):]+[ \t]*([^\n]*)")
_LISTED = re.compile(r"(?<!\w)\(?[A-J][.)]\s")
_WRAPPERS = " []{}<>«»“”„‹›\"'‘’/~.!;|"
_MARKUP = re.compile(r"[*$`]|(?<![^\W_])_|_(?![^\W_])|\\(?:q?quad|mathbf|mathrm|bf|rm)\b|\\(?:[,;:! ()\[\]]|$)")


class MmluPro(Benchmark):
    """Data, prompt, extraction and grading of MMLU-Pro."""

    rule_version = "8"
    role_domain = "Commonsense"
    output_rules = (
        "Finish with a last line of the form: The answer is \\boxed{X}, where X is the letter of the one option that "
        "you choose. Options are lettered from A to J at most; the box holds the letter alone."
    )

    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Convert the records. The text of a question includes its options, lettered in order."""
        return [self._item(record) for record in records]

    def _item(self, record: Mapping[str, Any]) -> Item:
        options = tuple(record["options"])
        # Not ``answer_index``, which points to another option in question 3983.
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
        # 1100 questions in proportion to the categories, 220 of them for training.
        strata = {item.id: item.stratum for item in items}
        sizes = largest_remainder(Counter(strata.values()), PUBLISHED_SAMPLE)
        return share_split(stratified_sample(strata, sizes, self.key), self.key)

    def find_answer(self, item: Item, text: str, stated_only: bool) -> str | None:
        """Find the letter of the last statement that has one, or else the letter of a bare choice."""
        text = _MARKUP.sub("", plain(text, fonts=False))
        text = text if "(ii)" in text else IS["small letter"].sub(lambda match: match.group().upper(), text)
        found = statements(text, stated_only)
        listed = [not last.is_box and _ONE_OF_LIST.fullmatch(first.text) for first, last in pairwise(found)]
        found = [statement for statement, is_listed in zip(found, [None, *listed], strict=False) if not is_listed]
        return decided(found, lambda statement: _letter(item, statement)) or _bare_choice(item, text, stated_only)


BENCHMARK = MmluPro


def _letter(item: Item, statement: Statement) -> str | None:
    """Find the letter of a statement. None if the statement has none or begins a list of options."""
    match = _HEAD.match(statement.text)
    if match is None and not statement.is_direct and (match := _LATER.match(statement.text)):
        # "Vitamin C" names no option, and neither does a phrase of the question.
        is_thing = IS["thing"].match(match[1]) or f"{match[1]}{match[match.lastindex or 0]}" in item.question
        match = None if is_thing else match
    return match[match.lastindex or 0] if match and not _heads_list(item, statement.text, match) else None


def _heads_list(item: Item, text: str, letter: re.Match[str]) -> bool:
    """Whether a letter A begins a list of options, with option B below. "(B) is wrong" is not an option."""
    group = letter.lastindex or 0
    below = _OPTION_BELOW.match(text, letter.end(group)) if letter[group] == "A" else None
    if below and len(item.options) > 1:
        return letters_and_digits(below[2]) == letters_and_digits(item.options[1])
    return below is not None and below[1].count("\n") == 0 and not IS["rejected option"].match(below[2])


def _bare_choice(item: Item, text: str, stated_only: bool) -> str | None:
    """Find a letter that stands alone on the last line, or else the option on the last or first line.

    In the second case no other line may begin with another letter.
    """
    lines = [line.strip(_WRAPPERS) for line in re.sub(r"\\(?:boxed|fbox)\s*\{", "", text).split("\n")]
    # The last line of a text that is cut off may be incomplete.
    unfinished = stated_only and bool(lines[-1])
    matches = [_CHOICE.fullmatch(line) for line in lines[: len(lines) - unfinished] if line]
    *_, above, last = ["", "", *(match[1] if match and not match[2] else "" for match in matches)]
    # Letters on consecutive lines are a list.
    if last and last in LETTERS and not above and not unfinished:
        return last
    options = {match[1] for match in matches if match}
    if len(options) != 1 or "II" in options:
        return None
    ends = matches[:1] if unfinished else [matches[-1], matches[0]]
    return next(filter(None, (_letter_of_line(item, match) for match in ends if match)), None)


def _letter_of_line(item: Item, line: re.Match[str]) -> str | None:
    """Find the letter of a line that is an option: a letter alone, with the option's text, or with few other words."""
    letter, words = line[1], letters_and_digits(line[2] or "")
    options = dict(zip(LETTERS, map(letters_and_digits, item.options), strict=False))
    option = options.get(letter, "")
    if not words or words == option:
        return letter
    is_rejected = IS["rejected option"].match(line[2]) or _LISTED.search(line[2])
    if is_rejected or {words, letters_and_digits(line.string)} & {*options.values()}:
        return None
    # "E. coli is found in ..." is a sentence.
    is_prefix = option and (words.startswith(option) or option.startswith(words))
    return letter if is_prefix or len(line[2].split()) <= 3 else None

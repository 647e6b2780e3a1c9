"""MATH: competition problems whose answer is in a box."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from harness.benchmarks import math_rules
from harness.benchmarks.base import Benchmark, Tools
from harness.benchmarks.extraction import after_answer_is, last_box
from harness.benchmarks.items import Item, Status, Verdict
from harness.benchmarks.splits import Split, share_split, tenth_of_each

_WORDS = r"(?:\\(?:text|mbox)\{\s*)?(?!and\b|or\b)[A-Za-z]{2}[A-Za-z\s,.'-]*\}?"
# "(C) Plane", "\text{(C) Plane}", "\text{(C)} Plane".
_OPTION = re.compile(rf"(\\(?:text|mbox)\{{)?(\([A-Z]\))\}}?(?:[\s~:.]|\\[ ,;])+{_WORDS}")
# "12^{th} grade", "12^{\text{th}} \text{ grade}", "12th grade".
_ORDINAL = re.compile(
    rf"(\d+)\^?\{{?(?:\\(?:text|mbox)\{{)?(?:st|nd|rd|th)\}}{{0,2}}(?:[\s~]|\\ )*(?<=[\s~}}]){_WORDS}"
)
# "23, we will see", "7, which is odd": told by the word behind the comma.
_CLAUSE = re.compile(
    r",\s+(?:as|because|but|hence|it|since|so|that|the|then|therefore|this|thus|we|where|which)\s+[A-Za-z]"
)


class Math(Benchmark):
    """Graded by the string rules of its publication; Math-Verify's verdict is a second column."""

    rule_version = "3"
    role_domain = "Math"
    output_rules = (
        "Finish with a last line of the form: The answer is \\boxed{value}. Inside the box stands the final value "
        "alone, in LaTeX and fully simplified, without units, without words and without rounding."
    )

    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        """Ids are the subject and a hash of the problem: no copy on the hub keeps upstream's file names."""
        ids = _unique_ids(records)
        return [self._item(id_, record) for id_, record in zip(ids, records, strict=True)]

    def _item(self, id_: str, record: Mapping[str, Any]) -> Item:
        gold = last_box(record["solution"])
        if gold is None:
            raise ValueError(f"the solution of {record['problem'][:60]!r} has no \\boxed answer")
        return Item(
            id=id_,
            benchmark=self.key,
            question=record["problem"],
            gold=gold,
            stratum=f"{record['type']}/{record['level']}",
            difficulty=record.get("difficulty"),
        )

    def _published_split(self, items: Sequence[Item]) -> Split:
        """519 problems: a tenth of every subject and level, rounded up; 103 of them for training."""
        return share_split(tenth_of_each({item.id: item.stratum for item in items}, self.key), self.key)

    def present(self, item: Item, answer: str) -> str:
        """The answer line with a box."""
        return f"The answer is \\boxed{{{answer}}}"

    def extract(self, item: Item, text: str) -> str | None:
        """Content of the last balanced box, else what follows the last "answer is", without words that explain it."""
        box = last_box(text)
        if box is None:
            lines = [line for line in after_answer_is(text) if line]
            box = _first_formula(lines[-1]) if lines else ""
        return _unexplained(box) or None

    def wrong_answers(self, item: Item) -> tuple[str, ...]:
        """The gold answer with one number changed, with its sign changed, and small integers."""
        # The string rules would call -0 wrong although it is right.
        negated = [_negated(item.gold)] if item.gold != "0" else []
        kept: dict[str, str] = {math_rules.normalise(item.gold): ""}
        for candidate in [*_nudged_numbers(item.gold), *negated, "0", "1", "2", "3"]:
            kept.setdefault(math_rules.normalise(candidate), candidate)
        return tuple(kept.values())[1:]

    def same(self, item: Item, a: str, b: str) -> bool:
        """Whether the string rules call the answers equal."""
        return math_rules.equivalent(a, b)

    async def judge(self, item: Item, answer: str, tools: Tools) -> Verdict:
        """Headline by the string rules, ``also["math_verify"]`` by Math-Verify where that decides."""
        correct = math_rules.equivalent(item.gold, answer)
        verified = await tools.math_verify.equal(item.gold, answer)
        also = {} if verified is None else {"math_verify": verified}
        return Verdict(correct, answer, Status.GRADED, also=also)


BENCHMARK = Math


def _unique_ids(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """An id for every record; problems that repeat are numbered in order of their solutions."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        digest = hashlib.sha256(record["problem"].encode()).hexdigest()[:12]
        groups[f"{_slug(record['type'])}/{digest}"].append(place)
    ids = [""] * len(records)
    for base, places in groups.items():
        by_solution = sorted(places, key=lambda place: records[place]["solution"])
        for number, place in enumerate(by_solution, start=1):
            ids[place] = base if number == 1 else f"{base}-{number}"
    return ids


def _slug(subject: str) -> str:
    return subject.lower().replace("&", "and").replace(" ", "_")


def _first_formula(line: str) -> str:
    """The formula between dollar signs or their like that opens a line, else its first sentence."""
    formula = re.match(r"\\\((.+?)\\\)|\\\[(.+?)\\\]|\$+([^$]+)\$", line)
    if formula:
        return (formula[1] or formula[2] or formula[3]).strip()
    return re.split(r"\.(?:\s|$)", line, maxsplit=1)[0].strip(" *")


def _unexplained(answer: str) -> str:
    """The answer without what its option says, what its ordinal counts, and without a clause behind it."""
    option = _OPTION.fullmatch(answer)
    if option:
        return f"{option[1]}{option[2]}}}" if option[1] else option[2]
    ordinal = _ORDINAL.fullmatch(answer)
    if ordinal:
        return ordinal[1]
    value = _CLAUSE.split(answer, maxsplit=1)[0]
    is_whole = value.count("{") == value.count("}") and re.search(r"[\d\\]", value)
    return value if is_whole else answer


def _nudged_numbers(answer: str) -> list[str]:
    """The answer with one integer changed by one, the last first; indices and exponents, often ignored, come last."""
    matches = reversed(list(re.finditer(r"\d{1,15}", answer)))
    ordered = sorted(matches, key=lambda match: answer[: match.start()].rstrip("{ ").endswith(("_", "^")))
    return [
        f"{answer[: match.start()]}{int(match.group()) + step}{answer[match.end() :]}"
        for step in (1, -1)
        for match in ordered
        if int(match.group()) + step > 0
    ]


def _negated(answer: str) -> str:
    return answer[1:] if answer.startswith("-") else f"-{answer}"

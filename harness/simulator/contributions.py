"""Reading a prompt: its question, and what the contributions in it say."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.agents.prompts import EXAMPLES_RUN, HINTS_HEADER
from harness.agents.roles import Role, by_key
from harness.benchmarks import Benchmark
from harness.benchmarks.items import Item
from harness.files import Declaration
from harness.llm.request import Message, Turn
from harness.simulator import tokens
from harness.simulator.parameters import Parameters
from harness.simulator.response_model import Evidence

POOL_SIZE = 4
# Wherever in a prompt a question of at least block + stride - 1 characters begins, it contains a whole block at a
# multiple of the stride.
_BLOCK, _STRIDE = 24, 6
_CACHED_STANCES = 16384
_QUOTED = re.compile(r"`([^`\n]+)`")
_WORD = re.compile(r"\w+")
_RECORD = re.compile(r"^\[(\d+)\] [^\n]+:[ \t]*$", re.MULTILINE)
_HINTS = re.compile(rf"^{re.escape(HINTS_HEADER)} [^\n]*\s*\Z", re.MULTILINE)


class QuestionIndex:
    """Index that finds questions in prompts, in time that hardly grows with their number; of equal ones, the first."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items: dict[str, Item] = {}
        for item in items:
            self._items.setdefault(item.question.strip(), item)
        self._items.pop("", None)
        self._blocks: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._short: list[str] = []
        for question in sorted(self._items, key=len, reverse=True):
            if len(question) < _BLOCK + _STRIDE - 1:
                self._short.append(question)
                continue
            for offset in range(_STRIDE):
                self._blocks[question[offset : offset + _BLOCK]].append((question, offset))

    def find(self, text: str) -> tuple[Item, int, int] | None:
        """Return the longest question in a text, and where it first begins and ends, or None."""
        best, start = "", -1
        for position in range(0, len(text) - _BLOCK + 1, _STRIDE):
            for question, offset in self._blocks.get(text[position : position + _BLOCK], ()):
                if len(question) <= len(best):
                    break
                if position >= offset and text.startswith(question, position - offset):
                    best, start = question, position - offset
                    break
        if not best:
            best = next((question for question in self._short if question in text), "")
            start = text.find(best)
        return (self._items[best], start, start + len(best)) if best else None


class WrongProgram(Declaration):
    """Program that fails the checks of its question in the sandbox."""

    source: str
    passes_visible: bool  # it passes the visible examples all the same


class Contribution(NamedTuple):
    """Earlier turn that a prompt shows."""

    text: str
    is_own: bool  # the backbone's turn in this conversation, no record of a colleague


class Reading(NamedTuple):
    """Content of a prompt."""

    item: Item | None  # question, None if the prompt holds no known one
    turn: Turn = Turn()
    role: Role | None = None  # of the catalogue
    contributions: Sequence[Contribution] = ()  # earlier turns, in order


def read(messages: Sequence[Message], turn: Turn, index: QuestionIndex) -> Reading:
    """Read a conversation, whose question is that of the last user message with any."""
    places = (place for place in range(len(messages) - 1, -1, -1) if messages[place].role == "user")
    question = next(((place, hit) for place in places if (hit := index.find(messages[place].content))), None)
    contributions: list[Contribution] = []
    for place, (role, text) in enumerate(messages):
        if role == "assistant":
            contributions.append(Contribution(text, is_own=True))
        elif role == "user":
            if question is not None and question[0] == place:
                _, start, end = question[1]
                text = f"{text[:start]}\n{text[end:]}"
            contributions += [Contribution(record, is_own=False) for record in records(text)]
    return Reading(None if question is None else question[1][0], turn, by_key().get(turn.role), contributions)


def records(text: str) -> list[str]:
    """Return the numbered records of a message, each from ``[k] <name>:`` to the next, without the line of hints."""
    text = _HINTS.sub("", text)
    starts: list[tuple[int, int]] = []
    for match in _RECORD.finditer(text):
        if int(match.group(1)) == len(starts) + 1:
            starts.append(match.span())
    ends = [*(start for start, _ in starts[1:]), len(text)]
    return [text[body:end].strip() for (_, body), end in zip(starts, ends, strict=False)]


class Stance(NamedTuple):
    """Position of a text on a question."""

    answer: str
    is_right: bool
    is_final: bool  # the text commits to the answer in the benchmark's format, and does not only mention it


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to one question: the right one as replies give it, and plausible wrong ones, likeliest first."""

    item: Item
    benchmark: Benchmark
    right: str
    wrong: Sequence[str]
    passes_visible: Sequence[bool]  # of each wrong program

    def same(self, answer: str, other: str) -> bool:
        """Return whether two answers are equal by the rules of the benchmark."""
        return self.benchmark.same(self.item, answer, other)

    def stance(self, text: str) -> Stance | None:
        """Return the final answer of a text, else the one it mentions last, or None without any."""
        answer = self.benchmark.extract(self.item, text)
        # Any word or blank text is a Python program, but not one that a colleague offers.
        if answer is not None and (self.item.code is None or self.item.code.entry_point in answer):
            is_right = self.same(answer, self.right) or self.same(answer, self.item.gold)
            return Stance(answer, is_right, is_final=True)
        if self.item.code is not None:
            quoted = [line for line in _QUOTED.findall(text) if line in self._owners_of_lines]
            mentioned = self._owners_of_lines[quoted[-1]] if quoted else None
        else:
            # The blank keeps a result of 4 apart from one of 42.
            place, answer = max((text.rfind(f"{self.mention(each)} "), each) for each in (self.right, *self.wrong))
            mentioned = answer if place >= 0 else None
        return None if mentioned is None else Stance(mentioned, mentioned == self.right, is_final=False)

    def mention(self, answer: str) -> str:
        """Return how a reply mentions an answer without stating it as final; in the text a blank follows."""
        if self.item.code is not None:
            lines = [line for line, owner in self._owners_of_lines.items() if owner == answer]
            return f"the line `{lines[0] if lines else answer.strip().splitlines()[-1].strip()}`"
        if self.item.options:
            return f"option ({answer})"
        return f"a result of {answer}"

    @functools.cached_property
    def _owners_of_lines(self) -> Mapping[str, str]:
        """Return the lines that tell a wrong program from the right one, each with the program that has it."""
        right = _lines(self.right)
        owners: dict[str, str] = {}
        for program in self.wrong:
            owners.update({line: program for line in _lines(program) if line not in right and line not in owners})
        missing = {line: self.right for program in self.wrong for line in right if line not in _lines(program)}
        return {**owners, **missing}


def _lines(program: str) -> dict[str, None]:
    return dict.fromkeys(line.strip() for line in program.splitlines() if "`" not in line and line.strip())


@functools.lru_cache(maxsize=_CACHED_STANCES)
def _stance(answers: Answers, text: str) -> Stance | None:
    return answers.stance(text)


def stances(answers: Answers, contributions: Sequence[Contribution]) -> list[Stance | None]:
    """Return the stance of each contribution, in order."""
    return [_stance(answers, contribution.text) for contribution in contributions]


def weigh(answers: Answers, reading: Reading, stated: Sequence[Stance | None], parameters: Parameters) -> Evidence:
    """Sum up the stances of a prompt's contributions, of equal answers together; repeats and mentions add little."""
    right, wrong, earlier = 0.0, dict[str, float](), list[tuple[str, frozenset[str]]]()
    for (text, is_own), stance in zip(reading.contributions, stated, strict=True):
        if stance is None:
            continue
        words = _words(text)
        weight = 1.0 if stance.is_final else parameters.notes_weight
        others = (other for answer, other in earlier if answer == stance.answer)
        if is_own or any(_overlap(other, words) >= parameters.repeat_similarity for other in others):
            weight *= parameters.repeat_weight
        earlier.append((stance.answer, words))
        if stance.is_right:
            right += weight
        else:
            equal = next((answer for answer in wrong if answers.same(answer, stance.answer)), stance.answer)
            wrong[equal] = wrong.get(equal, 0.0) + weight
    return Evidence(
        right,
        list(wrong.values()),
        feedback=any(EXAMPLES_RUN in contribution.text for contribution in reading.contributions),
        tokens=sum(tokens.count(contribution.text) for contribution in reading.contributions),
    )


@functools.lru_cache(maxsize=_CACHED_STANCES)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 1.0

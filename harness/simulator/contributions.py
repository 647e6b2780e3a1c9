"""What can be answered to a question, what a text says about it, and what the contributions of a prompt add up to."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.benchmarks import Benchmark
from harness.benchmarks.items import Item
from harness.simulator import tokens
from harness.simulator.parameters import Parameters
from harness.simulator.response_model import Evidence

POOL_SIZE = 4
_CACHED_STANCES = 16384
_QUOTED = re.compile(r"`([^`\n]+)`")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """A program that fails the checks of its question, as the sandbox found."""

    source: str
    passes_visible: bool  # whether it passes the visible examples all the same


class Contribution(NamedTuple):
    """An earlier turn that a prompt shows."""

    text: str
    own: bool  # whether it is the backbone's own turn of this conversation rather than a colleague's record


class Stance(NamedTuple):
    """What a text says about a question."""

    answer: str
    right: bool
    final: bool  # whether the text commits to the answer in the benchmark's format, not mentions it on the way


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to one question: the right one as replies give it, and plausible wrong ones, likeliest first."""

    item: Item
    benchmark: Benchmark
    right: str
    wrong: Sequence[str]
    passes_visible: Sequence[bool]  # of each wrong program

    def same(self, answer: str, other: str) -> bool:
        """Whether the benchmark holds two answers equal."""
        return self.benchmark.same(self.item, answer, other)

    def stance(self, text: str) -> Stance | None:
        """What a text says: its final answer, else the answer it mentions last; ``None`` where it says nothing."""
        answer = self.benchmark.extract(self.item, text)
        # Any word or blank text is a Python program, but not one that a colleague offers.
        if answer is not None and (self.item.code is None or self.item.code.entry_point in answer):
            return Stance(answer, self.same(answer, self.right) or self.same(answer, self.item.gold), final=True)
        if self.item.code is not None:
            quoted = [line for line in _QUOTED.findall(text) if line in self._telling_lines]
            mentioned = self._telling_lines[quoted[-1]] if quoted else None
        else:
            # The blank keeps a result of 4 apart from one of 42.
            place, last = max((text.rfind(f"{self.mention(one)} "), one) for one in (self.right, *self.wrong))
            mentioned = last if place >= 0 else None
        return None if mentioned is None else Stance(mentioned, mentioned == self.right, final=False)

    def mention(self, answer: str) -> str:
        """How an answer is named in running text, before anyone commits to it; a blank follows it there."""
        if self.item.code is not None:
            lines = [line for line, owner in self._telling_lines.items() if owner == answer]
            return f"the line `{lines[0] if lines else answer.strip().splitlines()[-1].strip()}`"
        if self.item.options:
            return f"option ({answer})"
        return f"a result of {answer}"

    @functools.cached_property
    def _telling_lines(self) -> Mapping[str, str]:
        """Lines by which a program of the pool is told from the right one, and the program each speaks for."""
        right = _lines(self.right)
        telling: dict[str, str] = {}
        for program in self.wrong:
            telling.update({line: program for line in _lines(program) if line not in right and line not in telling})
        missing = {line: self.right for program in self.wrong for line in right if line not in _lines(program)}
        return {**telling, **missing}


def _lines(program: str) -> dict[str, None]:
    return dict.fromkeys(line.strip() for line in program.splitlines() if "`" not in line and line.strip())


@functools.lru_cache(maxsize=_CACHED_STANCES)
def _stance(answers: Answers, text: str) -> Stance | None:
    return answers.stance(text)


def stances(answers: Answers, contributions: Sequence[Contribution]) -> list[Stance | None]:
    """What each contribution says, in their order."""
    return [_stance(answers, contribution.text) for contribution in contributions]


class _Voice(NamedTuple):
    stance: Stance
    words: frozenset[str]
    weight: float


def weigh(answers: Answers, contributions: Sequence[Contribution], feedback: bool, parameters: Parameters) -> Evidence:
    """Sum up what the contributions say.

    A contribution that nearly repeats an earlier one, or that the backbone made itself, adds little, and so does one
    that mentions an answer without committing to it.
    """
    voices: list[_Voice] = []
    for (text, own), stance in zip(contributions, stances(answers, contributions), strict=True):
        if stance is None:
            continue
        words = _words(text)
        weight = 1.0 if stance.final else parameters.notes_weight
        if own or any(
            voice.stance.answer == stance.answer and _overlap(voice.words, words) >= parameters.repeat_similarity
            for voice in voices
        ):
            weight *= parameters.repeat_weight
        voices.append(_Voice(stance, words, weight))
    return Evidence(
        right=sum(voice.weight for voice in voices if voice.stance.right),
        wrong=_weights(answers, [voice for voice in voices if not voice.stance.right]),
        feedback=feedback,
        tokens=sum(tokens.count(contribution.text) for contribution in contributions),
    )


@functools.lru_cache(maxsize=_CACHED_STANCES)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 1.0


def _weights(answers: Answers, voices: Sequence[_Voice]) -> list[float]:
    """Total weight behind each wrong answer; answers that the benchmark holds equal are one."""
    weights: dict[str, float] = {}
    for voice in voices:
        its = voice.stance.answer
        known = next((answer for answer in weights if answers.same(answer, its)), its)
        weights[known] = weights.get(known, 0.0) + voice.weight
    return list(weights.values())

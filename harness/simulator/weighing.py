"""From the contributions a prompt shows to the context that moves a backbone's answer."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from harness.simulator import tokens
from harness.simulator.answers import Answers, Stance
from harness.simulator.model import Context
from harness.simulator.parameters import Parameters
from harness.simulator.reading import Contribution, Reading

_CACHED_STANCES = 16384
_WORD = re.compile(r"\w+")


class _Voice(NamedTuple):
    stance: Stance
    words: frozenset[str]
    weight: float


def weigh(answers: Answers, reading: Reading, parameters: Parameters) -> Context:
    """Sum up what the contributions say; only their text counts.

    A contribution that nearly repeats an earlier one, or that the backbone made itself, adds little, and so does one
    that mentions an answer without committing to it.
    """
    voices: list[_Voice] = []
    for contribution in reading.contributions:
        stance = _stance(answers, contribution.text)
        if stance is not None:
            voices.append(_voice(stance, contribution, voices, parameters))
    wrong = _groups(answers, [voice for voice in voices if not voice.stance.right])
    return Context(
        right=sum(voice.weight for voice in voices if voice.stance.right),
        wrong=[weight for _, weight in wrong],
        feedback=reading.feedback,
        tokens=sum(tokens.count(contribution.text) for contribution in reading.contributions),
    )


def wrong_answers_shown(answers: Answers, reading: Reading) -> list[str]:
    """The distinct wrong answers to which a contribution commits, in order of appearance."""
    stances = [_stance(answers, contribution.text) for contribution in reading.contributions]
    return list(dict.fromkeys(stance.answer for stance in stances if stance and stance.final and not stance.right))


def last_stance(answers: Answers, reading: Reading) -> Stance | None:
    """The stance of the latest contribution that has one: what a critic criticises."""
    stances = [_stance(answers, contribution.text) for contribution in reversed(reading.contributions)]
    return next((stance for stance in stances if stance is not None), None)


def agreeing(answers: Answers, reading: Reading, answer: str) -> int:
    """The place of the first contribution that commits to an answer; the first of all where none does."""
    stances = [_stance(answers, contribution.text) for contribution in reading.contributions]
    places = [
        place
        for place, stance in enumerate(stances)
        if stance is not None and answers.benchmark.same(answers.item, stance.answer, answer)
    ]
    return places[0] if places else 0


@functools.lru_cache(maxsize=_CACHED_STANCES)
def _stance(answers: Answers, text: str) -> Stance | None:
    return answers.stance(text)


def _voice(stance: Stance, contribution: Contribution, earlier: Sequence[_Voice], parameters: Parameters) -> _Voice:
    words = _words(contribution.text)
    repeats = any(
        voice.stance.answer == stance.answer and _jaccard(voice.words, words) >= parameters.repeat_similarity
        for voice in earlier
    )
    weight = 1.0 if stance.final else parameters.notes_weight
    if repeats or contribution.own:
        weight *= parameters.repeat_weight
    return _Voice(stance, words, weight)


@functools.lru_cache(maxsize=_CACHED_STANCES)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    union = len(a | b)
    return len(a & b) / union if union else 1.0


def _groups(answers: Answers, voices: Sequence[_Voice]) -> list[tuple[str, float]]:
    """Total weight behind each wrong answer; answers that the benchmark holds equal are one."""
    groups: list[tuple[str, float]] = []
    for voice in voices:
        for place, (answer, weight) in enumerate(groups):
            if answers.benchmark.same(answers.item, answer, voice.stance.answer):
                groups[place] = (answer, weight + voice.weight)
                break
        else:
            groups.append((voice.stance.answer, voice.weight))
    return groups

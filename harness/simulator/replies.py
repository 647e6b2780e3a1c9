"""Text of a reply, whose sentences share words and numbers with the question and nothing with the answer."""

from __future__ import annotations

import functools
import json
import math
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.agents import rng
from harness.agents.rng import Stream
from harness.files import read_yaml
from harness.llm.request import Kind, Style, Turn
from harness.simulator import tokens
from harness.simulator.calibration import Calibration
from harness.simulator.contributions import Answers, Reading, Stance, stances, weigh
from harness.simulator.parameters import Parameters
from harness.simulator.response_model import affinity, difficulty, log_location, overload, pull, role_fit, sigmoid

T = TypeVar("T")
Stances = Sequence[Stance | None]
# Turns that prepare or judge an answer without committing to one.
_PREPARATORY: frozenset[Kind] = frozenset({"plan", "critique", "search"})
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Words that a parser could take for an answer, a box, a fence or an example.
_UNSAFE = re.compile(r"answer|boxed|fbox|`|>>>|\"\"\"|'''|~~~", re.IGNORECASE)
_MOST_EXTRA_ITEMS = 2
_NUMBERS = 100

_SENTENCES: Mapping[str, Sequence[str]] = read_yaml(Path(__file__).with_name("sentences.yaml"))


def write(calibration: Calibration, length_scale: float, backbone: str, reading: Reading, key: str) -> str:
    """Write the reply of a backbone to a prompt, with a factor on its length; ``key`` fixes all draws."""
    values, stream, (kind, style, *_) = calibration.parameters, Stream("prose", key), reading.turn
    if reading.item is None:
        return _without_answer(_length(values.generic_tokens * length_scale, (0,), values.length_sd, key), stream)
    question = reading.item.question
    if kind == "search":
        return ", ".join(_keywords(question, stream))
    answers, fitted = calibration.answers(reading.item), calibration.benchmarks[reading.item.benchmark]
    mean = fitted.tokens[style][backbone] * (values.kind_length[kind] * length_scale)
    length = _length(mean, (0,) if kind in _PREPARATORY else fitted.floors, values.length_sd, key)
    if kind not in _PREPARATORY and rng.uniform("parsable", key) < values.unparsable_share:
        return _without_answer(length, stream)
    stated = stances(answers, reading.contributions)
    ending = _ending(answers, reading.turn, stated, _answer(calibration, answers, reading, stated, backbone, key))
    body = _reasoning(question, kind, style, length - tokens.count(ending), stream)
    return f"{body}\n\n{ending}" if body else ending


def _length(mean: float, floors: tuple[int, ...], sd: float, key: str) -> float:
    return math.exp(log_location(mean, sd, floors) + sd * rng.normal("length", key))


def _answer(
    calibration: Calibration, answers: Answers, reading: Reading, stated: Stances, backbone: str, key: str
) -> str:
    item, turn, values = answers.item, reading.turn, calibration.parameters
    fitted, evidence = calibration.benchmarks[item.benchmark].fit, weigh(answers, reading, stated, values)
    right = sigmoid(
        values.slope * (fitted.ability[backbone] - difficulty(item.question, item.difficulty, values))
        + affinity(item.question, backbone, values)
        + (fitted.style[turn.style][backbone] if turn.style != "direct" else 0.0)
        + role_fit(reading.role, item.benchmark, item.question, values)
        + pull(evidence, fitted.accuracy[backbone], turn.kind == "aggregate", values)
        - overload(evidence, values)
    )
    if rng.uniform("correct", key) < right:
        return answers.right
    wrong = list(
        dict.fromkeys(stance.answer for stance in stated if stance and stance.is_final and not stance.is_right)
    )
    if wrong and rng.uniform("copy", key) < values.copy_wrong_share:
        return wrong[rng.index(len(wrong), "copied", key)]
    return wrong_answer(answers, values, key)


def wrong_answer(answers: Answers, values: Parameters, key: str) -> str:
    """Draw a wrong answer; of programs, a stated share passes the visible examples if any does."""
    deceive = rng.uniform("visible", key) < values.visible_pass_share
    places = [place for place, passes in enumerate(answers.passes_visible) if passes == deceive]
    places = places or list(range(len(answers.wrong)))
    weights = [values.wrong_weights[place] for place in places]
    return answers.wrong[places[rng.weighted(weights, "wrong", key)]]


def _ending(answers: Answers, turn: Turn, stated: Stances, answer: str) -> str:
    """Return the last sentence of a reply, as the turn asks.

    That is a letter, a verdict on the last contribution, a mention of the answer, or the final answer.
    """
    if turn.form == "letter" and stated:
        agreeing = (at for at, stance in enumerate(stated) if stance and answers.same(stance.answer, answer))
        return f"Candidate {string.ascii_uppercase[next(agreeing, 0) % 26]}"
    mention = answers.mention(answer) if turn.kind in _PREPARATORY else ""
    if turn.kind == "critique":
        # A critic with the same answer as the last contribution approves of it, and objects to any other.
        last = next((stance for stance in reversed(stated) if stance is not None), None)
        if last is not None and answers.same(last.answer, answer):
            return f"I find no fault with it: {mention} holds up."
        return f"That should be put right: the steps above lead to {mention} instead."
    if mention:
        return f"Followed through, this leads to {mention} in the end."
    final = answers.benchmark.present(answers.item, answer)
    if turn.form == "program" and answers.item.code is None:
        return f"```python\nanswer = {_literal(answer)}\n```\n\n{final}"
    return final


def _literal(answer: str) -> str:
    try:
        float(answer)
    except ValueError:
        return repr(answer)
    return answer


@functools.lru_cache(maxsize=4096)
def _vocabulary(text: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words and the numbers of a question that sentences may quote, at least one each."""
    words = [word for word in text.split() if not _UNSAFE.search(word)] or ["the statement"]
    return words, _NUMBER.findall(" ".join(words)) or ["the first quantity"]


def _reasoning(text: str, kind: Kind, style: Style, budget: float, stream: Stream) -> str:
    sentences: list[str] = []
    for number, sentence in enumerate(_sentences(text, kind, stream), 1):
        if style != "direct":
            sentence = f"Step {number}: {sentence}"
        length = tokens.count(sentence)
        if length > 2 * budget:
            break
        sentences.append(sentence)
        budget -= length
    return ("\n" if style != "direct" else " ").join(sentences)


def _sentences(text: str, kind: Kind, stream: Stream) -> Iterator[str]:
    words, numbers = _vocabulary(text)
    table = _SENTENCES.get(kind, _SENTENCES["solve"])
    while True:
        yield _pick(table, stream).format(
            quote=_passage(words, 4, 9, stream).rstrip(".,;:!?"),
            number=_pick(numbers, stream),
            other=_pick(numbers, stream),
        )


def _pick(choices: Sequence[T], stream: Stream) -> T:
    return choices[stream.below(len(choices))]


def _passage(words: Sequence[str], shortest: int, longest: int, stream: Stream) -> str:
    length = shortest + stream.below(longest - shortest + 1)
    start = stream.below(max(1, len(words) - length + 1))
    return " ".join(words[start : start + length])


def _without_answer(budget: float, stream: Stream) -> str:
    sentences = [_pick(_SENTENCES["without_answer"], stream)]
    while tokens.count(sentences[0]) * (len(sentences) + 0.5) < budget:
        sentences.append(_pick(_SENTENCES["without_answer"], stream))
    return " ".join(sentences)


def _keywords(text: str, stream: Stream) -> list[str]:
    longer = list(dict.fromkeys(word.strip(".,;:!?()$\"'") for word in _vocabulary(text)[0]))
    longer = [word for word in longer if len(word) > 5 and word.isalpha()] or ["general knowledge"]
    return list(dict.fromkeys(_pick(longer, stream) for _ in range(3)))


def schema_reply(schema: Mapping[str, Any], topic: str, invalid_share: float, key: str) -> str:
    """Write a JSON instance of a schema in words of a topic, a share of them broken; ``key`` fixes all draws."""
    text = json.dumps(_instance(schema, _vocabulary(topic)[0], Stream("schema", "0", key)), ensure_ascii=False)
    if rng.uniform("schema validity", key) >= invalid_share:
        return text
    # The two commonest slips: the text ends too early, or explanations surround it.
    return f"{text[: len(text) // 2]} ..." if rng.index(2, "slip", key) else f"Here is what I suggest: {text}."


def _instance(schema: Mapping[str, Any], words: Sequence[str], stream: Stream) -> Any:
    """Draw an instance of a schema; of its keywords, only those below are understood."""
    if "const" in schema:
        return schema["const"]
    if choices := schema.get("enum"):
        return _pick(choices, stream)
    if branches := schema.get("anyOf"):
        return _instance(_pick(branches, stream), words, stream)
    match schema.get("type"):
        case "object":
            return {name: _instance(part, words, stream) for name, part in schema.get("properties", {}).items()}
        case "array":
            length = schema.get("minItems", 0) + stream.below(_MOST_EXTRA_ITEMS + 1)
            length = min(length, schema.get("maxItems", length))
            return [_instance(schema["items"], words, stream) for _ in range(length)]
        case "integer":
            least = int(schema.get("minimum", 0))
            return least + stream.below(min(int(schema.get("maximum", least + _NUMBERS)) - least + 1, _NUMBERS))
        case "null":
            return None
    return _passage(words, 3, 10, stream)

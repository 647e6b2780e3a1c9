"""Generate reply texts from words and numbers of the question. A token is a word or a punctuation mark."""

import functools
import itertools
import json
import math
import re
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.agents import rng
from harness.agents.rng import Stream
from harness.files import read_yaml
from harness.llm.request import Turn
from harness.simulator import response_model
from harness.simulator.answers import NUMBER, Answers, present
from harness.simulator.response_model import Parameters

T = TypeVar("T")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Words that a parser could read as an answer, a box, a fence or an example.
_UNSAFE = re.compile(r"answer|boxed|fbox|`|>>>|\"\"\"|'''|~~~", re.IGNORECASE)
_TOKEN = re.compile(r"\w+|[^\w\s]")
_MOST_EXTRA_ITEMS = 2
_LARGEST_INTEGER = 100  # default maximum

_SENTENCES: Mapping[str, Sequence[str]] = read_yaml(Path(__file__).with_name("sentences.yaml"))


def count_tokens(text: str) -> int:
    return len(_TOKEN.findall(text))


def cut(text: str, limit: int) -> str:
    end = next(itertools.islice(_TOKEN.finditer(text), limit, None), None)
    return text if end is None else text[: end.start()].rstrip()


def write(
    answers: Answers, backbone: str, turn: Turn, earlier: Sequence[str], values: Parameters, scale: float, key: str
) -> str:
    """Generate the reply to a question after earlier turns. ``key`` determines all random draws."""
    length = scale * values.skill(backbone).tokens * values.kind_length[turn.kind] * values.style_length[turn.style]
    length *= math.exp(values.length_sd * rng.normal("length", key))
    stream, question = Stream("prose", key), answers.item.question
    if turn.kind in ("plan", "critique", "search"):
        return _reasoning(question, turn, length, stream) or _passage(_vocabulary(question)[0], 3, 5, stream)
    if rng.uniform("parsable", key) < values.unparsable:
        return undecided(length, key)
    stated = [answers.find_answer(text) for text in earlier]
    overload = values.overload_per_1000_tokens * sum(map(count_tokens, earlier)) / 1000
    answer = _answer(answers, backbone, turn, [each for each in stated if each is not None], overload, values, key)
    ending = present(answers.benchmark, answers.item, answer)
    if turn.form == "letter" and stated:
        ending = f"Candidate {string.ascii_uppercase[stated.index(answer) % 26 if answer in stated else 0]}"
    elif turn.form == "program" and answers.item.code is None:
        value = answer if NUMBER.fullmatch(answer) else repr(answer)
        ending = f"```python\nanswer = {value}\n```\n\n{ending}"
    body = _reasoning(question, turn, length - count_tokens(ending), stream)
    return f"{body}\n\n{ending}" if body else ending


def undecided(length: float, key: str) -> str:
    stream, table = Stream("undecided", key), _SENTENCES["undecided"]
    text = _pick(table, stream)
    while count_tokens(text) < length:
        text = f"{text} {_pick(table, stream)}"
    return text


def _answer(
    answers: Answers, backbone: str, turn: Turn, stated: Sequence[str], overload: float, values: Parameters, key: str
) -> str:
    score = response_model.score(answers.item, answers.benchmark.role_domain, backbone, turn, values) - overload
    factor = values.aggregation if turn.kind == "aggregate" else 1.0
    if rng.normal("correct", key) < score + factor * response_model.evidence(stated, answers.right, values):
        return answers.right
    wrong = [answer for answer in dict.fromkeys(stated) if answer != answers.right]
    if wrong and rng.uniform("copy", key) < values.copied_wrong:
        return wrong[rng.index(len(wrong), "copied", key)]
    return answers.wrong[rng.weighted(values.wrong_weights[: len(answers.wrong)], "wrong", key)]


@functools.lru_cache(maxsize=4096)
def _vocabulary(text: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return quotable words and numbers of a question, at least one each."""
    words = [word for word in text.split() if not _UNSAFE.search(word)] or ["the statement"]
    return words, _NUMBER.findall(" ".join(words)) or ["the first quantity"]


def _reasoning(question: str, turn: Turn, budget: float, stream: Stream) -> str:
    words, numbers = _vocabulary(question)
    sentences: list[str] = []
    while True:
        quote = _passage(words, 4, 9, stream).rstrip(".,;:!?")
        sentence = _pick(_SENTENCES["reasoning"], stream).format(quote=quote, number=_pick(numbers, stream))
        if turn.style != "direct":
            sentence = f"Step {len(sentences) + 1}: {sentence}"
        length = count_tokens(sentence)
        if length > 2 * budget:
            return ("\n" if turn.style != "direct" else " ").join(sentences)
        sentences.append(sentence)
        budget -= length


def _pick(choices: Sequence[T], stream: Stream) -> T:
    return choices[stream.below(len(choices))]


def _passage(words: Sequence[str], shortest: int, longest: int, stream: Stream) -> str:
    length = shortest + stream.below(longest - shortest + 1)
    start = stream.below(max(1, len(words) - length + 1))
    return " ".join(words[start : start + length])


def schema_reply(schema: Mapping[str, Any], topic: str, invalid_share: float, key: str) -> str:
    """Generate a JSON instance of a schema from words of ``topic``, truncated with probability ``invalid_share``."""
    text = json.dumps(_instance(schema, _vocabulary(topic)[0], Stream("schema", "0", key)), ensure_ascii=False)
    return text if rng.uniform("schema validity", key) >= invalid_share else f"{text[: len(text) // 2]} ..."


def _instance(schema: Mapping[str, Any], words: Sequence[str], stream: Stream) -> Any:
    """Draw an instance of a schema. Unsupported keywords are ignored."""
    if "const" in schema:
        return schema["const"]
    if choices := schema.get("enum"):
        return _pick(choices, stream)
    if branches := schema.get("anyOf"):
        return _instance(_pick(branches, stream), words, stream)
    match schema.get("type"):
        case "object":
            return {name: _instance(field, words, stream) for name, field in schema.get("properties", {}).items()}
        case "array":
            length = schema.get("minItems", 0) + stream.below(_MOST_EXTRA_ITEMS + 1)
            length = min(length, schema.get("maxItems", length))
            return [_instance(schema["items"], words, stream) for _ in range(length)]
        case "integer":
            least, largest = schema.get("minimum", 0), schema.get("maximum", _LARGEST_INTEGER)
            return least + stream.below(largest - least + 1)
        case "null":
            return None
    return _passage(words, 3, 10, stream)

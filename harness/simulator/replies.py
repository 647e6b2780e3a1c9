"""Generate reply texts from words of the question. A token is a word or a punctuation mark."""

import functools
import itertools
import json
import re
import string
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from harness.simulator.answers import NUMBER, Answers, present
from harness.simulator.response_model import Purpose

# Words that a parser could read as an answer, a box, a fence or an example.
_UNSAFE = re.compile(r"answer|boxed|fbox|`|>>>|\"\"\"|'''|~~~", re.IGNORECASE)
_TOKEN = re.compile(r"\w+|[^\w\s]")

# No digit, and nothing that a parser could take for an answer of a benchmark.
_REASONING = (
    "The question speaks of {quote}.",
    "From {quote} the next quantity follows directly.",
    "That leaves {quote} to be dealt with.",
    "Take care with {quote}, where a slip is likely.",
    "A quick check against {quote} shows no contradiction.",
)
_UNDECIDED = "I am not certain how the statement is meant to be read."


def count_tokens(text: str) -> int:
    return len(_TOKEN.findall(text))


def cut(text: str, limit: int) -> str:
    end = next(itertools.islice(_TOKEN.finditer(text), limit, None), None)
    return text if end is None else text[: end.start()].rstrip()


def ending(answers: Answers, answer: str, purpose: Purpose, stated: Sequence[str | None]) -> str:
    """State an answer as the purpose asks for. ``stated`` are the answers of earlier turns, in order."""
    text = present(answers.benchmark, answers.item, answer)
    if purpose.ending == "letter" and stated:
        return f"Candidate {string.ascii_uppercase[stated.index(answer) % 26 if answer in stated else 0]}"
    if purpose.ending == "program" and answers.item.code is None:
        value = answer if NUMBER.fullmatch(answer) else repr(answer)
        return f"```python\nanswer = {value}\n```\n\n{text}"
    return text


def reasoning(question: str, tokens: float, rng: Random) -> str:
    """Write sentences that quote the question. Empty if ``tokens`` is less than half a sentence."""
    words = _vocabulary(question)
    sentences: list[str] = []
    while True:
        sentence = rng.choice(_REASONING).format(quote=_passage(words, rng).rstrip(".,;:!?"))
        length = count_tokens(sentence)
        if length > 2 * tokens:
            return " ".join(sentences)
        sentences.append(sentence)
        tokens -= length


def undecided(tokens: float) -> str:
    return " ".join([_UNDECIDED] * max(1, round(tokens / count_tokens(_UNDECIDED))))


@functools.lru_cache(maxsize=4096)
def _vocabulary(text: str) -> Sequence[str]:
    """Return the quotable words of a text, at least one."""
    return [word for word in text.split() if not _UNSAFE.search(word)] or ["the statement"]


def _passage(words: Sequence[str], rng: Random) -> str:
    length = rng.randint(4, 9)
    start = rng.randrange(max(1, len(words) - length + 1))
    return " ".join(words[start : start + length])


def schema_reply(schema: Mapping[str, Any], topic: str, rng: Random) -> str:
    """Generate a JSON instance of a schema from words of ``topic``."""
    return json.dumps(_instance(schema, _vocabulary(topic), rng), ensure_ascii=False)


def _instance(schema: Mapping[str, Any], words: Sequence[str], rng: Random) -> Any:
    """Draw an instance of a schema. Unsupported keywords are ignored."""
    if "const" in schema:
        return schema["const"]
    if choices := schema.get("enum"):
        return rng.choice(choices)
    if branches := schema.get("anyOf"):
        return _instance(rng.choice(branches), words, rng)
    match schema.get("type"):
        case "object":
            return {name: _instance(field, words, rng) for name, field in schema.get("properties", {}).items()}
        case "array":
            length = schema.get("minItems", 0) + rng.randint(0, 2)
            length = min(length, schema.get("maxItems", length))
            return [_instance(schema["items"], words, rng) for _ in range(length)]
        case "integer":
            return rng.randint(schema.get("minimum", 0), schema.get("maximum", 100))
        case "null":
            return None
    return _passage(words, rng)

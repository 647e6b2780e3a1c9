"""From a prompt that has been read to the text of the reply.

The sentences read like reasoning about the question: they share its words and numbers and nothing with the answer.
"""

from __future__ import annotations

import functools
import json
import math
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.agents import rng
from harness.agents.rng import Stream
from harness.simulator import tokens
from harness.simulator.calibration import Calibration
from harness.simulator.contributions import Answers, Reading, stances, weigh
from harness.simulator.parameters import Kind, Style
from harness.simulator.response_model import affinity, difficulty, fit, log_location, overload, pull, sigmoid

# Turns that prepare or judge an answer without committing to one.
_PREPARATORY: frozenset[Kind] = frozenset({"plan", "critique", "search"})
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Words that could pass for an answer, a box, a fence or an example wherever a parser looks for one.
_UNSAFE = re.compile(r"answer|boxed|fbox|`|>>>|\"\"\"|'''|~~~", re.IGNORECASE)
_WORDS_QUOTED = (4, 9)
Schema = Mapping[str, Any]
# Some schemas have no finite instance.
_DEEPEST = 8
_MOST_EXTRA_ITEMS = 2
_WORDS_DRAWN = (3, 10)
_NUMBERS = 100

_SENTENCES: dict[str, Sequence[str]] = {
    "solve": (
        "The question speaks of {quote}.",
        "What matters here is {quote}, so I keep it in view.",
        "From {quote} the next quantity follows directly.",
        "I write down what is given: {quote}.",
        "Using {number}, this part comes out cleanly.",
        "Both {number} and {other} enter at this point.",
        "Nothing else in the statement changes {quote}.",
        "That leaves {quote} to be dealt with.",
        "Putting this together with {quote} settles the step.",
        "A quick check against {quote} shows no contradiction.",
    ),
    "plan": (
        "Begin with {quote} and fix the notation for it.",
        "Treat {quote} as a separate part and finish it first.",
        "Keep {number} at hand, since later parts rely on it.",
        "Take care with {quote}, where a slip is likely.",
        "Then connect {quote} with what came before.",
        "Leave the check of {quote} to the end.",
    ),
    "critique": (
        "The treatment of {quote} deserves a second look.",
        "It is not obvious that {quote} was used as stated.",
        "The step that involves {number} should be repeated with care.",
        "I compared the argument with {quote} in the statement.",
        "The order of the steps around {quote} seems sound in itself.",
    ),
    "aggregate": (
        "The contributions agree on how to read {quote}.",
        "Where they differ, {quote} is the point at issue.",
        "I repeated the part that uses {number} myself.",
        "Comparing them against {quote} favours one reading.",
        "The remaining doubts concern {quote}.",
    ),
}
# Free of digits and of anything a parser could take for an answer of any benchmark.
_WITHOUT_ANSWER = (
    "I am not certain how the statement is meant to be read.",
    "Several readings seem possible to me, and they lead to different results.",
    "More information would be needed to decide between them.",
    "I would rather not commit to a single result here.",
)


class Writer:
    """Writes the replies of calibrated backbones, with a factor on every target length."""

    def __init__(self, calibration: Calibration, length_scale: float) -> None:
        self._calibration = calibration
        self._length_scale = length_scale
        self._parameters = calibration.parameters

    def write(self, backbone: str, reading: Reading, key: str) -> str:
        """The reply of a backbone to a prompt; ``key`` is the identity of the request and fixes every draw."""
        stream, kind = Stream("prose", key), reading.kind
        if reading.item is None:
            mean = self._parameters.generic_tokens * self._length_scale
            return without_answer(self._length(mean, (0,), key), stream)
        answers, known = self._calibration.answers(reading.item), self._calibration.benchmarks[reading.item.benchmark]
        if kind == "search":
            return ", ".join(keywords(reading.item.question, stream))
        mean = known.tokens[reading.style][backbone] * (self._parameters.kind_length[kind] * self._length_scale)
        length = self._length(mean, (0,) if kind in _PREPARATORY else tuple(known.floors), key)
        if kind not in _PREPARATORY and rng.uniform("parsable", key) < self._parameters.unparsable_share:
            return without_answer(length, stream)
        ending = _ending(answers, reading, self._answer(backbone, answers, reading, key))
        body = reasoning(reading.item.question, kind, reading.style, length - tokens.count(ending), stream)
        return f"{body}\n\n{ending}" if body else ending

    def probability(self, backbone: str, answers: Answers, reading: Reading) -> float:
        """The probability that the answer of a parsable reply is right."""
        item, values = answers.item, self._parameters
        known = self._calibration.benchmarks[item.benchmark].fit
        evidence = weigh(answers, reading.contributions, reading.feedback, values)
        return sigmoid(
            values.slope * (known.ability[backbone] - difficulty(item.question, item.difficulty, values))
            + affinity(item.question, backbone, values)
            + (known.style[reading.style][backbone] if reading.style != "direct" else 0.0)
            + fit(reading.role, item.benchmark, item.question, values)
            + pull(evidence, known.accuracy[backbone], reading.kind == "aggregate", values)
            - overload(evidence, values)
        )

    def _answer(self, backbone: str, answers: Answers, reading: Reading, key: str) -> str:
        if rng.uniform("correct", key) < self.probability(backbone, answers, reading):
            return answers.right
        said = stances(answers, reading.contributions)
        shown = list(dict.fromkeys(one.answer for one in said if one and one.final and not one.right))
        if shown and rng.uniform("copy", key) < self._parameters.copy_wrong_share:
            return shown[rng.index(len(shown), "copied", key)]
        return self.wrong(answers, key)

    def wrong(self, answers: Answers, key: str) -> str:
        """A wrong answer; of programs, a stated share passes the visible examples where one of the pool does."""
        deceive = rng.uniform("visible", key) < self._parameters.visible_pass_share
        places = [place for place, passes in enumerate(answers.passes_visible) if passes == deceive]
        places = places or list(range(len(answers.wrong)))
        weights = [self._parameters.wrong_weights[place] for place in places]
        return answers.wrong[places[rng.weighted(weights, "wrong", key)]]

    def _length(self, mean: float, floors: tuple[int, ...], key: str) -> float:
        sd = self._parameters.length_sd
        return math.exp(log_location(mean, sd, floors) + sd * rng.normal("length", key))


def _ending(answers: Answers, reading: Reading, answer: str) -> str:
    """The last lines of a reply: what it says of its answer."""
    said = stances(answers, reading.contributions)
    if reading.form == "letter" and said:
        agreeing = (at for at, one in enumerate(said) if one is not None and answers.same(one.answer, answer))
        return f"Candidate {string.ascii_uppercase[next(agreeing, 0) % 26]}"
    mention = answers.mention(answer) if reading.kind in _PREPARATORY else ""
    if reading.kind == "critique":
        # A critic that comes to the same answer as the turn it reads approves it; any other answer is its objection.
        criticised = next((one for one in reversed(said) if one is not None), None)
        if criticised is not None and answers.same(criticised.answer, answer):
            return f"I find no fault with it: {mention} holds up."
        return f"That should be put right: the steps above lead to {mention} instead."
    if mention:
        return f"Followed through, this leads to {mention} in the end."
    final = answers.benchmark.present(answers.item, answer)
    if reading.form == "program" and answers.item.code is None:
        return f"```python\nanswer = {_literal(answer)}\n```\n\n{final}"
    return final


def _literal(answer: str) -> str:
    try:
        float(answer)
    except ValueError:
        return repr(answer)
    return answer


class Vocabulary(NamedTuple):
    """What sentences about a question may quote; neither is ever empty."""

    words: Sequence[str]  # in order, without those that a parser could mistake for an answer
    numbers: Sequence[str]


@functools.lru_cache(maxsize=4096)
def vocabulary(text: str) -> Vocabulary:
    """The words and numbers of a text."""
    words = [word for word in text.split() if not _UNSAFE.search(word)] or ["the statement"]
    return Vocabulary(words, _NUMBER.findall(" ".join(words)) or ["the first quantity"])


def reasoning(text: str, kind: Kind, style: Style, budget: float, stream: Stream) -> str:
    """Sentences about a text, numbered unless the style is direct; one is added while half of it fits the tokens."""
    chosen: list[str] = []
    for number, sentence in enumerate(_sentences(text, kind, stream), 1):
        if style != "direct":
            sentence = f"Step {number}: {sentence}"
        length = tokens.count(sentence)
        if length > 2 * budget:
            break
        chosen.append(sentence)
        budget -= length
    return ("\n" if style != "direct" else " ").join(chosen)


def _sentences(text: str, kind: Kind, stream: Stream) -> Iterator[str]:
    source = vocabulary(text)
    table = _SENTENCES.get(kind, _SENTENCES["solve"])
    while True:
        yield table[stream.below(len(table))].format(
            quote=_quote(source.words, stream),
            number=source.numbers[stream.below(len(source.numbers))],
            other=source.numbers[stream.below(len(source.numbers))],
        )


def _quote(words: Sequence[str], stream: Stream) -> str:
    shortest, longest = _WORDS_QUOTED
    length = shortest + stream.below(longest - shortest + 1)
    start = stream.below(max(1, len(words) - length + 1))
    return " ".join(words[start : start + length]).rstrip(".,;:!?")


def without_answer(budget: float, stream: Stream) -> str:
    """Sentences that no parser finds an answer in; at least one."""
    chosen = [_WITHOUT_ANSWER[stream.below(len(_WITHOUT_ANSWER))]]
    while tokens.count(chosen[0]) * (len(chosen) + 0.5) < budget:
        chosen.append(_WITHOUT_ANSWER[stream.below(len(_WITHOUT_ANSWER))])
    return " ".join(chosen)


def keywords(text: str, stream: Stream) -> list[str]:
    """A few distinct longer words of a text, as one would look them up."""
    longer = list(dict.fromkeys(word.strip(".,;:!?()$\"'") for word in vocabulary(text).words))
    longer = [word for word in longer if len(word) > 5 and word.isalpha()] or ["general knowledge"]
    return list(dict.fromkeys(longer[stream.below(len(longer))] for _ in range(3)))


def schema_reply(schema: Schema, topic: str, invalid_share: float, key: str) -> str:
    """A JSON text: an instance of the schema, except for a stated share that breaks it.

    ``topic`` lends its words to free strings; ``key``, the identity of the request, fixes every draw.
    """
    text = json.dumps(_drawn(schema, vocabulary(topic).words, Stream("schema", "0", key), 0), ensure_ascii=False)
    if rng.uniform("schema validity", key) >= invalid_share:
        return text
    # The two commonest slips: the text ends too early, or explanations surround it.
    return f"{text[: len(text) // 2]} ..." if rng.index(2, "slip", key) else f"Here is what I suggest: {text}."


def _drawn(schema: Schema, words: Sequence[str], stream: Stream, depth: int) -> Any:
    """An instance of a schema, down to a depth below which there is only null.

    Of JSON Schema it knows what guided decoding commonly does: objects, arrays, numbers, texts, constants, enumerations
    and ``anyOf``. What else a schema asks for is not seen.
    """
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    if "const" in schema:
        return schema["const"]
    if choices := schema.get("enum"):
        return choices[stream.below(len(choices))]
    if branches := schema.get("anyOf"):
        return _drawn(branches[stream.below(len(branches))], words, stream, depth + 1)
    match schema.get("type", "object" if "properties" in schema else "string"):
        case "object":
            parts, required = schema.get("properties", {}), schema.get("required", ())
            wanted = [name for name in parts if name in required or stream.below(2)]
            return {name: _drawn(parts[name], words, stream, depth + 1) for name in wanted}
        case "array":
            length = schema.get("minItems", 0) + stream.below(_MOST_EXTRA_ITEMS + 1)
            length = min(length, schema.get("maxItems", length))
            return [_drawn(schema.get("items", {}), words, stream, depth + 1) for _ in range(length)]
        case "integer" | "number":
            least = int(schema.get("minimum", 0))
            return least + stream.below(min(int(schema.get("maximum", least + _NUMBERS)) - least + 1, _NUMBERS))
        case "boolean":
            return stream.below(2) == 1
        case "null":
            return None
    shortest, longest = _WORDS_DRAWN
    length = shortest + stream.below(longest - shortest + 1)
    start = stream.below(max(1, len(words) - length + 1))
    return " ".join(words[start : start + length])

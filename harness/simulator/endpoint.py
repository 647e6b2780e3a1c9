"""Simulated backbones. A reply is a pure function of the request: words of its question, and a drawn answer."""

import functools
import itertools
import json
import math
import re
import string
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import orjson

from harness.agents import rng
from harness.agents.prompts import HINTS_HEADER
from harness.benchmarks.items import Item, checksum
from harness.files import digest
from harness.fingerprint import fingerprint_of
from harness.llm.backbones import Backbone
from harness.llm.request import SIMULATED, Message, Metadata, Reply, Request, Served
from harness.simulator.answers import NUMBER, Answers, answers_to, present
from harness.simulator.response_model import Parameters, Purpose, draw_answer, score

_LONGEST_CONTEXT = 131072  # default context length
_GENERIC_TOKENS = 60  # length of a reply to a prompt without a known question
_SENTENCE_TOKENS = 12  # minimum length of a reply without an answer
# Chat-template tokens per prompt and per message.
_PROMPT_TOKENS, _MESSAGE_TOKENS = 10, 4
# Paths that can change a reply.
CODE = ("harness/simulator", "harness/benchmarks", "harness/agents")


class SimulatedEndpoint:
    """Simulated backbones that know the given questions. ``length_scale`` is a factor on the length of replies."""

    def __init__(
        self,
        parameters: Parameters,
        backbones: Iterable[Backbone],
        questions: Mapping[str, Sequence[Item]],
        length_scale: float = 1.0,
    ) -> None:
        self._parameters, self._scale = parameters, length_scale
        self._backbones = {backbone.model: backbone for backbone in backbones}
        self._index = QuestionIndex(item for key in sorted(questions) for item in questions[key])
        known = {key: checksum(items) for key, items in questions.items()}
        identity = digest([parameters.model_dump(mode="json"), fingerprint_of(*CODE), known])
        self.revision = f"{SIMULATED}-{identity[:16]}-{length_scale:g}"

    def served(self, model: str) -> Served:
        """Describe a model as simulated, with the digest of simulator and questions as revision."""
        backbone = self._backbones[model]
        context = {} if backbone.context_length is None else {"max_model_len": backbone.context_length}
        return Served(model, SIMULATED, {**context, "revision": self.revision}, backbone.key)

    def complete(self, request: Request) -> Reply:
        """Return the reply, or a failed reply if the prompt exceeds the context length."""
        backbone = self._backbones[request.model]
        prompt = _PROMPT_TOKENS + sum(_MESSAGE_TOKENS + count_tokens(message.content) for message in request.messages)
        context = backbone.context_length or _LONGEST_CONTEXT
        if prompt >= context:
            # Worded as the refusal of a server.
            limit = f"This model's maximum context length is {context} tokens"
            return Reply.failed(request.model, f"Error code: 400 - {limit}, the messages have {prompt}.")
        text = self._text(backbone.key, request)
        # Like vLLM, silently reduce max_tokens to the context length.
        kept = cut(text, min(request.max_tokens, context - prompt))
        return Reply(kept, prompt, count_tokens(kept), "stop" if kept == text else "length", request.model)

    def _text(self, backbone: str, request: Request) -> str:
        # Without the revision, which changes with the code.
        key = replace(request, revision=SIMULATED).key
        values, told, stream = self._parameters, request.metadata or Metadata(), Random(key)  # noqa: S311 - no secret
        is_malformed = rng.uniform("malformed", key) < values.malformed
        if request.response_format is not None:
            schema = orjson.loads(request.response_format)["json_schema"]["schema"]
            words = _vocabulary(request.messages[-1].content)
            text = json.dumps(_instance(schema, words, stream), ensure_ascii=False)
            return text[: len(text) // 2] if is_malformed else text
        item, earlier = read(request.messages, self._index)
        if item is None:
            return undecided(_GENERIC_TOKENS * self._scale)
        purpose = values.purpose(told)
        tokens = self._scale * values.skill(backbone).tokens * purpose.length
        tokens *= math.exp(values.length_sd * rng.normal("length", key))
        if purpose.ending == "none":
            return reasoning(item.question, max(tokens, _SENTENCE_TOKENS), stream)
        if is_malformed:
            return undecided(tokens)
        answers = answers_to(item)
        stated = [answers.find_answer(text) for text in earlier]
        answer = draw_answer(answers, score(item, backbone, told, values), stated, values, key)
        text = ending(answers, answer, purpose, stated)
        return f"{reasoning(item.question, tokens - count_tokens(text), stream)}\n\n{text}".strip()


_HEAD_CHARACTERS = 24
_LINE = re.compile(r"^[^\S\n]*(?=\S)", re.MULTILINE)
_RECORD = re.compile(r"^\[\d+\] [^\n]+:[ \t]*$", re.MULTILINE)
_HINTS = re.compile(rf"^{re.escape(HINTS_HEADER)} [^\n]*\s*\Z", re.MULTILINE)


class QuestionIndex:
    """Index of questions by text. If texts are equal, the first question counts."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._by_head: dict[str, dict[str, Item]] = defaultdict(dict)
        for item in items:
            if question := item.question.strip():
                self._by_head[question[:_HEAD_CHARACTERS]].setdefault(question, item)
        self._lengths = {len(head) for head in self._by_head}

    def find(self, text: str) -> tuple[Item, str] | None:
        """Find the longest question that starts at a line of a text. Return it and the remaining text, or None."""
        found: list[tuple[int, int, Item]] = []
        for start in (match.end() for match in _LINE.finditer(text)):
            for head in (text[start : start + length] for length in self._lengths):
                questions = self._by_head.get(head, {}).items()
                found += [(len(each), -start, item) for each, item in questions if text.startswith(each, start)]
        if not found:
            return None
        length, start, item = max(found, key=lambda hit: hit[:2])
        return item, f"{text[:-start]}\n{text[length - start :]}"


def read(messages: Sequence[Message], index: QuestionIndex) -> tuple[Item | None, list[str]]:
    """Find the last known question, and the earlier turns (records of colleagues and own replies) in order."""
    texts, item = [message.content for message in messages], None
    for number in reversed(range(len(messages))):
        if messages[number].role == "user" and (hit := index.find(texts[number])):
            item, texts[number] = hit
            break
    earlier: list[str] = []
    for message, text in zip(messages, texts, strict=True):
        if message.role != "system":
            earlier += [text] if message.role == "assistant" else records(text)
    return item, earlier


def records(text: str) -> list[str]:
    """Split a message into its records, each headed ``[k] <name>:``, without the line of hints."""
    return [body.strip() for body in _RECORD.split(_HINTS.sub("", text))[1:]]


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

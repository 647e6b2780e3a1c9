"""Simulated backbones. A reply is a pure function of the request."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

import orjson

from harness.agents import rng
from harness.benchmarks.items import Item, checksum
from harness.files import ROOT, digest
from harness.fingerprint import fingerprint
from harness.llm.backbones import Backbone
from harness.llm.request import SIMULATED, Metadata, Reply, Request, Served
from harness.simulator.answers import answers_to
from harness.simulator.reading import QuestionIndex, read
from harness.simulator.replies import count_tokens, cut, ending, reasoning, schema_reply, undecided
from harness.simulator.response_model import Parameters, draw_answer, score

_LONGEST_CONTEXT = 131072  # default context length
_GENERIC_TOKENS = 60  # length of a reply to a prompt without a known question
_SENTENCE_TOKENS = 12  # minimum length of a reply without an answer
# Chat-template tokens per prompt and per message.
_PROMPT_TOKENS, _MESSAGE_TOKENS = 10, 4
# Paths below harness/ that can change a reply.
_AGENTS = ("roles.py", "roles.yaml", "prompts.py", "rng.py")
CODE = ("simulator", "benchmarks", "thinking.py", *(f"agents/{name}" for name in _AGENTS))


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
        code = fingerprint(ROOT / "harness" / name for name in CODE)
        known = {key: checksum(items) for key, items in questions.items()}
        identity = digest([parameters.model_dump(mode="json"), code, known])
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
            # Wording of the openai package.
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
            text = schema_reply(schema, request.messages[-1].content, stream)
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

"""Simulated backbones. A reply is a pure function of the request."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from harness.benchmarks.items import Item, checksum
from harness.files import ROOT, digest
from harness.fingerprint import fingerprint
from harness.llm.backbones import Backbone
from harness.llm.request import SIMULATED, Reply, Request, Served, Turn
from harness.simulator.answers import answers_to
from harness.simulator.reading import QuestionIndex, read
from harness.simulator.replies import count_tokens, cut, schema_reply, undecided, write
from harness.simulator.response_model import Parameters

_LONGEST_CONTEXT = 131072  # default context length
_GENERIC_TOKENS = 60  # length of a reply to a prompt without a known question
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
        if request.response_format is not None:
            schema = orjson.loads(request.response_format)["json_schema"]["schema"]
            topic, share = request.messages[-1].content, self._parameters.invalid_schema
            return schema_reply(schema, topic, share, _key(request, topic))
        item, earlier = read(request.messages, self._index)
        if item is None:
            return undecided(_GENERIC_TOKENS * self._scale, _key(request, request.messages))
        turn = request.sent_metadata or Turn()
        # Keyed by content, not by the wording of the prompt.
        key = _key(request, [turn, item.question, earlier])
        return write(answers_to(item), backbone, turn, earlier, self._parameters, self._scale, key)


def _key(request: Request, content: Any) -> str:
    """Hash everything that can change the reply, with ``content`` in place of the messages."""
    form = None if request.response_format is None else orjson.loads(request.response_format)
    parts = [request.model, request.draw, request.max_tokens, float(request.temperature), form, content]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=tuple)).hexdigest()

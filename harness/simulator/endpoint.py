"""Simulated backbones as an OpenAI-compatible endpoint: a reply depends on nothing but the request."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import orjson
from annotated_types import MinLen
from pydantic import PositiveInt

from harness.benchmarks.items import Item, checksum
from harness.errors import UserError
from harness.files import ROOT, check, digest
from harness.fingerprint import fingerprint
from harness.llm.backbones import Backbone
from harness.llm.request import REPLY_TOKENS, SIMULATED, Message, Reply, Request, Served, Turn
from harness.simulator.answers import answers_to
from harness.simulator.parameters import Parameters
from harness.simulator.reading import QuestionIndex, read
from harness.simulator.replies import count_tokens, cut, schema_reply, undecided, write

_LONGEST_CONTEXT = 131072  # of a backbone that states none
_GENERIC_TOKENS = 60  # length of a reply to a prompt that holds no known question
# Of the chat template, for a prompt and for each of its messages.
_PROMPT_TOKENS, _MESSAGE_TOKENS = 10, 4
# Paths below harness/ that can change a reply.
CODE = (
    "simulator",
    "benchmarks",
    "thinking.py",
    "agents/roles.py",
    "agents/roles.yaml",
    "agents/prompts.py",
    "agents/rng.py",
)


class RefusedError(Exception):
    """Refusal of a request; ``status`` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ChatRequest(NamedTuple):
    """Fields of a request that may change its reply."""

    model: str
    messages: Annotated[Sequence[Message], MinLen(1)]
    metadata: Turn = Turn()
    seed: int | None = None
    max_tokens: PositiveInt | None = None
    temperature: float | None = None
    response_format: Mapping[str, Any] | None = None

    def key(self, content: Any) -> str:
        """Return the SHA-256 of all that may change the reply, with ``content`` for the messages."""
        temperature = 1.0 if self.temperature is None else float(self.temperature)
        parts = [self.model, self.seed, self.max_tokens, temperature, self.response_format, content]
        return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=tuple)).hexdigest()


class SimulatedEndpoint:
    """Simulated backbones that know some questions, with a factor on the length of their replies."""

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
        made_of = digest([parameters.model_dump(mode="json"), code, known])
        self.revision = f"{SIMULATED}-{made_of[:16]}-{length_scale:g}"

    def models(self) -> dict[str, Any]:
        """Return the body of ``GET /v1/models``, whose entries say that they are simulated, and by what."""
        common = {"object": "model", "created": 0, "owned_by": SIMULATED, "revision": self.revision}
        entries = [
            {"id": model, "root": backbone.key, "max_model_len": backbone.context_length, **common}
            for model, backbone in self._backbones.items()
        ]
        return {"object": "list", "data": entries}

    def chat(self, body: Any) -> tuple[int, dict[str, Any]]:
        """Return HTTP status and body of ``POST /v1/chat/completions``, for 400 and 404 an error in OpenAI's form."""
        try:
            if not isinstance(body, dict):
                raise RefusedError(400, "the body is not a JSON object")
            if body.get("stream") or body.get("n", 1) != 1:
                raise RefusedError(400, "only one completion, not streamed, is offered: leave out stream and n")
            request = check({name: body[name] for name in ChatRequest._fields if name in body}, ChatRequest, "request")
            reply = self._reply(request)
        except (RefusedError, UserError) as refusal:
            status = refusal.status if isinstance(refusal, RefusedError) else 400
            kind = "NotFoundError" if status == 404 else "BadRequestError"
            return status, {"error": {"message": str(refusal), "type": kind, "param": None, "code": status}}
        message = {"role": "assistant", "content": reply.text}
        return 200, {
            "id": f"chatcmpl-{request.key(request.messages)[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": reply.model,
            "system_fingerprint": self.revision,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}],
            "usage": {
                "prompt_tokens": reply.prompt_tokens,
                "completion_tokens": reply.completion_tokens,
                "total_tokens": reply.prompt_tokens + reply.completion_tokens,
            },
        }

    def complete(self, request: Request) -> Reply:
        """Return the reply that a client would make of :meth:`chat`, without HTTP and JSON in between."""
        response_format = None if request.response_format is None else orjson.loads(request.response_format)
        turn = request.sent_metadata or Turn()
        sampling = (request.draw, request.max_tokens, request.temperature, response_format)
        try:
            return self._reply(ChatRequest(request.model, request.messages, turn, *sampling))
        except RefusedError as refusal:
            # In the words of the openai package, so that logs in process and over HTTP are the same.
            return Reply.failed(request.model, f"Error code: {refusal.status} - {refusal}")

    def served(self, model: str) -> Served:
        """Return the description that a client would make of :meth:`models`."""
        return Served.listed(model, next(entry for entry in self.models()["data"] if entry["id"] == model))

    def _reply(self, request: ChatRequest) -> Reply:
        if request.model not in self._backbones:
            raise RefusedError(404, f"The model `{request.model}` does not exist.")
        backbone = self._backbones[request.model]
        prompt = _PROMPT_TOKENS + sum(_MESSAGE_TOKENS + count_tokens(message.content) for message in request.messages)
        context = backbone.context_length or _LONGEST_CONTEXT
        if prompt >= context:
            limit = f"This model's maximum context length is {context} tokens"
            raise RefusedError(400, f"{limit}, the messages have {prompt}.")
        text = self._text(backbone.key, request)
        # Like vLLM, silently lower a limit beyond the context.
        kept = cut(text, min(request.max_tokens or REPLY_TOKENS, context - prompt))
        return Reply(kept, prompt, count_tokens(kept), "stop" if kept == text else "length", request.model)

    def _text(self, backbone: str, request: ChatRequest) -> str:
        match request.response_format:
            case {"type": "json_schema", "json_schema": {"schema": Mapping() as schema}}:
                topic, share = request.messages[-1].content, self._parameters.invalid_schema
                return schema_reply(schema, topic, share, request.key(topic))
            case {"type": "json_schema"}:
                raise RefusedError(400, "response_format.json_schema.schema must be a JSON Schema")
        item, earlier = read(request.messages, self._index)
        if item is None:
            return undecided(_GENERIC_TOKENS * self._scale, request.key(request.messages))
        # The content of the prompt and not its wording.
        key = request.key([request.metadata, item.question, earlier])
        return write(answers_to(item), backbone, request.metadata, earlier, self._parameters, self._scale, key)

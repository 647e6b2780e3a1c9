"""Simulated backbones as an OpenAI-compatible endpoint: a reply depends on nothing but the request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import orjson
from annotated_types import MinLen
from pydantic import PositiveInt

from harness.errors import UserError
from harness.files import ROOT, check
from harness.fingerprint import fingerprint
from harness.llm.encoder import DECLARATION as ENCODER
from harness.llm.request import SIMULATED, Message, Reply, Request, Served, Turn
from harness.simulator import tokens
from harness.simulator.calibration import Calibration, SimulatedBackbone
from harness.simulator.contributions import read
from harness.simulator.replies import schema_reply, write

_DEFAULT_MAX_TOKENS = 2048
# Paths below harness/ that can change a reply.
_CODE = ("simulator", "benchmarks", "agents/roles.py", "agents/roles.yaml", "agents/prompts.py", "agents/rng.py")


class RefusedError(Exception):
    """Refusal of a request, with an HTTP status and an error body in OpenAI's form."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        kind = "NotFoundError" if status == 404 else "BadRequestError"
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": code or status}}


class ChatRequest(NamedTuple):
    """Fields of a request that may change its reply."""

    model: str
    messages: Annotated[Sequence[Message], MinLen(1)]
    metadata: Turn = Turn()
    seed: int | None = None
    max_tokens: PositiveInt | None = None
    temperature: float | None = None
    response_format: Mapping[str, Any] | None = None


class SimulatedEndpoint:
    """Simulated backbones of a calibration, with a factor on the length of replies."""

    def __init__(self, calibration: Calibration, length_scale: float = 1.0) -> None:
        self.calibration = calibration
        self.length_scale = length_scale
        self._served = {name: backbone for backbone in calibration.backbones for name in (backbone.key, backbone.model)}
        code = fingerprint([*(ROOT / "harness" / part for part in _CODE), ENCODER])
        self.revision = f"{SIMULATED}-{calibration.fingerprint[:12]}-{code[:12]}-{length_scale:g}"

    def models(self) -> dict[str, Any]:
        """Return the body of ``GET /v1/models``, whose entries say that they are simulated and by which calibration."""
        common = {
            "object": "model",
            "created": 0,
            "owned_by": SIMULATED,
            "calibration": self.calibration.fingerprint,
            "length_scale": f"{self.length_scale:g}",
            "revision": self.revision,
        }
        entries = [
            {"id": backbone.model, "root": backbone.key, "max_model_len": backbone.context_length, **common}
            for backbone in self.calibration.backbones
        ]
        return {"object": "list", "data": entries}

    def chat(self, request: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return HTTP status and body of ``POST /v1/chat/completions``, for 400 and 404 an error in OpenAI's form."""
        try:
            backbone = self.backbone(request.get("model"))
            chat = _parse(request)
            reply = self._reply(backbone, chat)
        except RefusedError as refusal:
            return refusal.status, refusal.body
        usage = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.completion_tokens}
        message = {"role": "assistant", "content": reply.text}
        return 200, {
            "id": f"chatcmpl-{_digest(backbone.key, chat, chat.messages)[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": reply.model,
            "system_fingerprint": self.revision,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        }

    def complete(self, request: Request) -> Reply:
        """Return the reply that a client would make of :meth:`chat`, without HTTP and JSON in between."""
        response_format = None if request.response_format is None else orjson.loads(request.response_format)
        turn = request.sent_metadata or Turn()
        sampling = (request.draw, request.max_tokens, request.temperature, response_format)
        chat = ChatRequest(request.model, request.messages, turn, *sampling)
        try:
            return self._reply(self.backbone(request.model), chat)
        except RefusedError as refusal:
            # In the words of the openai package, so that logs in process and over HTTP are the same.
            return Reply.failed(request.model, f"Error code: {refusal.status} - {refusal}")

    def served(self, model: str) -> Served:
        """Return the description that a client would make of :meth:`models`."""
        return Served.listed(model, next(entry for entry in self.models()["data"] if entry["id"] == model))

    def backbone(self, name: Any) -> SimulatedBackbone:
        """Return the backbone with a key or model name; RefusedError if there is none."""
        if not isinstance(name, str) or name not in self._served:
            raise RefusedError(404, f"The model `{name}` does not exist.")
        return self._served[name]

    def _reply(self, backbone: SimulatedBackbone, chat: ChatRequest) -> Reply:
        values = self.calibration.parameters
        prompt = sum(tokens.count(message.content) for message in chat.messages)
        prompt += round(values.prompt_tokens + values.message_tokens * len(chat.messages))
        room = backbone.context_length - prompt
        if room < 1:
            limit = f"This model's maximum context length is {backbone.context_length} tokens"
            raise RefusedError(400, f"{limit}, the messages have {prompt}.", "context_length_exceeded")
        text, reason = self._text(backbone.key, chat), "stop"
        # Like vLLM, silently lower a limit beyond the context.
        most = min(chat.max_tokens or _DEFAULT_MAX_TOKENS, room)
        length = tokens.count(text)
        if length > most:
            text, reason = tokens.cut(text, most), "length"
            length = tokens.count(text)
        return Reply(text, prompt, length, reason, chat.model)

    def _text(self, backbone: str, chat: ChatRequest) -> str:
        if (schema := _schema(chat.response_format)) is not None:
            topic, share = chat.messages[-1].content, self.calibration.parameters.invalid_schema_share
            return schema_reply(schema, topic, share, _digest(backbone, chat, schema))
        reading = read(chat.messages, chat.metadata, self.calibration.index)
        content: Any = chat.messages
        if reading.item is not None:  # the content of the prompt and not its wording
            content = [reading.turn, [reading.item.question, *reading.contributions]]
        return write(self.calibration, self.length_scale, backbone, reading, _digest(backbone, chat, content))


def _parse(request: Mapping[str, Any]) -> ChatRequest:
    """Parse the body of a request over HTTP; RefusedError with status 400 if it is not valid or not supported."""
    if request.get("stream") or request.get("n", 1) != 1:
        raise RefusedError(400, "only one completion, not streamed, is offered: leave out stream and n")
    try:
        fields = {name: request[name] for name in ChatRequest._fields if name in request}
        chat: ChatRequest = check(fields, ChatRequest, "request")
    except UserError as error:
        raise RefusedError(400, str(error)) from error
    return chat


def _schema(response_format: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    match response_format:
        case {"type": "json_schema", "json_schema": {"schema": Mapping() as schema}}:
            return schema
        case {"type": "json_schema"}:
            raise RefusedError(400, "response_format.json_schema.schema must be a JSON Schema")
    return None


def _digest(backbone: str, chat: ChatRequest, content: Any) -> str:
    """Return the SHA-256 of all that may change a reply, with the key of the backbone for either of its names."""
    parts = {name: getattr(chat, name) for name in ("seed", "max_tokens", "response_format")}
    parts = {name: value for name, value in parts.items() if value is not None}
    # Clients write the same temperature as 0 or as 0.0.
    parts["temperature"] = 1.0 if chat.temperature is None else float(chat.temperature)
    parts |= {"model": backbone, "messages": content}
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=tuple)).hexdigest()

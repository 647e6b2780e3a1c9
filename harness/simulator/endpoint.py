"""The simulated backbones as an OpenAI-compatible chat-completions endpoint: a pure function of the request."""

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
# Below harness/, all that can change a reply.
_CODE = ("simulator", "benchmarks", "agents/roles.py", "agents/roles.yaml", "agents/prompts.py", "agents/rng.py")


class RefusedError(Exception):
    """A request that a server of this interface refuses, with an HTTP status and OpenAI's form of an error body."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        kind = "NotFoundError" if status == 404 else "BadRequestError"
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": code or status}}


class Asked(NamedTuple):
    """All of a request that may change its reply."""

    model: str
    messages: Annotated[Sequence[Message], MinLen(1)]
    metadata: Turn = Turn()
    seed: int | None = None
    max_tokens: PositiveInt | None = None
    temperature: float | None = None
    response_format: Mapping[str, Any] | None = None


def revision_of(calibration: str, length_scale: float) -> str:
    """The revision of simulated weights, of a calibration's fingerprint, the code and the factor on lengths."""
    code = fingerprint([*(ROOT / "harness" / part for part in _CODE), ENCODER])
    return f"{SIMULATED}-{calibration[:12]}-{code[:12]}-{length_scale:g}"


class SimulatedEndpoint:
    """Answers requests from a calibration, with a factor on lengths; a reply depends on nothing but the request."""

    def __init__(self, calibration: Calibration, length_scale: float = 1.0) -> None:
        self.calibration = calibration
        self.length_scale = length_scale
        self._served = {name: backbone for backbone in calibration.backbones for name in (backbone.key, backbone.model)}
        self.revision = revision_of(calibration.fingerprint, length_scale)

    def models(self) -> dict[str, Any]:
        """Body of ``GET /v1/models``; every entry says that it is simulated, and by which calibration."""
        common = {
            "object": "model",
            "created": 0,
            "owned_by": SIMULATED,
            "calibration": self.calibration.fingerprint,
            "length_scale": f"{self.length_scale:g}",
            "revision": self.revision,
        }
        served = [
            {"id": one.model, "root": one.key, "max_model_len": one.context_length, **common}
            for one in self.calibration.backbones
        ]
        return {"object": "list", "data": served}

    def chat(self, request: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """HTTP status and body of ``POST /v1/chat/completions``; 404 and 400 have the form OpenAI gives errors."""
        try:
            backbone = self.backbone(request.get("model"))
            asked = _checked(request)
            reply = self._reply(backbone, asked)
        except RefusedError as refusal:
            return refusal.status, refusal.body
        sent, written = reply.prompt_tokens, reply.completion_tokens
        message = {"role": "assistant", "content": reply.text}
        return 200, {
            "id": f"chatcmpl-{_digest(backbone.key, asked, asked.messages)[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": reply.model,
            "system_fingerprint": self.revision,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}],
            "usage": {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written},
        }

    def complete(self, request: Request) -> Reply:
        """Return what a client makes of what :meth:`chat` answers, without HTTP and JSON in between."""
        wanted = None if request.response_format is None else orjson.loads(request.response_format)
        turn = request.sent_metadata or Turn()
        sampling = (request.draw, request.max_tokens, request.temperature, wanted)
        try:
            return self._reply(self.backbone(request.model), Asked(request.model, request.messages, turn, *sampling))
        except RefusedError as refusal:
            # The words of the openai package, so that a log is the same whichever way was asked.
            return Reply.failed(request.model, f"Error code: {refusal.status} - {refusal}")

    def served(self, model: str) -> Served:
        """Return what a client makes of what :meth:`models` says of a model."""
        entries = {entry["id"]: entry for entry in self.models()["data"]}
        return Served.listed(model, entries[model])

    def backbone(self, name: Any) -> SimulatedBackbone:
        """The backbone of a key, or of a name at the server."""
        if not isinstance(name, str) or name not in self._served:
            raise RefusedError(404, f"The model `{name}` does not exist.")
        return self._served[name]

    def _reply(self, backbone: SimulatedBackbone, asked: Asked) -> Reply:
        values = self.calibration.parameters
        prompt = sum(tokens.count(message.content) for message in asked.messages)
        prompt += round(values.prompt_tokens + values.message_tokens * len(asked.messages))
        room = backbone.context_length - prompt
        if room < 1:
            most = f"This model's maximum context length is {backbone.context_length} tokens"
            raise RefusedError(400, f"{most}, the messages have {prompt}.", "context_length_exceeded")
        text, reason = self._text(backbone.key, asked), "stop"
        # Like vLLM, a limit that reaches beyond the context is lowered without a word.
        limit = min(asked.max_tokens or _DEFAULT_MAX_TOKENS, room)
        length = tokens.count(text)
        if length > limit:
            text, reason = tokens.cut(text, limit), "length"
            length = tokens.count(text)
        return Reply(text, prompt, length, reason, asked.model)

    def _text(self, backbone: str, asked: Asked) -> str:
        if (wanted := _schema(asked.response_format)) is not None:
            topic, share = asked.messages[-1].content, self.calibration.parameters.invalid_schema_share
            return schema_reply(wanted, topic, share, _digest(backbone, asked, wanted))
        reading = read(asked.messages, asked.metadata, self.calibration.index)
        if reading.item is None:
            said: Any = asked.messages
        else:  # what the prompt says, and not its wording
            said = [reading.turn, [reading.item.question, *reading.contributions]]
        return write(self.calibration, self.length_scale, backbone, reading, _digest(backbone, asked, said))


def _checked(request: Mapping[str, Any]) -> Asked:
    """The fields of a body over HTTP that count; status 400 for what no server could answer, or this one does not."""
    if request.get("stream") or request.get("n", 1) != 1:
        raise RefusedError(400, "only one completion, not streamed, is offered: leave out stream and n")
    try:
        given = {name: request[name] for name in Asked._fields if name in request}
        asked: Asked = check(given, Asked, "request")
    except UserError as error:
        raise RefusedError(400, str(error)) from error
    return asked


def _schema(response_format: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    match response_format:
        case {"type": "json_schema", "json_schema": {"schema": Mapping() as schema}}:
            return schema
        case {"type": "json_schema"}:
            raise RefusedError(400, "response_format.json_schema.schema must be a JSON Schema")
    return None


def _digest(backbone: str, asked: Asked, said: Any) -> str:
    """SHA-256 of what may change a reply; the key of the backbone stands for either of its names."""
    parts = {name: getattr(asked, name) for name in ("seed", "max_tokens", "response_format")}
    parts = {name: value for name, value in parts.items() if value is not None}
    # Clients write the same temperature as 0 or as 0.0.
    parts["temperature"] = 1.0 if asked.temperature is None else float(asked.temperature)
    parts |= {"model": backbone, "messages": said}
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=tuple)).hexdigest()

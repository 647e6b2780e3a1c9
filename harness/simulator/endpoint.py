"""The simulated backbones as an OpenAI-compatible chat-completions endpoint: a pure function of the request."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from harness.files import ROOT, fingerprint
from harness.llm.encoder import DECLARATION as ENCODER
from harness.llm.request import SIMULATED, Reply, Request, Served
from harness.simulator import tokens
from harness.simulator.calibration import Calibration, SimulatedBackbone
from harness.simulator.contributions import FORMS_OF_TURNS, read
from harness.simulator.replies import Writer, schema_reply

_DEFAULT_MAX_TOKENS = 2048
_ROLES = frozenset({"system", "user", "assistant"})
_SURROGATE = re.compile("[\ud800-\udfff]")
# Everything that may change a reply, besides the model, the messages and the temperature.
_IDENTITY = ("seed", "max_tokens", "response_format")
# Below harness/, all that can change a reply.
_CODE = ("simulator", "benchmarks", "agents/roles.py", "agents/roles.yaml", "agents/prompts.py", "agents/rng.py")


class RefusedError(Exception):
    """A request that a server of this interface refuses, with an HTTP status and OpenAI's form of an error body."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        kind = "NotFoundError" if status == 404 else "BadRequestError"
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code or status}}


def revision_of(calibration: str, length_scale: float) -> str:
    """The revision of simulated weights: as part of every call's identity it keeps calibrations apart.

    ``calibration`` is its fingerprint, ``length_scale`` the factor on every target length.
    """
    code = fingerprint([*(ROOT / "harness" / part for part in _CODE), ENCODER])
    return f"{SIMULATED}-{calibration[:12]}-{code[:12]}-{length_scale:g}"


class _Completion(NamedTuple):
    key: str
    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int


class SimulatedEndpoint:
    """Answers chat-completions requests from a calibration, with a factor on every target length.

    The same request gets the same reply in any process and any order; the reply depends on nothing else.
    """

    def __init__(self, calibration: Calibration, length_scale: float = 1.0) -> None:
        self.calibration = calibration
        self.length_scale = length_scale
        self._served = {name: backbone for backbone in calibration.backbones for name in (backbone.key, backbone.model)}
        self._writer = Writer(calibration, length_scale)
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
        """HTTP status and body of ``POST /v1/chat/completions``.

        Of the fields of a request ``model``, ``messages``, ``metadata``, ``seed``, ``max_tokens``, ``temperature`` and
        ``response_format`` count; one whole completion is returned, never a stream.

        Returns:
            200 and a completion; 404 for an unknown model; 400 for a malformed request or a prompt that leaves no room
            in the model's context. Errors have the form OpenAI gives them.
        """
        try:
            done = self._completion(request)
        except RefusedError as refusal:
            return refusal.status, refusal.body
        return 200, self._body(request["model"], done)

    def complete(self, request: Request) -> Reply:
        """Return what a client makes of what :meth:`chat` answers, without HTTP and JSON in between."""
        try:
            done = self._completion(request.body(extended=False))
        except RefusedError as refusal:
            # The words of the openai package, so that a log is the same whichever way was asked.
            return Reply.failed(request.model, f"Error code: {refusal.status} - {refusal}")
        return Reply(done.text, done.prompt_tokens, done.completion_tokens, done.finish_reason, request.model)

    def served(self, model: str) -> Served:
        """Return what a client makes of what :meth:`models` says of a model."""
        entries = {entry["id"]: entry for entry in self.models()["data"]}
        return Served.listed(model, entries[model])

    def backbone(self, request: Mapping[str, Any]) -> SimulatedBackbone:
        """The backbone a request asks for, by its key or by its name at the server.

        Raises:
            RefusedError: There is none of that name.
        """
        name = request.get("model")
        if not isinstance(name, str) or name not in self._served:
            raise RefusedError(404, f"The model `{name}` does not exist.", "model")
        return self._served[name]

    def _completion(self, request: Mapping[str, Any]) -> _Completion:
        backbone = self.backbone(request)
        _check(request)
        prompt = self._prompt_tokens(request)
        room = backbone.context_length - prompt
        if room < 1:
            message = (
                f"This model's maximum context length is {backbone.context_length} tokens, the messages have {prompt}."
            )
            raise RefusedError(400, message, "messages", "context_length_exceeded")
        key = identity(backbone.key, request)
        text = self._text(backbone.key, request, key)
        # Like vLLM, a limit that reaches beyond the context is lowered without a word.
        limit = min(request.get("max_tokens") or _DEFAULT_MAX_TOKENS, room)
        length = tokens.count(text)
        if length <= limit:
            return _Completion(key, text, "stop", prompt, length)
        kept = tokens.cut(text, limit)
        return _Completion(key, kept, "length", prompt, tokens.count(kept))

    def _prompt_tokens(self, request: Mapping[str, Any]) -> int:
        values = self.calibration.parameters
        texts = sum(tokens.count(message["content"]) for message in request["messages"])
        return texts + round(values.prompt_tokens + values.message_tokens * len(request["messages"]))

    def _text(self, backbone: str, request: Mapping[str, Any], key: str) -> str:
        if (wanted := _schema(request)) is not None:
            topic, share = request["messages"][-1]["content"], self.calibration.parameters.invalid_schema_share
            return schema_reply(wanted, topic, share, _digest(backbone, request, wanted))
        told = request.get("metadata") or {}
        reading = read(request["messages"], told, self.calibration.index)
        if reading.item is None:
            return self._writer.write(backbone, reading, key)
        turn = [reading.kind, reading.style, reading.form, told.get("role", ""), told.get("instruction", "")]
        shown = [reading.item.question, *map(tuple, reading.contributions)]
        return self._writer.write(backbone, reading, _digest(backbone, request, [turn, shown]))

    def _body(self, model: str, done: _Completion) -> dict[str, Any]:
        message = {"role": "assistant", "content": done.text}
        return {
            "id": f"chatcmpl-{done.key[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "system_fingerprint": self.revision,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": done.finish_reason}],
            "usage": {
                "prompt_tokens": done.prompt_tokens,
                "completion_tokens": done.completion_tokens,
                "total_tokens": done.prompt_tokens + done.completion_tokens,
            },
        }


def _check(request: Mapping[str, Any]) -> None:
    """Refuse what no server could answer, and what this one does not offer.

    Raises:
        RefusedError: With status 400; the message names the field, what was found and what was expected.
    """
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise RefusedError(400, "messages must be a non-empty list of {role: system|user|assistant, content: text}")
    for name, kind in (("max_tokens", int), ("temperature", int | float), ("seed", int)):
        value = request.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            raise RefusedError(400, f"{name} must be a number, got {value!r}", name)
    if request.get("max_tokens") is not None and request["max_tokens"] < 1:
        raise RefusedError(400, f"max_tokens must be at least 1, got {request['max_tokens']}", "max_tokens")
    told = request.get("metadata") or {}
    if not isinstance(told, Mapping):
        raise RefusedError(400, f"metadata must be an object, got {told!r}", "metadata")
    for name, known in FORMS_OF_TURNS.items():
        if told.get(name, known[0]) not in known:
            message = f"metadata.{name} is {told[name]!r}; known: {', '.join(known)}"
            raise RefusedError(400, message, "metadata")
    if request.get("stream") or request.get("n", 1) != 1:
        raise RefusedError(400, "only one completion, not streamed, is offered: leave out stream and n", "stream")


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        return False
    content = message.get("content")
    return isinstance(content, str) and not _SURROGATE.search(content)


def _schema(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The JSON schema of ``response_format``."""
    match request.get("response_format"):
        case {"type": "json_schema", "json_schema": {"schema": Mapping() as schema}}:
            return schema
        case {"type": "json_schema"}:
            raise RefusedError(400, "response_format.json_schema.schema must be a JSON Schema", "response_format")
    return None


def identity(backbone: str, request: Mapping[str, Any]) -> str:
    """SHA-256 of the parts of a checked request that may change its reply.

    It holds the key of the backbone, so that the name it was called by does not matter.
    """
    return _digest(backbone, request, [[message["role"], message["content"]] for message in request["messages"]])


def _digest(backbone: str, request: Mapping[str, Any], said: Any) -> str:
    """The digest of what a prompt says: replies do not depend on its wording."""
    parts = {name: request[name] for name in _IDENTITY if request.get(name) is not None}
    # Clients write the same temperature as 0 or as 0.0.
    temperature = request.get("temperature")
    parts["temperature"] = 1.0 if temperature is None else float(temperature)
    parts["model"] = backbone
    parts["messages"] = said
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()

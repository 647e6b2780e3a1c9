"""The simulated backbones as an OpenAI-compatible chat-completions endpoint: a pure function of the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.benchmarks import benchmark as find_benchmark
from harness.files import ROOT, fingerprint
from harness.llm.encoder import DECLARATION as ENCODER
from harness.llm.request import Reply, Request
from harness.llm.served import Served
from harness.simulator import schema, tokens
from harness.simulator.incoming import RefusedError, check, identity
from harness.simulator.reading import Reader
from harness.simulator.replies import Writer
from harness.simulator.world import SimulatedBackbone, World

OWNER = "simulated"
_DEFAULT_MAX_TOKENS = 2048


# Below harness/, all that can change a reply.
_CODE = ("simulator", "benchmarks", "agents/roles.py", "agents/roles.yaml", "agents/prompts.py", "rng.py")


def revision_of(world: str, length_scale: float) -> str:
    """What stands for the weights: part of every call's identity, so that no reply of another world is used again.

    Args:
        world: Fingerprint of the world.
        length_scale: Factor on every target length.
    """
    code = fingerprint([*(ROOT / "harness" / room for room in _CODE), ENCODER])
    return f"{OWNER}-{world[:12]}-{code[:12]}-{length_scale:g}"


class _Completion(NamedTuple):
    key: str
    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int


class SimulatedEndpoint:
    """Answers chat-completions requests from a stated world.

    The same request gets the same reply in any process and any order; the reply depends on nothing else.

    Args:
        world: The calibrated world.
        length_scale: Factor on every target length.
    """

    def __init__(self, world: World, length_scale: float = 1.0) -> None:
        self.world = world
        self.length_scale = length_scale
        self._served = {name: backbone for backbone in world.backbones for name in (backbone.key, backbone.model)}
        rules = [find_benchmark(key).output_rules for key in sorted(world.benchmarks)]
        self._reader = Reader(world.index, world.settings.recognition, rules)
        self._writer = Writer(world, length_scale)
        self.revision = revision_of(world.fingerprint, length_scale)

    def models(self) -> dict[str, Any]:
        """Body of ``GET /v1/models``; every entry says that it is simulated, and by which world."""
        return {"object": "list", "data": [self._model_entry(backbone) for backbone in self.world.backbones]}

    def _model_entry(self, backbone: SimulatedBackbone) -> dict[str, Any]:
        return {
            "id": backbone.model,
            "object": "model",
            "created": 0,
            "owned_by": OWNER,
            "root": backbone.key,
            "max_model_len": backbone.context_length,
            "world": self.world.fingerprint,
            "length_scale": f"{self.length_scale:g}",
            "revision": self.revision,
        }

    def chat(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """HTTP status and body of ``POST /v1/chat/completions``.

        Args:
            request: Body of the request. Of its fields ``model``, ``messages``, ``seed``, ``max_tokens``,
                ``temperature`` and ``response_format`` count; one whole completion is returned, never a stream.

        Returns:
            200 and a completion; 404 for an unknown model; 400 for a malformed request or a prompt that leaves no room
            in the model's context. Errors have the form OpenAI gives them.
        """
        try:
            return 200, self._body(request["model"], self._completion(request))
        except RefusedError as refusal:
            return refusal.status, refusal.body

    def complete(self, request: Request) -> Reply:
        """Return what a client makes of what :meth:`chat` answers, without HTTP and JSON in between."""
        try:
            done = self._completion(request.fields()[0])
        except RefusedError as refusal:
            # The words of the openai package, so that a log is the same whichever way was asked.
            return Reply.failed(request.model, f"Error code: {refusal.status} - {refusal}")
        return Reply(done.text, done.prompt_tokens, done.completion_tokens, done.finish_reason, request.model)

    def served(self, model: str) -> Served:
        """Return what a client makes of what :meth:`models` says of a model."""
        return Served.listed(model, self._model_entry(self._served[model]))

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
        check(request)
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
        values = self.world.settings.parameters
        texts = sum(tokens.count(message["content"]) for message in request["messages"])
        return texts + round(values.prompt_tokens + values.message_tokens * len(request["messages"]))

    def _text(self, backbone: str, request: Mapping[str, Any], key: str) -> str:
        wanted = schema.find_schema(request)
        if wanted is not None:
            topic = request["messages"][-1]["content"]
            return schema.answer(wanted, topic, self.world.settings.parameters.invalid_schema_share, key)
        return self._writer.write(backbone, self._reader.read(request["messages"]), key)

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

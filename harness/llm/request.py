"""Request and reply of a chat completion; description of a served model."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from harness.errors import quoted

# Owner of simulated models, and prefix of their revisions and system fingerprints.
SIMULATED = "simulated"
# Key in Served.details: parameters that are not sent to the server.
NOT_SENT = "not_sent"
# Key in Served.details: the name that replies carry in place of the model's, or ``ANY``.
REPLY_NAME, ANY = "reply_name", "any"
# Parameters beyond OpenAI's API. repeat_penalty is llama.cpp's name for repetition_penalty.
EXTENDED = ("top_k", "min_p", "repetition_penalty", "repeat_penalty")
# Fields of a model listing that carry no information, or a path on the server's host.
_NO_DETAILS = frozenset({"id", "object", "created", "owned_by", "root"})


def is_simulated(revision: object) -> bool:
    return isinstance(revision, str) and revision.startswith(SIMULATED)


class Message(NamedTuple):
    """Chat message. ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


class Metadata(NamedTuple):
    """What a simulated model is told beside the prompt. Real models never get it."""

    role: str = ""  # key in the role catalogue, or any name for a method's own roles
    purpose: str = "solve"


class Sampling(NamedTuple):
    """Sampling parameters by vLLM's names. The default is greedy."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    repetition_penalty: float = 1.0


GREEDY = Sampling()
# Default maximum completion length.
REPLY_TOKENS = 2048


@dataclass(frozen=True)
class Request:
    """Everything that can change a reply. Equal requests are one call."""

    model: str  # name on the hub
    revision: str | None  # of the weights; None: not pinned
    messages: tuple[Message, ...]
    temperature: float = GREEDY.temperature
    top_p: float = GREEDY.top_p
    top_k: int = GREEDY.top_k
    repetition_penalty: float = GREEDY.repetition_penalty
    max_tokens: int = REPLY_TOKENS
    draw: int = 0  # index of an independent sample of the same prompt, sent as seed
    response_format: str | None = None  # OpenAI's response_format, as JSON text
    stop: tuple[str, ...] | None = None  # stop sequences
    extra_body: Mapping[str, Any] = field(default_factory=dict)  # further fields of the body
    metadata: Metadata | None = None  # sent, and part of the key, if the model is simulated

    @property
    def sent_metadata(self) -> Metadata | None:
        return self.metadata if is_simulated(self.revision) else None

    @cached_property
    def record(self) -> bytes:
        """JSON text stored in the call log."""
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        record["messages"] = [message._asdict() for message in self.messages]
        record["metadata"] = self.sent_metadata and self.sent_metadata._asdict()
        # Fields added later are omitted at their default, so that the keys of earlier calls stay valid.
        defaults = {"top_k": GREEDY.top_k, "repetition_penalty": GREEDY.repetition_penalty}
        for name in ("top_k", "repetition_penalty", "stop", "extra_body", "metadata"):
            if record[name] in (defaults.get(name), None, (), {}):
                del record[name]
        return orjson.dumps(record, option=orjson.OPT_SORT_KEYS)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the record, the call's identity in every log."""
        return hashlib.sha256(self.record).hexdigest()

    def body(self) -> dict[str, Any]:
        """Build the body for ``chat/completions``. Every parameter is explicit."""
        body = {name: getattr(self, name) for name in ("model", "temperature", "top_p", "max_tokens")}
        body |= {"messages": [message._asdict() for message in self.messages], "seed": self.draw, "n": 1}
        body |= {"frequency_penalty": 0, "presence_penalty": 0}
        body |= dict(zip(EXTENDED, (self.top_k, 0, self.repetition_penalty, self.repetition_penalty), strict=True))
        if self.sent_metadata is not None:
            body["metadata"] = self.sent_metadata._asdict()
        if self.stop is not None:
            body["stop"] = self.stop
        if self.response_format is not None:
            body["response_format"] = orjson.loads(self.response_format)
        return {**body, **self.extra_body}


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply to a call, or the error of a call that failed for good."""

    text: str  # empty if the call failed
    prompt_tokens: int  # as reported by the server, including the chat template
    completion_tokens: int  # as reported by the server
    finish_reason: str  # stop, length, content_filter or tool_calls; error if the call failed
    model: str  # name in the request
    error: str | None = None  # of the last attempt
    cached_tokens: int | None = None  # prompt tokens from the server's cache; None if the server does not report them
    reasoning_tokens: int | None = None  # completion tokens of reasoning; None if the server does not report them

    @classmethod
    def failed(cls, model: str, error: str) -> Reply:
        return cls("", 0, 0, "error", model, quoted(error))


@dataclass(frozen=True, slots=True)
class Served:
    """Description of a model as its server reports it."""

    model: str  # name on the hub, or another source
    owned_by: str | None  # such as vllm; often missing
    details: Mapping[str, Any] = field(default_factory=dict)  # further fields, part of a result's identity
    root: str | None = field(default=None, compare=False)  # weights that the server was started with

    @classmethod
    def listed(cls, model: str, entry: Mapping[str, Any]) -> Served:
        """Parse an entry of ``GET /v1/models``. Fields may be missing or of any type."""
        owner, root = (text if isinstance(text := entry.get(name), str) else None for name in ("owned_by", "root"))
        details = {key: value for key, value in entry.items() if isinstance(value, (int, str))}
        details = {key: value for key, value in details.items() if key not in _NO_DETAILS}
        # llama.cpp reports the context length of a slot and the weight format here.
        meta = entry.get("meta")
        for name, key, kind in (("n_ctx", "max_model_len", int), ("ftype", "quantisation", str)):
            if isinstance(meta, dict) and isinstance(meta.get(name), kind):
                details.setdefault(key, meta[name])
        return cls(model, owner, details, root)

    @property
    def context_length(self) -> int | None:
        """Maximum tokens of prompt plus reply. None if the server does not report it."""
        length = self.details.get("max_model_len")
        return length if isinstance(length, int) else None

    @property
    def quantisation(self) -> str | None:
        """Reported weight format such as Q4_K_M. None for 16 or 32 bits."""
        form = self.details.get("quantisation")
        return form if isinstance(form, str) and form.upper() not in ("F32", "F16", "BF16") else None

    @property
    def revision(self) -> str | None:
        """Revision of the weights. None if the server does not report it."""
        revision = self.details.get("revision")
        return None if revision is None else str(revision)

    @property
    def simulated(self) -> bool:
        return self.owned_by == SIMULATED or is_simulated(self.revision)

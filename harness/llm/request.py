"""Request and reply of a chat completion, and the description of a served model."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import orjson

Kind = Literal["solve", "plan", "critique", "revise", "aggregate", "search", "finish"]
Style = Literal["direct", "step_by_step", "complex"]
Form = Literal["answer", "program", "letter"]
# Owner of simulated models, and the beginning of their revisions and of the fingerprints of their replies.
SIMULATED = "simulated"
# Detail of a served model: the parameters that its server is not sent.
NOT_SENT = "not_sent"
# Parameters that servers of open weights take beyond OpenAI's; the last is llama.cpp's name for the one before.
EXTENDED = ("top_k", "min_p", "repetition_penalty", "repeat_penalty")
# Fields of a listing that are equal for all models, or tell a path on the server's host.
_NO_DETAILS = frozenset({"id", "object", "created", "owned_by", "root"})


def is_simulated(revision: object) -> bool:
    """Return whether a revision, or the fingerprint of a reply, belongs to a simulated model."""
    return isinstance(revision, str) and revision.startswith(SIMULATED)


class Message(NamedTuple):
    """Chat message; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


class Turn(NamedTuple):
    """Purpose of a call, for simulated models, which understand no prompt; it changes nothing for others."""

    kind: Kind = "solve"
    style: Style = "direct"  # how explicitly the reply is to reason
    # What the reply ends with: an answer, a program that computes it, or the letter of a numbered contribution.
    form: Form = "answer"
    role: str = ""  # key of the role in the catalogue; of any name for roles of a method's own
    instruction: str = ""  # written by the method itself: turns that differ in it are independent draws


class Sampling(NamedTuple):
    """Sampling parameters by vLLM's names; the default is greedy."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    repetition_penalty: float = 1.0


GREEDY = Sampling()
# Longest completion, for a backbone whose entry states none.
REPLY_TOKENS = 2048


@dataclass(frozen=True)
class Request:
    """Everything that may change a reply: equal requests are one call."""

    model: str  # on the hub
    revision: str | None  # of the weights, None if the configuration pins none
    messages: tuple[Message, ...]
    temperature: float = GREEDY.temperature
    top_p: float = GREEDY.top_p
    top_k: int = GREEDY.top_k
    repetition_penalty: float = GREEDY.repetition_penalty
    max_tokens: int = REPLY_TOKENS
    draw: int = 0  # index of an independent sample of the same prompt, sent as seed
    response_format: str | None = None  # JSON schema request in OpenAI's form, as JSON text
    stop: tuple[str, ...] | None = None  # texts at which the server ends the reply
    metadata: Turn | None = None  # sent in OpenAI's field of that name, and part of the call, if weights are simulated

    @property
    def sent_metadata(self) -> Turn | None:
        """Return the metadata if the model is simulated, else None."""
        return self.metadata if is_simulated(self.revision) else None

    @cached_property
    def record(self) -> bytes:
        """Return the JSON text kept in the call log."""
        record = {name: getattr(self, name) for name in _FIELDS}
        # So that calls already paid for keep their key, later fields are left out at their default.
        for name in ("top_k", "repetition_penalty"):
            if record[name] == getattr(GREEDY, name):
                del record[name]
        if self.stop is None:
            del record["stop"]
        if self.sent_metadata is None:
            del record["metadata"]
        else:
            record["metadata"] = self.sent_metadata._asdict()
        record["messages"] = [message._asdict() for message in self.messages]
        return orjson.dumps(record, option=orjson.OPT_SORT_KEYS)

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of the record, which identifies the call in every log."""
        return hashlib.sha256(self.record).hexdigest()

    def body(self) -> dict[str, Any]:
        """Return the body for ``chat/completions``, with no default left to the server."""
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
        return body


_FIELDS = tuple(field.name for field in dataclasses.fields(Request))


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply to a call, or its error."""

    text: str  # empty if the call failed
    prompt_tokens: int  # as the server reports, chat template included
    completion_tokens: int  # as the server reports
    finish_reason: str  # stop, length, content_filter or tool_calls; error if the call failed
    model: str  # by the name in the request
    error: str | None = None  # of the last attempt, if the call failed for good

    @classmethod
    def failed(cls, model: str, error: str) -> Reply:
        """Return the reply to a call that the server refused, or that failed at every attempt."""
        return cls("", 0, 0, "error", model, error.encode(errors="replace").decode())


@dataclass(frozen=True, slots=True)
class Served:
    """Description of a model by its server."""

    model: str  # on the hub, or another source
    owned_by: str | None  # such as vllm; many servers leave it out
    details: Mapping[str, Any] = field(default_factory=dict)  # other fields that may be part of a result's identity
    root: str | None = field(default=None, compare=False)  # weights that the server was told to load

    @classmethod
    def listed(cls, model: str, entry: Mapping[str, Any]) -> Served:
        """Parse an entry of ``GET /v1/models``, of which any field but the name may be missing or of any type."""
        owner, root = (text if isinstance(text := entry.get(name), str) else None for name in ("owned_by", "root"))
        details = {key: value for key, value in entry.items() if isinstance(value, (int, str))}
        details = {key: value for key, value in details.items() if key not in _NO_DETAILS}
        # llama.cpp reports here the context of one of its sequences, and the bits of its weights.
        meta = entry.get("meta")
        for name, key, kind in (("n_ctx", "max_model_len", int), ("ftype", "quantisation", str)):
            if isinstance(meta, dict) and isinstance(meta.get(name), kind):
                details.setdefault(key, meta[name])
        return cls(model, owner, details, root)

    @property
    def context_length(self) -> int | None:
        """Return the most tokens of prompt and reply together, or None if the server does not report it."""
        length = self.details.get("max_model_len")
        return length if isinstance(length, int) else None

    @property
    def quantisation(self) -> str | None:
        """Return the reported format of weights with fewer bits than the original, such as Q4_K_M, or None."""
        form = self.details.get("quantisation")
        return form if isinstance(form, str) and form.upper() not in ("F32", "F16", "BF16") else None

    @property
    def revision(self) -> str | None:
        """Return the revision of the weights, or None if the server does not report it."""
        revision = self.details.get("revision")
        return None if revision is None else str(revision)

    @property
    def simulated(self) -> bool:
        """Return whether the server declares itself simulated, by its owner or by the revision of the weights."""
        return self.owned_by == SIMULATED or is_simulated(self.revision)

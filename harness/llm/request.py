"""What is asked and what comes back: the two sides of one chat completion."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import orjson


class Message(NamedTuple):
    """One chat message; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


class Sampling(NamedTuple):
    """How the next token is drawn; as it stands, the most probable one is taken.

    Attributes:
        temperature: 0 for no chance.
        top_p: Nucleus mass; 1 for all tokens.
        top_k: How many of the most probable tokens are kept; -1 for all.
        repetition_penalty: What logits of tokens that occurred before are divided by; 1 for no penalty.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    repetition_penalty: float = 1.0


GREEDY = Sampling()


@dataclass(frozen=True)
class Request:
    """Everything that may change a reply, and nothing else.

    URL, port, key, time-outs and concurrency are absent on purpose: two requests are the same call exactly when they
    are equal, wherever and whenever they are sent.

    Attributes:
        model: Model identifier as the hub names it.
        revision: Revision of the weights, ``None`` where the configuration pins none.
        messages: The conversation.
        temperature: As in :class:`Sampling`; always sent, like the three after it, so that no server default applies.
        top_p: Likewise.
        top_k: Likewise.
        repetition_penalty: Likewise.
        max_tokens: Upper limit of completion tokens.
        draw: Index of an independent sample of the same prompt; also the sampling seed sent to the server.
        response_format: JSON schema request in OpenAI's form, serialised to JSON text, or ``None``.
    """

    model: str
    revision: str | None
    messages: tuple[Message, ...]
    temperature: float = GREEDY.temperature
    top_p: float = GREEDY.top_p
    top_k: int = GREEDY.top_k
    repetition_penalty: float = GREEDY.repetition_penalty
    max_tokens: int = 2048
    draw: int = 0
    response_format: str | None = None

    @cached_property
    def key(self) -> str:
        """SHA-256 of the canonical form: the identity of the call in every log."""
        return hashlib.sha256(orjson.dumps(self.to_record(), option=orjson.OPT_SORT_KEYS)).hexdigest()

    def to_record(self) -> dict[str, Any]:
        """The JSON form kept in the call log."""
        record = {name: getattr(self, name) for name in _FIELDS}
        # Calls that are paid for keep their key: what came in later is said only where it changes something.
        for name in ("top_k", "repetition_penalty"):
            if record[name] == getattr(GREEDY, name):
                del record[name]
        record["messages"] = [message._asdict() for message in self.messages]
        return record

    def fields(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what is asked of ``chat/completions``: OpenAI's own fields, and those that open weights add to them.

        Nothing that shapes a reply is left to the server: many take their defaults from the model's repository.
        """
        own: dict[str, Any] = {
            "model": self.model,
            "messages": [message._asdict() for message in self.messages],
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "seed": self.draw,
            "n": 1,
            "frequency_penalty": 0,
            "presence_penalty": 0,
        }
        if self.response_format is not None:
            own["response_format"] = orjson.loads(self.response_format)
        return own, {"top_k": self.top_k, "min_p": 0, "repetition_penalty": self.repetition_penalty}


_FIELDS = tuple(field.name for field in dataclasses.fields(Request))


@dataclass(frozen=True, slots=True)
class Reply:
    """The final outcome of a call, be it a text, an empty text or an error.

    Attributes:
        text: The completion; empty where the call failed.
        prompt_tokens: As the server reports, chat template included.
        completion_tokens: As the server reports.
        finish_reason: ``stop``, ``length``, ``content_filter`` or ``tool_calls``; ``error`` where the call failed.
        model: The model that answered, by the name in the request.
        error: ``None``, or why the call failed for good: the refusal, or what the last of all attempts ended with.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str
    model: str
    error: str | None = None

    @classmethod
    def failed(cls, model: str, error: str) -> Reply:
        """The outcome of a call that the server refused, or that failed at every attempt."""
        return cls("", 0, 0, "error", model, error)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Reply:
        """The inverse of ``dataclasses.asdict``."""
        return cls(**record)

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


@dataclass(frozen=True)
class Request:
    """Everything that may change a reply, and nothing else.

    URL, port, key, time-outs and concurrency are absent on purpose: two requests are the same call exactly when they
    are equal, wherever and whenever they are sent.

    Attributes:
        model: Model identifier as the hub names it.
        revision: Revision of the weights, ``None`` where the configuration pins none.
        messages: The conversation.
        temperature: Sampling temperature.
        top_p: Nucleus mass; always sent, so that no server default applies.
        max_tokens: Upper limit of completion tokens.
        draw: Index of an independent sample of the same prompt; also the sampling seed sent to the server.
        response_format: JSON schema request in OpenAI's form, serialised to JSON text, or ``None``.
    """

    model: str
    revision: str | None
    messages: tuple[Message, ...]
    temperature: float = 0.0
    top_p: float = 1.0
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
        record["messages"] = [message._asdict() for message in self.messages]
        return record

    def body(self, extended: bool = True) -> dict[str, Any]:
        """What is posted to ``chat/completions``, as JSON.

        Nothing that shapes a reply is left to the server: many take their defaults from the model's repository.

        Args:
            extended: Whether to send, besides OpenAI's own fields, those by which servers of open weights extend them.
        """
        body: dict[str, Any] = {
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
        if extended:
            body |= {"top_k": -1, "min_p": 0, "repetition_penalty": 1}
        if self.response_format is not None:
            body["response_format"] = orjson.loads(self.response_format)
        return body


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

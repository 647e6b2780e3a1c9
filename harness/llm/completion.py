"""What counts as the reply to a request: a finished completion of it, with a usage that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openai.types.chat import ChatCompletion

from harness.llm.request import Reply, Request

# Of a generation that came to its end. For others engines have words of their own, such as `abort`, or none.
_FINISHED = ("stop", "length", "content_filter", "tool_calls")
# Tokens that no text accounts for: a chat template with a system prompt of its own, what an engine writes ahead.
_UNSEEN_TOKENS = 4096


class MalformedReplyError(Exception):
    """An answer that is no completion of the request; the message may end up in a call log and names no host."""


def reply_of(completion: ChatCompletion, request: Request, names: Sequence[str]) -> Reply:
    """Return the reply that a completion holds.

    Args:
        completion: As the openai package read it, which looks at no type that a server declares.
        request: What was asked.
        names: What the server may call the model.

    Raises:
        MalformedReplyError: It is no finished completion of this request, or its usage is missing or impossible.
    """
    try:
        choice, usage = completion.choices[0], completion.usage
        # A lone surrogate cannot be stored; the server meant no more by it than a damaged character.
        text = (choice.message.content or "").encode("utf-8", "replace").decode()
        reason: Any = choice.finish_reason
        model = completion.model
        sent, written = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
    except (AttributeError, LookupError, TypeError) as error:
        raise MalformedReplyError(f"not a chat completion: {error!r}") from error
    if sent is None or written is None:
        raise MalformedReplyError("a chat completion that does not report its usage")
    # No tokenizer makes more tokens than bytes of a text.
    most_sent = sum(len(message.content.encode()) for message in request.messages) + _UNSEEN_TOKENS
    most_written = request.max_tokens + _UNSEEN_TOKENS
    if not _is_count(sent, 1, most_sent) or not _is_count(written, 1 if text else 0, most_written):
        raise MalformedReplyError(f"a chat completion with an impossible usage ({sent!r} and {written!r} tokens)")
    if reason not in _FINISHED:
        raise MalformedReplyError(f"a completion that was not finished (finish_reason {reason!r})")
    if model not in names:
        raise MalformedReplyError(f"a completion of the model {model!r}, while {names[0]!r} was asked")
    return Reply(text, sent, written, reason, request.model)


def _is_count(value: Any, least: int, most: int) -> bool:
    """Whether a value is a whole number within bounds; ``True`` is none, though Python calls it an ``int``."""
    return type(value) is int and least <= value <= most

"""One attempt at a call: what is sent, and what counts as a reply."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any

import aiohttp
import httpx2
import openai
import orjson

from harness.llm.endpoints import Endpoint
from harness.llm.request import Reply, Request

# Time-out at a proxy, conflict, too early: nothing the request could do about it.
_TRANSIENT_STATUS = frozenset({408, 409, 425})
_HEADERS = {"Content-Type": "application/json"}
# Of a generation that came to its end. For others engines have words of their own, such as `abort`, or none.
_FINISHED = ("stop", "length", "content_filter", "tool_calls")
# Tokens that no text accounts for: a chat template with a system prompt of its own, what an engine writes ahead.
_UNSEEN_TOKENS = 4096


class Kind(Enum):
    """Why an attempt failed, as far as it matters for what is done next."""

    SILENT = "no whole answer"
    BUSY = "too many requests"
    TROUBLED = "trouble at the server"
    DAMAGED = "an answer that is no completion of this request"
    REFUSED = "refused for good"
    LOCKED_OUT = "refused whatever is asked"

    @property
    def is_unanswered(self) -> bool:
        """Whether it is what every call meets in an outage, be it of the server or behind a proxy that lives."""
        return self in (Kind.SILENT, Kind.TROUBLED, Kind.LOCKED_OUT)


class AttemptError(Exception):
    """An attempt without a usable reply.

    The message may end up in a call log and therefore names neither host nor time; the cause, which may, is for people.

    Attributes:
        kind: Why.
        retry_after_s: How long the server asks to be left alone; 0 where it does not say.
    """

    def __init__(self, kind: Kind, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s


async def attempt(
    client: openai.AsyncOpenAI,
    request: Request,
    endpoint: Endpoint,
    limit: AbstractAsyncContextManager[object],
    names: Sequence[str] = (),
) -> Reply:
    """Send a request once.

    Args:
        client: Of the server.
        request: What to ask.
        endpoint: How the server is to be asked.
        limit: Raises a ``TimeoutError`` where it takes too long, from connecting to the last byte.
        names: What the server calls the model, the name to ask by first; without, what the request calls it.

    Raises:
        AttemptError: There is no usable reply.
    """
    names = names or (request.model,)
    try:
        async with limit:
            # Not chat.completions.create: validating the arguments and the reply against its types is nearly half of
            # what a call costs here, and _reply checks what counts.
            response = await client.post(
                "/chat/completions",
                content=orjson.dumps(request.body(endpoint.extended) | {"model": names[0]}),
                cast_to=httpx2.Response,
                options={"headers": _HEADERS},
            )
    except openai.APIStatusError as error:
        raise _refusal(error) from error
    except TimeoutError as error:
        raise AttemptError(Kind.SILENT, "no whole reply in time") from error
    except (openai.APIConnectionError, httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
        raise AttemptError(Kind.SILENT, "no connection, or one that broke off") from error
    try:
        return _reply(response.content, request, names)
    except RecursionError as error:
        raise AttemptError(Kind.DAMAGED, "a body that is nested too deeply") from error


def _refusal(error: openai.APIStatusError) -> AttemptError:
    status, wait = error.status_code, _retry_after(error.response.headers.get("retry-after"))
    if isinstance(error, (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError)):
        return AttemptError(Kind.LOCKED_OUT, str(error))
    if status == 429:
        return AttemptError(Kind.BUSY, str(error), wait)
    if status >= 500 or status in _TRANSIENT_STATUS:
        return AttemptError(Kind.TROUBLED, str(error), wait)
    return AttemptError(Kind.REFUSED, str(error))


def _retry_after(value: str | None) -> float:
    """Seconds, from either form of the header (RFC 9110, 10.2.3); what is neither counts for nothing."""
    if value is None:
        return 0.0
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


def _reply(content: bytes, request: Request, names: Sequence[str]) -> Reply:
    completion = _parsed(content)
    try:
        choice, usage = completion["choices"][0], completion.get("usage") or {}
        content_of = choice["message"].get("content") or ""
        # A lone surrogate cannot be stored; the server meant no more by it than a damaged character.
        text = content_of.encode("utf-8", "replace").decode()
        sent, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        reason, answering = choice.get("finish_reason"), completion.get("model")
    except (AttributeError, LookupError, TypeError) as error:
        raise AttemptError(Kind.DAMAGED, f"not a chat completion: {error!r}") from error
    if sent is None or written is None:
        raise AttemptError(Kind.DAMAGED, "a chat completion that does not report its usage")
    # No tokenizer makes more tokens than bytes of a text.
    most_sent = sum(len(message.content.encode()) for message in request.messages) + _UNSEEN_TOKENS
    most_written = request.max_tokens + _UNSEEN_TOKENS
    if not _is_count(sent, 1, most_sent) or not _is_count(written, 1 if text else 0, most_written):
        raise AttemptError(
            Kind.DAMAGED, f"a chat completion with an impossible usage ({sent!r} and {written!r} tokens)"
        )
    if reason not in _FINISHED:
        raise AttemptError(Kind.DAMAGED, f"a completion that was not finished (finish_reason {reason!r})")
    if answering not in names:
        raise AttemptError(Kind.DAMAGED, f"a completion of the model {answering!r}, while {names[0]!r} was asked")
    return Reply(text, sent, written, reason, request.model)


def _is_count(value: Any, least: int, most: int) -> bool:
    """Whether a value is a whole number within bounds; ``True`` is none, though Python calls it an ``int``."""
    return type(value) is int and least <= value <= most


def _parsed(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except ValueError:
        pass
    try:
        return json.loads(content)  # takes lone surrogates
    except ValueError as error:
        raise AttemptError(Kind.DAMAGED, f"not JSON: {error}") from error

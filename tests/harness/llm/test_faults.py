"""Every way in which a server can fail: what it was sent, how often, and what was recorded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import orjson
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI

from harness.errors import UserError
from harness.llm import client as client_module
from harness.llm.completion import AttemptError, attempt
from harness.llm.endpoints import simulated
from harness.llm.request import Reply
from harness.llm.retries import MAX_ATTEMPTS
from harness.llm.servers import SILENT_AFTER
from harness.llm.transport import http_client
from tests.harness.llm.conftest import Make, Tried
from tests.harness.llm.serving import (
    ANSWER,
    ERROR,
    MODEL,
    Kept,
    Scripted,
    Selective,
    completion,
    http,
    raw,
    request,
    served_at,
    wired_at,
)

GOOD = http(completion())
HALF = GOOD[: len(GOOD) - 40]
# No parser of JSON takes offence at it, but Python cannot show it.
DEEP = b"[" * 1010 + b"]" * 1010
NO_CONNECTION = "no connection, or one that broke off"


def failed(tried: Tried) -> list[str | None]:
    """Errors of the attempts, which are numbered from 1."""
    attempts = tried()
    assert [number for number, _ in attempts] == list(range(1, len(attempts) + 1))
    return [error for _, error in attempts]


def matches(error: str | None, part: str | None) -> bool:
    return error is None if part is None else error is not None and part in error


def finished(reason: Any) -> dict[str, Any]:
    """A completion that ended for this reason."""
    message = {"role": "assistant", "content": "Half an ans"}
    return completion(choices=[{"index": 0, "message": message, "finish_reason": reason}])


def using(prompt_tokens: Any, completion_tokens: Any) -> dict[str, Any]:
    """A completion that cost so much."""
    return completion(usage={"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens})


TRANSIENT: dict[str, tuple[tuple[int, dict[str, Any]], str]] = {
    "error 500": ((500, ERROR), "busy"),
    "gateway 502": ((502, {}), "502"),
    "unavailable 503": ((503, ERROR), "busy"),
    "too many 429": ((429, ERROR), "busy"),
    "time-out 408": ((408, ERROR), "busy"),
    "conflict 409": ((409, ERROR), "busy"),
    "too early 425": ((425, ERROR), "busy"),
    "no completion": ((200, {"nonsense": True}), "not a chat completion"),
    "no choice": ((200, completion(choices=[])), "not a chat completion"),
    "no usage": ((200, completion(usage=None)), "does not report its usage"),
    "empty usage": ((200, completion(usage={})), "does not report its usage"),
    "half a usage": ((200, completion(usage={"prompt_tokens": 3})), "does not report its usage"),
    "a cost of billions": ((200, using(10**17, 2)), "impossible usage (100000000000000000 and 2 tokens)"),
    "endless writing": ((200, using(7, 2**63)), "impossible usage"),
    "tokens owed": ((200, using(7, -2)), "impossible usage (7 and -2 tokens)"),
    "no prompt": ((200, using(0, 2)), "impossible usage"),
    "a text of no tokens": ((200, using(7, 0)), "impossible usage"),
    "truth for a number": ((200, using(True, True)), "impossible usage (True and True tokens)"),
    "halves of tokens": ((200, using(7.5, 2)), "impossible usage"),
    "words for a number": ((200, using("7", 2)), "impossible usage"),
    "aborted": ((200, finished("abort")), "not finished (finish_reason 'abort')"),
    "failed in the engine": ((200, finished("error")), "not finished (finish_reason 'error')"),
    "no finish reason": ((200, finished(None)), "not finished (finish_reason None)"),
    "an odd finish reason": ((200, finished(["stop"])), "not finished"),
    "another model": ((200, completion(model="b")), "a completion of the model 'b', while 'some/model' was asked"),
    "no model": ((200, completion(model=None)), "a completion of the model None"),
}


@pytest.mark.parametrize(("answer", "error"), TRANSIENT.values(), ids=TRANSIENT)
async def test_what_may_pass_is_tried_again(
    answer: tuple[int, dict[str, Any]], error: str, make: Make, kept: Kept, tried: Tried
) -> None:
    server = Scripted(answer, answer)
    assert await make(server).complete("m", request()) == ANSWER
    assert server.asked == [request().body()] * 3
    assert kept.calls == [(request(), ANSWER)]
    assert list(map(matches, failed(tried), [error, error, None])) == [True] * 3


@pytest.mark.parametrize(("answer", "error"), TRANSIENT.values(), ids=TRANSIENT)
async def test_what_does_not_pass_is_recorded_after_twelve_attempts_and_not_asked_again(
    answer: tuple[int, dict[str, Any]], error: str, make: Make, kept: Kept, tried: Tried
) -> None:
    server = Selective(*[answer] * MAX_ATTEMPTS)
    client = make(server)
    reply = await client.complete("m", request())
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("", 0, 0)
    assert (reply.finish_reason, reply.model) == ("error", MODEL)
    assert matches(reply.error, error)
    assert await client.complete("m", request()) == reply
    assert (len(server.asked), kept.calls) == (12, [(request(), reply)])
    assert [matches(one, error) for one in failed(tried)] == [True] * 12


WIRE: dict[str, tuple[bytes | None, str]] = {
    "closed at once": (b"", NO_CONNECTION),
    "body cut short": (HALF, NO_CONNECTION),
    "cut within the head": (GOOD[:40], NO_CONNECTION),
    "not HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", NO_CONNECTION),
    "chunks cut short": (
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"id"\r\n',
        NO_CONNECTION,
    ),
    "damaged compression": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        NO_CONNECTION,
    ),
    "half a JSON text": (b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{"id"', "not JSON"),
    "a page": (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "not JSON"),
    "a deep body": (raw(b"[" * 100_000), "nested too deeply"),
    "a deep usage": (raw(orjson.dumps(using(0, 2)).replace(b":0,", b":" + DEEP + b",")), "nested too deeply"),
    "a deep choice": (raw(orjson.dumps(finished(0)).replace(b":0}", b":" + DEEP + b"}")), "nested too deeply"),
    "nothing": (b"HTTP/1.1 204 No Content\r\n\r\n", "not JSON"),
    "silence": (None, "no whole reply in time"),
}


@pytest.mark.parametrize(("sent", "error"), WIRE.values(), ids=WIRE)
async def test_a_broken_connection_or_body_is_tried_again(
    sent: bytes | None, error: str, make: Make, kept: Kept, tried: Tried
) -> None:
    async with wired_at(sent, sent) as (url, came):
        assert await make(None, url, timeout_s=5 if sent is not None else 0.3).complete("m", request()) == ANSWER
    assert len(came) == 3
    assert len(set(came)) == 1
    assert kept.calls == [(request(), ANSWER)]
    assert list(map(matches, failed(tried), [error, error, None])) == [True] * 3


async def test_a_reset_in_the_middle_of_a_body_is_tried_again(make: Make, kept: Kept, tried: Tried) -> None:
    bodies = []

    async def chat(http_request: web.Request) -> web.StreamResponse:
        bodies.append(await http_request.json())
        if len(bodies) > 1:
            return web.json_response(completion())
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(http_request)
        await response.write(b"{")
        assert http_request.transport is not None
        http_request.transport.abort()
        return response

    async with served_at(chat=chat) as url:
        assert await make(None, url).complete("m", request()) == ANSWER
    assert bodies == [request().body()] * 2
    assert list(map(matches, failed(tried), [NO_CONNECTION, None])) == [True] * 2


async def test_a_reply_that_drips_meets_the_limit_of_the_whole_attempt(make: Make, tried: Tried) -> None:
    """Byte after byte comes in time, the reply does not."""
    came = 0

    async def chat(http_request: web.Request) -> web.StreamResponse:
        nonlocal came
        came += 1
        if came > 1:
            return web.json_response(completion())
        response = web.StreamResponse(headers={"Content-Length": "1000000"})
        await response.prepare(http_request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    async with served_at(chat=chat) as url:
        assert await make(None, url, timeout_s=0.5).complete("m", request()) == ANSWER
    assert list(map(matches, failed(tried), ["no whole reply in time", None])) == [True] * 2


async def test_an_empty_reply_and_a_cut_one_are_answers(make: Make, kept: Kept) -> None:
    silent = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "stop"}
    reasons = ["length", "content_filter", "tool_calls"]
    bodies = [completion(""), completion(choices=[silent]), *map(finished, reasons)]
    server = Scripted(*((200, body) for body in bodies))
    client = make(server)
    replies = [await client.complete("m", request(text)) for text in "abcde"]
    assert replies == [
        *[Reply("", 7, 2, "stop", MODEL)] * 2,
        *(Reply("Half an ans", 7, 2, reason, MODEL) for reason in reasons),
    ]
    assert [await client.complete("m", request(text)) for text in "abcde"] == replies == kept.replies
    assert len(server.asked) == 5


@settings(deadline=None)
@given(st.text(), st.integers(1, 10_000), st.text(), st.integers(1, 200_000), st.integers(0, 20_000))
async def test_usage_counts_where_a_tokenizer_could_have_made_it(
    asked: str, max_tokens: int, said: str, sent: int, written: int
) -> None:
    """A token is a byte or more; 4,096 are allowed for what is in no text."""
    body = {**completion(said), "usage": {"prompt_tokens": sent, "completion_tokens": written}}
    possible = sent <= len(asked.encode()) + 4096 and bool(said) <= written <= max_tokens + 4096
    client = AsyncOpenAI(api_key="none", http_client=http_client(Scripted((200, body)), 1))
    asking = attempt(client, request(asked, max_tokens=max_tokens), simulated(), asyncio.timeout(60))
    if possible:
        reply = await asking
        assert (reply.prompt_tokens, reply.completion_tokens) == (sent, written)
    else:
        with pytest.raises(AttemptError, match="impossible usage"):
            await asking


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_refused_request_is_final_at_once(status: int, make: Make, kept: Kept) -> None:
    server = Scripted((status, {"error": {"message": "prompt too long"}}))
    reply = await make(server).complete("m", request())
    assert "prompt too long" in (reply.error or "")
    assert (len(server.asked), kept.replies) == (1, [reply])


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, "refuses the API key of m"), (403, "refuses the API key"), (404, "does not know what m asks for")],
)
async def test_an_endpoint_that_refuses_everything_stops_the_cell(
    status: int, message: str, make: Make, kept: Kept
) -> None:
    server = Scripted(*[(status, ERROR)] * SILENT_AFTER)
    with pytest.raises(UserError, match=message):
        await make(server).complete("m", request())
    assert (len(server.asked), kept.calls) == (SILENT_AFTER, [])


async def test_a_call_that_never_ends_is_recorded_where_the_server_is_alive(make: Make, kept: Kept) -> None:
    """It may be the last of a cell: nobody else is answered meanwhile."""

    async def never(http_request: web.Request) -> web.Response:
        if (await http_request.json())["max_tokens"] > 1:
            await asyncio.sleep(3600)
        return web.json_response(completion())

    async with served_at(chat=never) as url:
        reply = await make(None, url, timeout_s=0.05).complete("m", request())
    assert reply == Reply.failed(MODEL, "no whole reply in time")
    assert kept.replies == [reply]


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Attempts after which a client waits, and what the server asked it to wait."""
    waits: list[tuple[int, float]] = []

    def delay(key: str, attempt: int, retry_after_s: float) -> float:
        waits.append((attempt, retry_after_s))
        return 0.0

    monkeypatch.setattr(client_module, "delay_s", delay)
    return waits


def in_seconds(seconds: float) -> str:
    return formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [
        (429, lambda: "7", 7.0),
        (503, lambda: "7", 7.0),
        (429, lambda: "100000", 100000.0),
        (429, lambda: in_seconds(60), 60.0),
        (429, lambda: in_seconds(-60), 0.0),
        (429, lambda: "soon", 0.0),
        (429, lambda: "-3", 0.0),
        (429, None, 0.0),
    ],
)
async def test_a_server_says_how_long_to_wait(
    status: int, header: Callable[[], str] | None, seconds: float, make: Make, waited: list[tuple[int, float]]
) -> None:
    asked = 0

    async def chat(http_request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        headers = {} if header is None else {"Retry-After": header()}
        return (
            web.json_response(ERROR, status=status, headers=headers) if asked < 3 else web.json_response(completion())
        )

    async with served_at(chat=chat) as url:
        assert await make(None, url).complete("m", request()) == ANSWER
    assert [attempt for attempt, _ in waited] == [1, 2]
    # A date has no fractions of a second.
    assert [wanted for _, wanted in waited] == pytest.approx([seconds] * 2, abs=2)


async def test_a_call_that_waits_for_another_attempt_keeps_nobody_from_the_server(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[int] = []
    monkeypatch.setattr(client_module, "delay_s", lambda key, attempt, wish: delays.append(attempt) or 3600.0)
    server = Scripted((500, ERROR))

    async def chat(http_request: web.Request) -> web.Response:
        status, body = server.chat(await http_request.json())
        return web.json_response(body, status=status)

    async with served_at(chat=chat) as url:
        client = make(None, url, max_in_flight=1)
        first = asyncio.create_task(client.complete("m", request("first")))
        while not delays:
            await asyncio.sleep(0.01)
        assert (await client.complete("m", request("second"))).text == "re: second"
        assert not first.done()
        first.cancel()


async def test_a_call_is_given_up_at_once_while_it_waits(
    make: Make, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[int] = []
    monkeypatch.setattr(client_module, "delay_s", lambda key, attempt, wish: delays.append(attempt) or 3600.0)
    client = make(Scripted((500, ERROR)))
    call = asyncio.create_task(client.complete("m", request()))
    while not delays:
        await asyncio.sleep(0)
    call.cancel()
    async with asyncio.timeout(5):
        await client.__aexit__()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert (kept.calls, delays) == ([], [1])


async def test_a_call_is_given_up_at_once_while_the_server_is_silent(make: Make, kept: Kept, tried: Tried) -> None:
    async with wired_at(None) as (url, came):
        client = make(None, url, timeout_s=3600)
        call = asyncio.create_task(client.complete("m", request()))
        while not came:
            await asyncio.sleep(0.01)
        call.cancel()
        async with asyncio.timeout(5):
            await client.__aexit__()
            with pytest.raises(asyncio.CancelledError):
                await call
    assert (kept.calls, failed(tried)) == ([], ["CancelledError: CancelledError"])

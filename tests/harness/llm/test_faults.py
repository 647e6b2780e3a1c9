"""Every way in which a server can fail: what it was sent, how often, and what was recorded."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from harness.errors import UserError
from harness.llm.asking import _MAX_ATTEMPTS, MAX_FAILURES
from harness.llm.request import Reply
from harness.llm.servers import QUICK_RETRIES
from tests.harness.llm.conftest import Make, Tried
from tests.harness.llm.serving import ANSWER, ERROR, MODEL, Kept, Scripted, completion, http, raw, request, wired_at

GOOD = http(completion())
QUICK = 1 + QUICK_RETRIES


def finished(reason: Any) -> dict[str, Any]:
    """A completion that ended for this reason."""
    message = {"role": "assistant", "content": "Half an ans"}
    return completion(choices=[{"index": 0, "message": message, "finish_reason": reason}])


def using(prompt_tokens: Any, completion_tokens: Any) -> dict[str, Any]:
    """A completion that cost so much."""
    return completion(usage={"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens})


# Status, body, what is said of it, and how often it is asked in one attempt. A status that everybody is met with counts
# against no call before it has had four times as many attempts.
TRANSIENT: dict[str, tuple[int, dict[str, Any], str, int]] = {
    "error 500": (500, ERROR, "busy", QUICK),
    "too early 425": (425, ERROR, "busy", 1),
    "no completion": (200, {"nonsense": True}, "not a chat completion", 1),
    "no usage": (200, completion(usage=None), "does not report its usage", 1),
    "a cost of billions": (200, using(10**17, 2), "impossible usage (100000000000000000 and 2 tokens)", 1),
    "tokens owed": (200, using(7, -2), "impossible usage (7 and -2 tokens)", 1),
    "a text of no tokens": (200, using(7, 0), "impossible usage", 1),
    "aborted": (200, finished("abort"), "not finished (finish_reason 'abort')", 1),
    "another model": (200, completion(model="b"), "a completion of the model 'b', while 'some/model' was asked", 1),
}


@pytest.mark.parametrize(("status", "body", "error", "each"), TRANSIENT.values(), ids=TRANSIENT)
async def test_what_may_pass_is_tried_again_and_recorded_as_failed_in_the_end(
    status: int, body: dict[str, Any], error: str, each: int, make: Make, kept: Kept, tried: Tried
) -> None:
    server = Scripted(*[(status, body)] * 2 * each)
    client = await make(server)
    assert await client.complete("m", request()) == Reply("re: hello", 7, 2, "stop", MODEL)
    assert [error in one if one else None for one in tried()] == [True, True, None]
    assert server.asked == [server.asked[0]] * (2 * each + 1)
    server.script = [(status, body)] * (MAX_FAILURES if status == 200 else _MAX_ATTEMPTS) * each
    reply = await client.complete("m", request("again"))
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("", 0, 0)
    assert (reply.finish_reason, reply.model) == ("error", MODEL)
    assert error in str(reply.error)
    assert (len(server.script), len(kept.calls)) == (0, 2)
    assert await client.complete("m", request("again")) == reply


WIRE: dict[str, tuple[bytes | None, str, int]] = {
    "closed at once": (b"", "disconnected", QUICK),
    "body cut short": (GOOD[:-40], "Connection error", QUICK),
    "not HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "Bad status line", 1),
    "damaged compression": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        "Connection error",
        QUICK,
    ),
    "half a JSON text": (raw(b'{"id"'), "not JSON", 1),
    "a deep body": (raw(b"[" * 100_000), "not JSON", 1),
    "silence": (None, "timed out", QUICK),
}


@pytest.mark.parametrize(("sent", "error", "each"), WIRE.values(), ids=WIRE)
async def test_a_broken_connection_or_body_is_tried_again(
    sent: bytes | None, error: str, each: int, make: Make, kept: Kept, tried: Tried
) -> None:
    async with wired_at(*[sent] * each) as (url, came):
        client = await make(url, timeout_s=5 if sent is not None else 0.3)
        assert await client.complete("m", request()) == ANSWER
    asked = [body for body in came if orjson.loads(body)["max_tokens"] > 1]
    assert asked == [asked[0]] * (each + 1)
    assert kept.calls == [(request(), ANSWER)]
    assert [error in one if one else None for one in tried()] == [True, None]


async def test_an_empty_reply_and_a_cut_one_are_answers(make: Make, kept: Kept) -> None:
    silent = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "stop"}
    server = Scripted((200, completion("")), (200, completion(choices=[silent])), (200, finished("length")))
    client = await make(server)
    replies = [await client.complete("m", request(text)) for text in "abc"]
    empty = Reply("", 7, 2, "stop", MODEL)
    assert replies == kept.replies == [empty, empty, Reply("Half an ans", 7, 2, "length", MODEL)]
    assert len(server.asked) == 3


async def test_a_refused_request_is_final_at_once(make: Make, kept: Kept) -> None:
    server = Scripted((400, {"error": {"message": "prompt too long"}}))
    reply = await (await make(server)).complete("m", request())
    assert reply.error == "Error code: 400 - prompt too long"
    assert (len(server.asked), kept.replies) == (1, [reply])


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, "refuses the API key of m"), (403, "refuses the API key"), (404, "does not know what m asks for")],
)
async def test_an_endpoint_that_refuses_everything_stops_the_cell(
    status: int, message: str, make: Make, kept: Kept
) -> None:
    server = Scripted((status, ERROR))
    with pytest.raises(UserError, match=message):
        await (await make(server)).complete("m", request())
    assert (len(server.asked), kept.calls) == (1, [])


async def test_a_server_that_has_too_much_to_do_costs_no_call_its_chance(make: Make, kept: Kept, tried: Tried) -> None:
    server = Scripted(*[(429, ERROR)] * 20 * QUICK)
    assert (await (await make(server)).complete("m", request())).error is None
    assert len(tried()) == 21


async def test_a_call_is_given_up_at_once_while_the_server_is_silent(make: Make, kept: Kept, tried: Tried) -> None:
    async with wired_at(None) as (url, came):
        client = await make(url, timeout_s=3600)
        call = asyncio.create_task(client.complete("m", request()))
        while not came:
            await asyncio.sleep(0.01)
        call.cancel()
        async with asyncio.timeout(5):
            await client.__aexit__()
            with pytest.raises(asyncio.CancelledError):
                await call
    assert kept.calls == []

"""Every way in which a server can fail: what it was sent, how often, and what was recorded."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from harness.errors import UserError
from harness.llm.request import Reply
from harness.llm.served_backbone import _MAX_ATTEMPTS, _MAX_UNCOUNTABLE, MAX_FAILURES
from tests.harness.llm.conftest import Make, Tried
from tests.harness.llm.serving import ANSWER, ERROR, MODEL, Kept, Scripted, completion, request, served_at


def finished(reason: Any) -> dict[str, Any]:
    """Return a completion that ended for this reason."""
    message = {"role": "assistant", "content": "Half an ans"}
    return completion(choices=[{"index": 0, "message": message, "finish_reason": reason}])


def choice(content: Any, reason: Any = "stop", usage: Any = None, error: Any = None, **fields: Any) -> dict[str, Any]:
    """Return a completion with such a choice."""
    one = {"index": 0, "message": {"role": "assistant", "content": content, **fields}, "finish_reason": reason}
    whole = completion(choices=[one if error is None else {**one, "error": error}])
    return whole if usage is None else {**whole, "usage": usage}


def using(prompt_tokens: Any, completion_tokens: Any) -> dict[str, Any]:
    """Return a completion that cost so much."""
    return completion(usage={"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens})


# Status, body, and what is said of it. A status that everybody is met with counts against no call before it has had
# four times as many attempts.
TRANSIENT: dict[str, tuple[int, dict[str, Any], str]] = {
    "error 500": (500, ERROR, "busy"),
    "too early 425": (425, ERROR, "busy"),
    "no completion": (200, {"nonsense": True}, "not a chat completion"),
    "aborted": (200, finished("abort"), "not finished (finish_reason 'abort')"),
    "no end and no text": (200, choice("", None), "not finished (finish_reason None)"),
    "an error in it": (200, {"error": "no worker"}, "an error: no worker"),
    "an error in a choice": (200, choice("", "error", error={"code": 502, "message": "upstream"}), "502 - upstream"),
}
# Replies in other words than OpenAI's, and how they ended.
DIALECTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "text-generation-inference": (choice("four", "eos_token"), "four", "stop"),
    "anthropic": (choice("four", "end_turn"), "four", "stop"),
    "google": (choice("fo", "MAX_TOKENS"), "fo", "length"),
    "no reason": (choice("four", None), "four", "stop"),
    "empty reason": (choice("four", ""), "four", "stop"),
    "no reason at the limit": (
        choice("fo", None, usage={"prompt_tokens": 7, "completion_tokens": 2048}),
        "fo",
        "length",
    ),
    "parts": (
        choice(
            [{"type": "thinking", "thinking": "2?"}, {"type": "text", "text": "fo"}, {"type": "text", "text": "ur"}]
        ),
        "four",
        "stop",
    ),
    "thinking alone": (choice(None, "length", reasoning_content="2?"), "", "length"),
    "a file": (completion("four", model="/models/Model.gguf"), "four", "stop"),
    "a file of windows": (completion("four", model="C:\\models\\model.gguf"), "four", "stop"),
}
UNCOUNTABLE: dict[str, tuple[dict[str, Any], str, tuple[int, int]]] = {
    "no usage": (completion(usage=None), "does not report its usage", (0, 0)),
    "billions": (using(10**17, 2), r"impossible usage \(100000000000000000 and 2 tokens\)", (0, 0)),
    "tokens owed": (using(7, -2), r"impossible usage \(7 and -2 tokens\)", (0, 0)),
    "another model": (completion(model="b"), "of the model 'b', while 'some/model' was asked", (7, 2)),
}


@pytest.mark.parametrize(("status", "body", "error"), TRANSIENT.values(), ids=TRANSIENT)
async def test_what_may_pass_is_tried_again_and_recorded_as_failed_in_the_end(
    status: int, body: dict[str, Any], error: str, make: Make, kept: Kept, tried: Tried
) -> None:
    server = Scripted(*[(status, body)] * 2)
    client = await make(server)
    assert await client.complete("m", request()) == Reply("re: hello", 7, 2, "stop", MODEL)
    assert [error in one if one else None for one in tried()] == [True, True, None]
    assert server.asked == [server.asked[0]] * 3
    is_malformed = status == 200 and "502" not in error
    server.script = [(status, body)] * (MAX_FAILURES if is_malformed else _MAX_ATTEMPTS)
    reply = await client.complete("m", request("again"))
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("", 0, 0)
    assert (reply.finish_reason, reply.model) == ("error", MODEL)
    assert error in str(reply.error)
    assert (len(server.script), len(kept.calls)) == (0, 2)
    assert await client.complete("m", request("again")) == reply


@pytest.mark.parametrize(("body", "error", "tokens"), UNCOUNTABLE.values(), ids=UNCOUNTABLE)
async def test_a_server_whose_replies_can_never_count_stops_the_cell_and_what_they_cost_is_charged(
    body: dict[str, Any], error: str, tokens: tuple[int, int], make: Make, kept: Kept
) -> None:
    server = Scripted(*[(200, body)] * 100)
    client = await make(server)
    with pytest.raises(UserError, match=rf"/v1 of m answers with .*{error}.*let it .*(usage|served_name).* same com"):
        await client.complete("m", request())
    assert (len(server.asked), kept.calls) == (_MAX_UNCOUNTABLE, [])
    assert kept.charged == [(MODEL, *tokens)] * _MAX_UNCOUNTABLE
    # Once it has answered, such a reply is one of the faults that pass.
    server.script = []
    await client.complete("m", request("counts"))
    server.script = [(200, body)] * (MAX_FAILURES - 1)
    assert (await client.complete("m", request())).error is None
    server.script = [(200, body)] * 100
    with pytest.raises(UserError, match=error):
        await client.complete("m", request("more"))
    assert 100 - len(server.script) == MAX_FAILURES


async def test_an_empty_reply_a_cut_one_and_a_damaged_character_are_answers(make: Make, kept: Kept) -> None:
    silent = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "stop"}
    server = Scripted((200, completion("")), (200, completion(choices=[silent])), (200, finished("length")))
    server.script.append((200, completion("half a pair: \ud83d")))
    client = await make(server)
    replies = [await client.complete("m", request(text)) for text in "abcd"]
    empty = Reply("", 7, 2, "stop", MODEL)
    damaged = Reply("half a pair: ?", 7, 2, "stop", MODEL)
    assert replies == kept.replies == [empty, empty, Reply("Half an ans", 7, 2, "length", MODEL), damaged]
    assert len(server.asked) == 4


@pytest.mark.parametrize(("body", "text", "reason"), DIALECTS.values(), ids=DIALECTS)
async def test_what_plainly_means_a_reply_is_one(body: dict[str, Any], text: str, reason: str, make: Make) -> None:
    reply = await (await make(Scripted((200, body)))).complete("m", request())
    assert (reply.text, reply.finish_reason, reply.model, reply.error) == (text, reason, MODEL, None)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"detail": "seed is not supported"}, "seed is not supported"),
        (
            {"detail": [{"loc": ["body", "seed"], "msg": "not permitted"}]},
            "'loc': ['body', 'seed'], 'msg': 'not permitted'",
        ),
        ({"error": "seed is not supported"}, "seed is not supported"),
        ({"message": "seed is not supported"}, "seed is not supported"),
        ({"detail": "x" * 5000}, "x" * 300),
    ],
)
async def test_the_reason_of_a_refusal_is_said_in_whatever_form_it_comes(
    body: dict[str, Any], reason: str, make: Make, tried: Tried
) -> None:
    reply = await (await make(Scripted((422, body)))).complete("m", request())
    assert reply.error is not None
    assert reply.error.startswith("Error code: 422 - ")
    assert reason in reply.error
    assert len(reply.error) < 400
    assert reply.error in str(tried()[0])


async def test_an_error_with_status_200_is_that_error(make: Make, tried: Tried) -> None:
    busy = [{"code": 429, "message": "slow"}, {"code": "rate_limit_exceeded", "message": "slow"}, {"code": "429"}]
    server = Scripted(*[(200, {"error": error}) for error in busy for _ in range(5)])
    # No call loses its chance by too many requests, however often it waits.
    assert (await (await make(server)).complete("m", request())).error is None
    assert len(tried()) == 16
    refused = Scripted((200, {"error": {"code": 400, "message": "too long"}}))
    assert (await (await make(refused)).complete("m", request("long"))).error == "Error code: 400 - too long"
    with pytest.raises(UserError, match="refuses the API key of m"):
        await (await make(Scripted((200, {"error": {"code": 401, "message": "who?"}})))).complete("m", request("who"))


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
    server = Scripted(*[(429, ERROR)] * 20)
    assert (await (await make(server)).complete("m", request())).error is None
    assert len(tried()) == 21


@pytest.mark.parametrize("body", ['{"id"', "[" * 100_000], ids=["half a text", "deep"])
async def test_a_body_that_is_no_json_is_tried_again(body: str, make: Make, tried: Tried) -> None:
    server, bodies = Scripted(), [body]

    async def chat(http: web.Request) -> web.StreamResponse:
        return web.Response(text=bodies.pop(), content_type="application/json") if bodies else await server.chat(http)

    async with served_at(chat=chat) as url:
        assert await (await make(url)).complete("m", request()) == ANSWER
    assert ["not JSON" in str(one) for one in tried()] == [True, False]


async def test_an_answer_that_is_no_http_is_a_failed_attempt(make: Make, tried: Tried) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        client = await make(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        assert (await client.complete("m", request())).error == "Connection error."
    assert all("Bad status line" in str(one) for one in tried())


async def test_a_call_is_given_up_at_once_while_the_server_is_silent(make: Make, kept: Kept) -> None:
    asked = asyncio.Event()

    async def chat(http: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.sleep(3600)
        raise AssertionError

    async with served_at(chat=chat) as url:
        client = await make(url, timeout_s=3600)
        call = asyncio.create_task(client.complete("m", request()))
        await asked.wait()
        call.cancel()
        async with asyncio.timeout(5):
            await client.__aexit__()
            with pytest.raises(asyncio.CancelledError):
                await call
    assert kept.calls == []

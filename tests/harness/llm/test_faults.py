"""Server faults of every kind: requests, retries, and records."""

import asyncio
import gzip
import json
from typing import Any

import pytest
from aiohttp import web

from harness import errors
from harness.errors import UserError
from harness.llm.request import Reply
from harness.llm.served_backbone import _MAX_ATTEMPTS, _MAX_UNCOUNTABLE, MAX_FAILURES
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ANSWER, ERROR, MODEL, Scripted, completion, models, request, served_at


def choice(content: Any, reason: Any = "stop", error: Any = None, **message: Any) -> dict[str, Any]:
    one = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": reason}
    return completion(choices=[one if error is None else {**one, "error": error}])


def using(prompt_tokens: Any, completion_tokens: Any, body: dict[str, Any] | None = None) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return {**(body or completion()), "usage": usage}


# Status, body, and what is said of it. A status that everybody is met with counts against no call before it has had
# four times as many attempts.
TRANSIENT: dict[str, tuple[int, dict[str, Any] | str, str]] = {
    "error 500": (500, ERROR, "busy"),
    "deep": (200, "[" * 100_000, "text that is no JSON"),
    "no choice": (200, completion(choices=[]), "JSON whose `choices` hold no text"),
    "aborted": (200, choice("Half an ans", "abort"), "not finished (finish_reason 'abort')"),
    "an error in it": (200, {"error": "no worker"}, "an error: no worker"),
    "an error in a choice": (200, choice("", "error", error={"code": 502, "message": "upstream"}), "502 - upstream"),
}
PARTS = [{"type": "thinking", "thinking": "2?"}, {"type": "text", "text": "fo"}, {"type": "output_text", "text": "ur"}]
# Replies, in other words than OpenAI's too, and how they ended.
REPLIES: dict[str, tuple[dict[str, Any], str, str]] = {
    "silent": (choice(None), "", "stop"),
    "a damaged character": (choice("half a pair: \ud83d"), "half a pair: ?", "stop"),
    "text-generation-inference": (choice("four", "eos_token"), "four", "stop"),
    "google": (choice("fo", "MAX_TOKENS"), "fo", "length"),
    "glm": (choice("", "sensitive"), "", "content_filter"),
    "no reason": (choice("four", None), "four", "stop"),
    "no reason at the limit": (using(7, 2048, choice("fo", None)), "fo", "length"),
    "parts": (choice(PARTS), "four", "stop"),
    "a refusal": (choice(None, refusal="I can't help."), "", "content_filter"),
    "thinking alone": (choice(None, "length", reasoning_content="2?"), "", "length"),
}
UNCOUNTABLE: dict[str, tuple[dict[str, Any], str, tuple[int, int]]] = {
    "no usage": (completion(usage=None), r"no possible usage \(None and None tokens\)", (0, 0)),
    "billions": (using(10**17, 2), r"no possible usage \(100000000000000000 and 2 tokens\)", (0, 0)),
    "another model": (completion(model="b"), "of the model 'b', while 'some/model' was asked", (7, 2)),
}
# Status, body, what is said, and the number of tries. Where a body says "slow", a header says to wait for hours.
HOPELESS: list[tuple[int, Any, str, int]] = [
    (200, "data: {}\n\n", "'data: {}", _MAX_UNCOUNTABLE),
    (200, "<html>Log in</html>", "'<html>Log in</html>', which is no chat completion", _MAX_UNCOUNTABLE),
    (200, [completion()], r"\[ChatCompletion", _MAX_UNCOUNTABLE),
    (200, completion(choices=[{"index": 0, "text": "four"}]), "text=.four.*no chat comp", _MAX_UNCOUNTABLE),
    (301, "", r"redirects m to http://[\d.:]+/v1/chat/completions \(.*405.*name that as its url", 1),
    (402, {"error": {"message": "no credit"}}, "refuses the API key of m .*no credit", 1),
    (404, ERROR, "does not know what m asks for", 1),
    (200, {"error": {"code": 401, "message": "who?"}}, "refuses the API key of m", 1),
    (429, {"error": {"code": "insufficient_quota"}}, r"no quota left for m \(.*429.*\); wait or add quota", 1),
    (429, {"error": {"message": "tokens per day (TPD)"}}, "no quota left for m", 1),
    (429, {"error": {"message": "slow"}}, r"no quota left for m \(.*429.*Retry-After: 7\.2 hours", 1),
]
# Status and body of a refusal of one request, and its reason; none where a filter refused the prompt.
REFUSED: list[tuple[int, Any, str]] = [
    (422, {"detail": [{"loc": ["body", "seed"], "msg": "no"}]}, "'loc': ['body', 'seed'], 'msg': 'no'"),
    (422, {"message": "seed is not supported"}, "seed is not supported"),
    (422, {"detail": "x" * 5000}, "x" * 300),
    (403, {"error": {"message": "not for you"}}, "not for you"),
    (400, {"error": {"message": "case_sensitive is unknown"}}, "case_sensitive is unknown"),
    (403, {"error": {"message": "Your input was flagged", "code": "moderation"}}, ""),
    (400, {"error": {"message": "The prompt triggered the policy.", "code": "content_filter"}}, ""),
    (400, {"error": {"message": "Unsafe", "code": "1301"}}, ""),
]


@pytest.mark.parametrize("kind", ["packed", "drips"])
async def test_a_response_is_bounded_in_size_and_in_time(kind: str, make: Make) -> None:
    server = Scripted()

    async def chat(http: web.Request) -> web.StreamResponse:
        if make.tried:
            return await server.chat(http)
        response = web.StreamResponse(headers={"Content-Encoding": "gzip"} if kind == "packed" else None)
        await response.prepare(http)
        while kind == "drips":
            await response.write(b" ")
            await asyncio.sleep(0.05)
        await response.write(gzip.compress(bytes(33 << 20), 1))
        return response

    client = await make(chat, timeout_s=5 if kind == "packed" else 0.5)
    assert await client.complete("m", request()) == ANSWER
    assert ("a body of more than 32 MB" if kind == "packed" else "no whole response within 0.5 s") in str(make.tried[0])


JSON = "application/json"
KEY = "sk-canary/1+2=="
PATHS = ["models 200", "models 401", "chat 200", "chat 400", "chat 401", "chat 500", "chat 302", "chat 0", "chat 1"]


@pytest.mark.parametrize("path", PATHS)
async def test_a_key_that_a_server_repeats_and_a_query_are_not_told_on(
    path: str, make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With status 0 a reply says that it is no completion, with 1 a response is no HTTP."""
    monkeypatch.setenv("THEIR_KEY", KEY)
    kind, status = path.split()[0], int(path.split()[1])

    async def quoting(http: web.Request) -> web.StreamResponse:
        key = http.headers["Authorization"]
        if path == "chat 500" and make.tried:
            return web.json_response(completion())
        if status == 302:
            raise web.HTTPFound(f"/{KEY}/v1?secret=query")
        if status == 1:
            http.transport.write(f"HTTP/1.1 {key}\r\n\r\n".encode())
        body = {"models": models(made_by=key), "chat": completion(key) if status == 200 else {"error": f"no: {key}"}}
        text = json.dumps(body[kind] if status else {key: key}).replace("/", "\\/").replace("+", "\\u002B")
        return web.json_response(text=text, status=status if status > 1 else 200)

    server = {"models": Scripted().models, "chat": Scripted().chat, kind: quoting}
    async with served_at(**server) as url:
        client, told = await make(url, key_env="THEIR_KEY"), []
        try:
            told += [await client.served("m", MODEL), await client.complete("m", request())]
        except UserError as error:
            told.append(str(error))
    everything = f"{told} {make.tried} {make.replies} {caplog.text}"
    assert [word in everything for word in ("canary", "query", "***")] == [False, False, True]


@pytest.mark.parametrize(("status", "body", "error"), TRANSIENT.values(), ids=TRANSIENT)
async def test_what_may_pass_is_tried_again(status: int, body: dict[str, Any] | str, error: str, make: Make) -> None:
    server = Scripted(*[(status, body)] * 2)
    client = await make(server)
    assert await client.complete("m", request()) == ANSWER
    assert [error in message if message else None for message in make.tried] == [True, True, None]
    assert server.asked == [server.asked[0]] * 3
    is_malformed = status == 200 and "502" not in error
    server.script = [(status, body)] * (MAX_FAILURES if is_malformed else _MAX_ATTEMPTS)
    reply = await client.complete("m", request("again"))
    assert reply == Reply.failed(MODEL, str(reply.error))
    assert error in str(reply.error)
    assert (len(server.script), len(make.log)) == (0, 2)
    assert await client.complete("m", request("again")) == reply


@pytest.mark.parametrize(("body", "error", "tokens"), UNCOUNTABLE.values(), ids=UNCOUNTABLE)
async def test_a_server_whose_replies_can_never_count_stops_the_cell_and_what_they_cost_is_charged(
    body: dict[str, Any], error: str, tokens: tuple[int, int], make: Make
) -> None:
    server = Scripted(*[(200, body)] * 100)
    client = await make(server)
    with pytest.raises(UserError, match=rf"/v1 of m answers with .*{error}.*let it .*(usage|served_name).* same com"):
        await client.complete("m", request())
    assert (len(server.asked), len(make.log)) == (_MAX_UNCOUNTABLE, 0)
    assert make.log.paid() == [(MODEL, *(_MAX_UNCOUNTABLE * number for number in (1, *tokens)))]
    # Once it has answered, such a reply is one of the faults that pass.
    server.script = []
    await client.complete("m", request("counts"))
    server.script = [(200, body)] * (MAX_FAILURES - 1)
    assert (await client.complete("m", request())).error is None
    server.script = [(200, body)] * 100
    with pytest.raises(UserError, match=error):
        await client.complete("m", request("more"))
    assert 100 - len(server.script) == MAX_FAILURES


@pytest.mark.parametrize(("status", "body", "message", "tries"), HOPELESS)
async def test_a_hopeless_server_stops_the_cell(status: int, body: Any, message: str, tries: int, make: Make) -> None:
    asked = 0

    async def chat(http: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if status == 301:
            raise web.HTTPMovedPermanently(http.path)
        headers = {"Retry-After": "25920"} if "slow" in str(body) else None
        form = {"text": body} if isinstance(body, str) else {"body": json.dumps(body), "content_type": JSON}
        return web.Response(status=status, headers=headers, **form)

    client = await make(chat)
    with pytest.raises(UserError, match=message):
        await client.complete("m", request())
    assert (asked, len(make.log)) == (tries, 0)


@pytest.mark.parametrize(("body", "text", "reason"), REPLIES.values(), ids=REPLIES)
async def test_what_plainly_means_a_reply_is_one(body: dict[str, Any], text: str, reason: str, make: Make) -> None:
    tokens = body["usage"]["completion_tokens"]
    reply = await (await make(Scripted((200, body)))).complete("m", request())
    assert make.replies == [reply] == [Reply(text, 7, tokens, reason, MODEL)]


async def test_token_details_are_kept_if_they_are_possible(make: Make) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 3}}
    body = completion(usage={**completion()["usage"], **details})
    reply = await (await make(Scripted((200, body)))).complete("m", request())
    assert (reply.cached_tokens, reply.reasoning_tokens) == (5, None)


@pytest.mark.parametrize(("status", "body", "reason"), REFUSED)
async def test_a_refusal_of_one_request_stops_nothing(status: int, body: Any, reason: str, make: Make) -> None:
    client = await make(Scripted((200, completion()), (status, body)))
    await client.complete("m", request())
    reply = await client.complete("m", request("refused"))
    error = str(reply.error)
    assert make.log.get(request("refused").key) == reply
    assert reply.finish_reason == ("error" if reason else "content_filter")
    assert not reason or (error.startswith(f"Error code: {status} - ") and reason in error and len(error) < 400)
    assert error in str(make.tried[1])
    assert (await client.complete("m", request("next"))).error is None


async def test_too_many_requests_cost_no_call_its_chance_also_with_status_200(make: Make) -> None:
    busy = [{"code": 429, "message": "slow"}, {"code": "rate_limit_exceeded", "message": "slow"}, {"code": "429"}]
    answers = [(429, ERROR), *((200, {"error": error}) for error in busy)]
    server = Scripted(*(answer for answer in answers for _ in range(5)))
    assert (await (await make(server)).complete("m", request())).error is None
    assert len(make.tried) == 21
    refused = Scripted((200, {"error": {"code": 400, "message": "too long"}}))
    assert (await (await make(refused)).complete("m", request("long"))).error == "Error code: 400 - too long"


async def test_a_reply_may_carry_any_name_if_the_entry_says_so(make: Make) -> None:
    client = await make(Scripted((200, completion(model="c"))), reply_name="any")
    assert (await client.served("m", MODEL)).details["reply_name"] == "any"
    assert (await client.complete("m", request())).error is None


@pytest.mark.parametrize(
    ("answer", "error"), [(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "Bad status line"), (b"", "Server disconnected")]
)
async def test_no_http_and_a_dropped_connection_are_failed_attempts(answer: bytes, error: str, make: Make) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        client = await make(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        assert (await client.complete("m", request())).error == "Connection error."
    assert all(error in str(attempt) for attempt in make.tried)


def test_of_two_keys_of_which_one_begins_the_other_nothing_is_left() -> None:
    for key in ("secret-of-mine", "secret-of-mine-as-well"):
        errors.keep_secret(key)
    assert errors.keyless("secret-of-mine-as-well, secret-of-mine") == "***, ***"

"""What is asked, once, and what comes back."""

import asyncio
import dataclasses
from pathlib import Path

import pytest
from aiohttp import web

from harness.errors import UserError
from harness.llm.call_log import CallLog, CallLogReader
from harness.llm.request import Reply, Sampling
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ANSWER, MODEL, Kept, Scripted, completion, request, served_at

EXTENDED = {"top_k": -1, "min_p": 0, "repetition_penalty": 1}


@pytest.mark.parametrize("extended", [True, False])
async def test_every_generation_parameter_is_sent(extended: bool, make: Make) -> None:
    server = Scripted()
    await (await make(server, extended=extended)).complete("m", request(temperature=0.5, draw=3))
    assert server.asked == [
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": "hello"}],
            "temperature": 0.5,
            "top_p": 1.0,
            "max_tokens": 2048,
            "seed": 3,
            "n": 1,
            "frequency_penalty": 0,
            "presence_penalty": 0,
            **(EXTENDED if extended else {}),
        }
    ]


async def test_a_model_s_own_sampling_is_sent_whole(make: Make) -> None:
    server = Scripted()
    own = Sampling(0.7, 0.8, 20, 1.05)
    await (await make(server)).complete("m", request(**own._asdict()))
    [body] = server.asked
    assert {name: body[name] for name in own._fields} == own._asdict()


async def test_usage_is_what_the_server_reports(make: Make) -> None:
    assert await (await make(Scripted())).complete("m", request()) == ANSWER


async def test_identical_calls_in_flight_share_one_request(make: Make) -> None:
    server = Scripted()
    client = await make(server)
    replies = await asyncio.gather(*(client.complete("m", request()) for _ in range(20)))
    assert len(set(replies)) == 1
    assert len(server.asked) == 1
    assert (client.counts.asked, client.counts.flight) == (1, 19)


async def test_a_restart_reads_the_log_and_asks_nothing(make: Make, tmp_path: Path) -> None:
    server = Scripted()
    with CallLog(tmp_path / "calls.sqlite") as log:
        await log.append(request(), Reply("kept", 1, 1, "stop", MODEL))
    with CallLog(tmp_path / "calls.sqlite") as log:
        client = await make(server, log=log)
        assert (await client.complete("m", request())).text == "kept"
    assert server.asked == []
    assert client.counts.log == 1


async def test_the_log_of_another_cell_answers_and_is_copied_once(make: Make, kept: Kept, tmp_path: Path) -> None:
    theirs, server = Reply("theirs", 1, 1, "stop", MODEL), Scripted()
    with CallLog(tmp_path / "calls.sqlite") as other:
        await other.append(request(), theirs)
    client = await make(server, shared=[CallLogReader(tmp_path / "calls.sqlite")])
    assert await asyncio.gather(*(client.complete("m", request()) for _ in range(2))) == [theirs] * 2
    assert await client.complete("m", request()) == theirs
    assert (server.asked, kept.calls) == ([], [(request(), theirs)])
    assert dataclasses.astuple(client.counts) == (0, 1, 1, 1)


async def test_a_damaged_character_is_stored_as_one(make: Make, kept: Kept) -> None:
    async def chat(http: web.Request) -> web.Response:
        return web.json_response(completion("half a pair: \ud83d"))

    async with served_at(chat=chat) as url:
        assert (await (await make(url)).complete("m", request())).text == "half a pair: ?"
    assert [reply.text for reply in kept.replies] == ["half a pair: ?"]


async def test_a_call_whose_first_asker_gave_up_goes_on_for_the_others(make: Make) -> None:
    server, asked, go = Scripted(), asyncio.Event(), asyncio.Event()

    async def chat(http: web.Request) -> web.StreamResponse:
        asked.set()
        await go.wait()
        return await server.chat(http)

    async with served_at(chat=chat) as url:
        client = await make(url)
        first, second = (asyncio.create_task(client.complete("m", request())) for _ in range(2))
        await asked.wait()
        first.cancel()
        go.set()
        assert await second == ANSWER
        with pytest.raises(asyncio.CancelledError):
            await first
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<html>hello</html>", "text/html"),
        ('{"models": []}', "application/json"),
        ("[" * 100_000, "application/json"),
    ],
)
async def test_a_server_of_another_kind_is_one_line(make: Make, text: str, kind: str) -> None:
    async def page(http: web.Request) -> web.Response:
        return web.Response(text=text, content_type=kind)

    async with served_at(models=page) as url:
        with pytest.raises(UserError, match=r"does its url in config/endpoints\.yaml end in /v1"):
            await (await make(url)).served("m", MODEL)


async def test_an_empty_reply_is_an_answer(make: Make) -> None:
    server = Scripted((200, completion("")))
    client = await make(server)
    assert (await client.complete("m", request())).text == ""
    assert (await client.complete("m", request())).error is None
    assert len(server.asked) == 1


async def test_a_wrong_model_is_refused_before_the_first_call(make: Make) -> None:
    with pytest.raises(UserError, match="does not serve 'another/model' \\(it serves some/model\\)"):
        await (await make(Scripted())).served("m", "another/model")


async def test_the_server_says_whether_it_simulates(make: Make) -> None:
    served = await (await make(Scripted())).served("m", MODEL)
    assert served.simulated
    assert served.details == {"revision": "r1"}

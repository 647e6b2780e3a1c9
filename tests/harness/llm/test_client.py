"""The client: requests, deduplication, and replies."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from harness.llm.client import SERVERS, write_served
from harness.llm.request import Message, Sampling, Served
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ANSWER, MODEL, Scripted, request


async def test_every_generation_parameter_is_sent_and_the_key(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", "secret")
    server, headers = Scripted(id="llama3.1:8b"), []

    async def chat(http: web.Request) -> web.StreamResponse:
        headers.append(http.headers["Authorization"])
        return await server.chat(http)

    client = await make(chat, key_env="THEIR_KEY", served_name="llama3.1:8b")
    own = request(**Sampling(0.7, 0.8, 20, 1.05)._asdict(), draw=3, stop=("Question:",))
    assert await client.complete("m", own) == ANSWER
    expected = {"model": "llama3.1:8b", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2048, "n": 1}
    expected |= {"temperature": 0.7, "top_p": 0.8, "seed": 3, "frequency_penalty": 0, "presence_penalty": 0}
    expected |= {"top_k": 20, "min_p": 0, "repetition_penalty": 1.05, "repeat_penalty": 1.05, "stop": ["Question:"]}
    extended = request(draw=4, extra_body={"reasoning_effort": "low"})
    await client.complete("m", extended)
    assert server.asked == [expected, {**extended.body(), "model": "llama3.1:8b", "reasoning_effort": "low"}]
    assert headers == ["Bearer secret"] * 2
    # The log has the name of the model, whatever its server calls it.
    assert make.kept.calls[0] == (own, ANSWER)


async def test_what_a_server_does_not_take_is_not_sent_and_said(make: Make) -> None:
    server = Scripted()
    client = await make(server, omit=["seed", "presence_penalty"], max_completion_tokens=True, extended=False)
    assert (await client.served("m", MODEL)).details["not_sent"] == (
        "seed, presence_penalty, top_k, min_p, repetition_penalty"
    )
    assert await client.complete("m", request(max_tokens=100)) == ANSWER
    (body,) = server.asked
    assert (body.pop("messages"), body.pop("model")) == ([{"role": "user", "content": "hello"}], MODEL)
    assert body == {"temperature": 0, "top_p": 1, "n": 1, "frequency_penalty": 0, "max_completion_tokens": 100}


async def test_identical_calls_share_one_request_which_goes_on_where_its_first_asker_gave_up(make: Make) -> None:
    server, asked, go = Scripted(), asyncio.Event(), asyncio.Event()

    async def chat(http: web.Request) -> web.StreamResponse:
        asked.set()
        await go.wait()
        return await server.chat(http)

    client = await make(chat)
    first, *others = [asyncio.create_task(client.complete("m", request())) for _ in range(20)]
    await asked.wait()
    first.cancel()
    go.set()
    assert await asyncio.gather(*others) == [ANSWER] * 19
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await client.complete("m", request()) == ANSWER
    assert len(server.asked) == 1
    assert client.counts == {"asked": 1, "log": 1}


def test_the_key_is_the_same_in_every_version_and_changes_with_all_that_can_change_a_reply() -> None:
    base = request("a")
    assert base.key == "eb504924e324e9f7f87d1ccd7af1bf7aeb737cbd5937dd7da9222adee1f50ed9"
    changes: dict[str, Any] = {"temperature": 0.7, "top_p": 0.9, "top_k": 20, "repetition_penalty": 1.05, "draw": 1}
    changes |= {"max_tokens": 10, "response_format": "{}", "model": "other/model", "revision": "abc"}
    changes |= {"messages": (Message("system", "a"),), "stop": ("Question:",), "extra_body": {"a": 1}}
    others = {dataclasses.replace(base, **{name: value}).key for name, value in changes.items()}
    assert len({base.key, *others}) == len(changes) + 1


def test_a_server_that_changed_under_kept_calls_is_noted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, other = (Served("m", None, {"quantisation": bits}) for bits in ("Q4", "Q8"))
    for served, kept in ((other, 0), (first, 0), (first, 3), (other, 3), (other, 4)):
        write_served(tmp_path, [served], kept)
    written = orjson.loads((tmp_path / SERVERS).read_bytes())
    assert (written["served"]["m"]["details"], len(written["earlier"])) == ({"quantisation": "Q8"}, 1)
    assert written["earlier"][0]["m"]["details"] == {"quantisation": "Q4"}
    assert caplog.text.count("description of a server changed") == 1

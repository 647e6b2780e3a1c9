"""Servers of backbones: limits, reported properties, and users' endpoints files."""

import asyncio
import hashlib
from contextlib import nullcontext
from typing import Any

import pytest
from aiohttp import web

from harness.errors import UserError
from harness.llm.backbones import as_served
from harness.llm.endpoints import choose
from harness.llm.request import Served
from harness.runner.preset import resolve
from harness.scripted import backbone
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ANSWER, MODEL, Scripted, completion, request, served_at

TEMPLATE = '{"chat_template": "{{ messages }}"}'


@pytest.mark.parametrize(("status", "text"), [(200, TEMPLATE), (200, "[]"), (200, "no JSON"), (503, TEMPLATE)])
async def test_the_chat_template_of_a_server_that_tells_it_is_recorded(status: int, text: str, make: Make) -> None:
    """While a server loads its model, it tells none."""

    async def props(http: web.Request) -> web.Response:
        assert http.headers["Authorization"] == "Bearer none"
        return web.Response(text=text, status=status, content_type="application/json")

    async with served_at(models=Scripted().models, props=props) as url:
        client = await make(url)
        with pytest.raises(UserError, match="is still loading its model") if status == 503 else nullcontext():
            details = (await client.served("m", MODEL)).details
            expected = hashlib.sha256(b"{{ messages }}").hexdigest() if text == TEMPLATE else None
            assert details.get("chat_template") == expected


async def test_as_many_requests_are_under_way_as_the_entry_says(make: Make) -> None:
    under_way: set[str] = set()
    most: list[int] = []

    async def chat(http: web.Request) -> web.Response:
        content = (await http.json())["messages"][0]["content"]
        under_way.add(content)
        most.append(len(under_way))
        await asyncio.sleep(0.01)
        under_way.remove(content)
        return web.json_response(completion())

    client = await make(chat, max_in_flight=3)
    await asyncio.gather(*(client.complete("m", request(str(number))) for number in range(20)))
    assert (max(most), len(most)) == (3, 20)


async def test_what_a_server_says_of_its_model(make: Make) -> None:
    found = await (await make(Scripted(root="/where/the/weights/lie"))).served("m", MODEL)
    assert (found.simulated, found.revision, found.details) == (True, "r1", {"revision": "r1"})
    meta = [{"meta": {"ftype": form, "n_ctx": 4096}} for form in ("Q4_K_M", "BF16")]
    quantised = [Served.listed(MODEL, one) for one in meta]
    assert [(one.quantisation, one.context_length) for one in quantised] == [("Q4_K_M", 4096), (None, 4096)]
    numbered = Served.listed(MODEL, {"revision": 1})
    assert as_served(backbone("m", 8, MODEL), numbered).revision == "1"


@pytest.mark.parametrize("key", ["sk-1\n", "sk-\u00e9", "sk 1"])
async def test_a_key_that_no_header_takes_is_told(key: str, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", key)
    with pytest.raises(UserError, match="the API key in the environment variable THEIR_KEY has the character") as told:
        await make(Scripted(), key_env="THEIR_KEY")
    assert "sk-" not in str(told.value)


async def test_an_address_of_version_6_in_capitals(make: Make) -> None:
    async with served_at(Scripted(), host="::1") as url:
        client = await make(url.replace("http", "HTTP"))
        await client.served("m", MODEL)
        assert (await client.complete("m", request())).error is None


@pytest.mark.parametrize("answer", [[{"id": MODEL}], 403, 404])
async def test_a_server_need_not_list_its_models(answer: Any, make: Make) -> None:
    async def listed(_: web.Request) -> web.Response:
        return web.json_response(
            answer if isinstance(answer, list) else {}, status=200 if answer == [{"id": MODEL}] else answer
        )

    async with served_at(Scripted(), models=listed) as url:
        if isinstance(answer, int):
            with pytest.raises(UserError, match=f"{answer}.*; if it completes all the same, say `lists_models: false`"):
                await (await make(url)).served("m", MODEL)
        client = await make(url, lists_models=isinstance(answer, list))
        assert await client.served("m", MODEL) == Served(MODEL, None)
        assert await client.complete("m", request()) == ANSWER


@pytest.mark.parametrize("text", ["<html>hello</html>", '{"models": []}'])
async def test_a_server_of_another_kind_is_one_line(make: Make, text: str) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html" if text[0] == "<" else "application/json")

    async with served_at(models=page) as url:
        with pytest.raises(UserError, match=r"does its url in config/endpoints\.yaml .* end in /v1"):
            await (await make(url)).served("m", MODEL)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"id": "/models/other.gguf"}, "does not serve 'some/model' .*; .*: `served_name`, or"),
        ({"root": "some/model-AWQ"}, "serves the weights of some/model-AWQ under the name some/model; start it"),
    ],
)
async def test_a_server_of_another_model_is_refused(entry: dict[str, str], message: str, make: Make) -> None:
    with pytest.raises(UserError, match=message):
        await (await make(Scripted(**entry))).served("m", MODEL)


def test_an_address_with_a_password_or_without_a_scheme_is_refused_and_a_password_not_repeated() -> None:
    server = {"m": {"url": "http://me:hunter2@host/v1"}}
    with pytest.raises(UserError, match=r"servers of preset paper: m\.url: has a user or password") as told:
        resolve("paper", {"servers": server})
    assert "hunter2" not in str(told.value)
    with pytest.raises(UserError, match=r"^[^\n]*m\.url: String should match pattern [^\n]*, not 'x/v1'$"):
        choose({"m": {"url": "x/v1"}}, ["m"], "endpoints.yaml")

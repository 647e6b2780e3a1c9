"""Where backbones are served: several servers of one, several at one server, what servers say, what users write."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from harness.errors import UserError
from harness.llm.call_log import AttemptLog
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint, load
from harness.llm.request import Served
from harness.runner.setup import as_served
from tests.harness.llm.conftest import Make, Tried
from tests.harness.llm.serving import ERROR, MODEL, Kept, Scripted, completion, request, served_at
from tests.scripted import backbone

DEAD = "http://127.0.0.1:9/v1"


async def test_equal_servers_take_turns_and_one_answers_for_another_that_fails(make: Make, tried: Tried) -> None:
    both, broken, whole = (Scripted(), Scripted()), Scripted(*[(500, ERROR)] * 1000), Scripted()
    client = await make(*both)
    for number in range(10):
        await client.complete("m", request(str(number)))
    assert [len(one.asked) for one in both] == [5, 5]
    client = await make(broken, DEAD, whole, max_in_flight=2)
    calls = [client.complete("m", request(f"{number} of them")) for number in range(40)]
    assert [reply.error for reply in await asyncio.gather(*calls)] == [None] * 40
    assert len(whole.asked) == 40
    # A refused connection is no time-out.
    refused = {error for error in tried() if error and ":9" in error}
    assert refused
    assert all(error.startswith("APIConnectionError: Connection error. (Cannot connect to host") for error in refused)


async def test_calls_go_to_the_server_with_the_fewest_under_way_and_never_queue_at_a_slow_one(make: Make) -> None:
    go, slow, quick = asyncio.Event(), Scripted(), Scripted()

    async def chat(http: web.Request) -> web.StreamResponse:
        answer = await slow.chat(http)
        await go.wait()
        return answer

    async with served_at(chat=chat) as url:
        client = await make(url, quick, max_in_flight=3)
        calls = [asyncio.create_task(client.complete("m", request(str(number)))) for number in range(20)]
        async with asyncio.timeout(60):
            while sum(call.done() for call in calls) < 17:
                await asyncio.sleep(0.005)
        assert (len(slow.asked), len(quick.asked)) == (3, 17)
        go.set()
        await asyncio.gather(*calls)


async def test_servers_of_a_backbone_have_to_serve_the_same(make: Make) -> None:
    async def served(**entry: Any) -> Any:
        return await (await make(Scripted(), Scripted(**entry))).served("m", MODEL)

    found = await served(root="/where/the/weights/lie")
    assert (found.simulated, found.revision, found.details) == (True, "r1", {"revision": "r1"})
    meta = [{"meta": {"ftype": form, "n_ctx": 4096}} for form in ("Q4_K_M", "BF16")]
    quantised = [Served.listed(MODEL, one) for one in meta]
    assert [(one.quantisation, one.context_length) for one in quantised] == [("Q4_K_M", 4096), (None, 4096)]
    numbered = Served.listed(MODEL, {"revision": 1})
    assert as_served(backbone("m", 8, MODEL), numbered).revision == "1"
    for entry, message in (
        ({"revision": "r2"}, r"of m are not alike: revision is 'r1' at .* and 'r2' at"),
        ({"owned_by": "vllm"}, "owned_by is 'simulated' at"),
        ({"id": "other/model"}, r"does not serve 'some/model' \(it serves other/model\)"),
        ({"root": "some/model-AWQ"}, "serves the weights of some/model-AWQ under the name some/model; start it"),
    ):
        with pytest.raises(UserError, match=message):
            await served(**entry)


async def test_a_server_that_is_down_at_the_start_is_left_out(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    client = await make(DEAD, Scripted())
    assert (await client.served("m", MODEL)).revision == "r1"
    assert f"{DEAD} of m does not answer" in caplog.text
    assert "this job does without it" in caplog.text
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9/v1 of m does not answer .*Cannot connect.*start the server"):
        await (await make(DEAD)).served("m", MODEL)


@pytest.mark.parametrize("text", ["<html>hello</html>", '{"models": []}'])
async def test_a_server_of_another_kind_is_one_line(make: Make, text: str) -> None:
    async def page(http: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html" if text[0] == "<" else "application/json")

    async with served_at(models=page) as url:
        with pytest.raises(UserError, match=r"does its url in config/endpoints\.yaml .* end in /v1"):
            await (await make(url)).served("m", MODEL)


async def test_backbones_at_one_url_share_its_limit(kept: Kept, attempts: AttemptLog) -> None:
    now = most = 0
    server = Scripted()

    async def chat(http: web.Request) -> web.StreamResponse:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return await server.chat(http)

    async with served_at(chat=chat) as url:
        endpoints = dict.fromkeys(["a", "b"], Endpoint(url=url, max_in_flight=3))
        async with ChatClient(endpoints, kept, attempts) as client:  # type: ignore[arg-type]
            calls = [client.complete(key, request(f"{key}{number}")) for number in range(10) for key in "ab"]
            await asyncio.gather(*calls)
    assert most == 3
    assert len(server.asked) == 20


async def _asked_by_name(
    make: Make, names: list[str], served_name: str | None = None, **entry: Any
) -> tuple[list[str], str | None]:
    """The names that a server of several, which answers by the first, is asked by; and the error, or ``None``."""
    asked: list[str] = []

    async def models(_: web.Request) -> web.Response:
        common = {"object": "model", "created": 0, "owned_by": "library", **entry}
        return web.json_response({"object": "list", "data": [{"id": name, **common} for name in names]})

    async def chat(http: web.Request) -> web.Response:
        asked.append((await http.json())["model"])
        return web.json_response(completion(model=names[0]))

    async with served_at(models=models, chat=chat) as url:
        client = await make(url, served_name=served_name)
        await client.served("m", MODEL)
        return asked, (await client.complete("m", request(names[0]))).error


async def test_a_served_name_goes_over_the_wire_and_into_no_log(make: Make, kept: Kept) -> None:
    assert await _asked_by_name(make, ["llama3.1:8b"], "llama3.1:8b") == (["llama3.1:8b"], None)
    ((asked, reply),) = kept.calls
    assert (asked, reply.model) == (request("llama3.1:8b"), MODEL)
    with pytest.raises(UserError, match=r"does not serve 'mine' .*; .* or what it calls this model, as served_name$"):
        await _asked_by_name(make, [MODEL], "mine")


def test_an_endpoint_has_one_url_or_several(tmp_path: Path) -> None:
    path = tmp_path / "endpoints.yaml"
    path.write_text("m: {urls: ['http://a/v1', 'http://b/v1'], timeout_s: 3}\nn: {url: 'http://c/v1'}\n")
    several, one = load(path, ["m", "n"]).values()
    assert (several.urls, several.timeout_s, one.urls) == (("http://a/v1", "http://b/v1"), 3, ("http://c/v1",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n: {url: 'http://x/v1'}", "unknown endpoint for backbone 'm'"),
        ("m: {url: 'http://a/v1', urls: ['http://b/v1']}", "m: needs either url, for one server, or urls"),
        ("m: {url: 'x/v1'}", "m.url: 'x/v1' should match pattern"),
        ("m: {url: 'http://x/v1'}\nn: {url: 'http://x/v1', max_in_flight: 2}", "share .*give them the same max_in_fl"),
        (
            "m: {urls: ['http://x/v1', 'http://y/v1']}\nn: {url: 'http://y/v1', key_env: B}",
            "give them the same key_env",
        ),
        ("m: {url: 'http://x/v1'}\nn: {url: 'http://x/v1', timeout_s: 2}", "give them the same timeout_s"),
        ("m: {url: 'http://x/v1'}\nn: {url: 'http://x/v1', extended: false}", "give them the same extended"),
    ],
)
def test_a_slip_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "endpoints.yaml").write_text(text)
    with pytest.raises(UserError, match=message) as told:
        load(tmp_path / "endpoints.yaml", ["m", "n"] if "\n" in text else ["m"])
    assert "\n" not in str(told.value)

"""The client and servers of backbones: requests, deduplication, limits, budgets, properties, and users' endpoints."""

import asyncio
import dataclasses
import hashlib
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from harness.errors import UserError
from harness.llm import client as budget_module
from harness.llm.backbones import as_served, choose
from harness.llm.call_log import AttemptLog, CallLog
from harness.llm.client import SERVERS, Budget, BudgetError, ChatClient, Spending, write_served
from harness.llm.request import Message, Reply, Request, Sampling, Served
from harness.runner.preset import resolve
from harness.scripted import backbone
from tests.harness.llm.conftest import Make
from tests.harness.llm.serving import ANSWER, MODEL, Scripted, completion, models, request, served_at

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


@pytest.mark.parametrize("lists", [True, False])
async def test_a_server_may_list_its_models_bare_or_not_at_all(lists: bool, make: Make) -> None:
    async def listed(_: web.Request) -> web.Response:
        return web.json_response([{"id": MODEL}], status=200 if lists else 404)

    async with served_at(Scripted(), models=listed) as url:
        client = await make(url, lists_models=lists)
        assert await client.served("m", MODEL) == Served(MODEL, None)
        assert await client.complete("m", request()) == ANSWER


NO_LIST = r"does its url in config/endpoints\.yaml .* end in /v1"
ALL_THE_SAME = "if it completes all the same, say `lists_models: false`"


@pytest.mark.parametrize(
    ("listed", "status", "message"),
    [
        ("<html>hello</html>", 200, NO_LIST),
        ({"models": []}, 200, NO_LIST),
        ({}, 403, f"403.*; {ALL_THE_SAME}"),
        ({}, 404, f"404.*; {ALL_THE_SAME}"),
        (models(root="some/model-AWQ"), 200, "the weights of some/model-AWQ under the name some/model; start it"),
    ],
)
async def test_a_list_without_the_model_is_one_line(listed: Any, status: int, message: str, make: Make) -> None:
    async def answer(_: web.Request) -> web.Response:
        page = web.Response(text=str(listed), content_type="text/html")
        return page if isinstance(listed, str) else web.json_response(listed, status=status)

    async with served_at(models=answer) as url:
        with pytest.raises(UserError, match=message):
            await (await make(url)).served("m", MODEL)


def test_an_address_with_a_password_or_without_a_scheme_is_refused_and_a_password_not_repeated() -> None:
    server = {"m": {"url": "http://me:hunter2@host/v1"}}
    with pytest.raises(UserError, match=r"servers of preset paper: m\.url: has a user or password") as told:
        resolve("paper", {"servers": server})
    assert "hunter2" not in str(told.value)
    with pytest.raises(UserError, match=r"^[^\n]*m\.url: String should match pattern [^\n]*, not 'x/v1'$"):
        choose({"m": {"url": "x/v1"}}, ["m"], "endpoints.yaml")
    for url in ("HTTP://[::1]:8000/v1", "https://10.0.0.7/v1"):
        assert choose({"m": {"url": url}}, ["m"], "endpoints.yaml")["m"].url == url


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
    assert make.log.get(own.key) == ANSWER


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


M = backbone("m", 8, MODEL)
TOKENS = ANSWER.prompt_tokens + ANSWER.completion_tokens
COST = M.cost(ANSWER.prompt_tokens, ANSWER.completion_tokens)


class InProcess:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def complete(self, request: Request) -> Reply:
        self.asked.append(request.messages[0].content)
        return Reply.failed(MODEL, "refused") if self.asked[-1] == "fail" else ANSWER


async def ask(server: Any, log: Path, budget: Budget, *texts: str) -> Counter[str]:
    """Run a cell of a preset whose cells have their logs in one folder. Return what these have spent."""
    spending = Spending("p", budget, lambda: log.parent.glob("*.sqlite"), [M])
    with CallLog(log) as opened, AttemptLog(log.with_suffix(".jsonl")) as attempts:
        async with ChatClient({}, opened, attempts, server, spending) as client:
            for text in texts:
                await client.complete("m", request(text))
    return spending.spent


async def test_each_limit_counts_new_calls_that_were_answered(tmp_path: Path) -> None:
    server, log, limits = InProcess(), tmp_path / "calls.sqlite", {"tokens": 2 * TOKENS, "cost": 1.9 * COST}
    for most, texts in ((1, ["fail", "a"]), (2, ["fail", "a", "b"])):
        spent = await ask(server, log, Budget(calls=most, **limits), *texts)
    assert server.asked == ["fail", "a", "b"], "what a log answers and failed calls cost nothing"
    assert spent == {"calls": 2, "tokens": 2 * TOKENS, "cost": pytest.approx(2 * COST)}
    for name, limit in {"calls": 2, **limits}.items():
        with pytest.raises(BudgetError, match=rf"is spent: \S+ of \S+ {name} "):
            await ask(server, log, Budget.model_validate({name: limit}), "another")


async def test_two_cells_share_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_module, "CHECK_EVERY", 4)
    texts = [[f"{name} {number}" for number in range(99)] for name in "ab"]
    cells = [ask(InProcess(), tmp_path / f"{first}.sqlite", Budget(calls=60), first, *rest) for first, *rest in texts]
    assert [type(end) for end in await asyncio.gather(*cells, return_exceptions=True)] == [BudgetError] * 2
    # Each may be short of what the other has asked since the last reading of its log.
    assert 60 <= (await ask(InProcess(), tmp_path / "c.sqlite", Budget()))["calls"] <= 60 + 2 * 4

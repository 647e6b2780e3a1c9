"""``gmr check``: the sandbox, all problems of servers at once, their speed and shortcomings."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from aiohttp import web

from cli import servers
from harness.errors import UserError
from harness.runner import cell, layout
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.runner.run import Run
from tests.command import gmr
from tests.harness.llm.serving import Answer, completion, served_at
from tests.small_run import prepare_questions

POOL = ("llama-3.2-3B", "llama-3.1-8B")
PRESET = {"backbones": list(POOL), "methods": ["single"], "benchmarks": ["gsm_hard"]}
NAMES = {key: f"random/{key}" for key in POOL}


def said(body: dict[str, Any], **changes: Any) -> dict[str, Any]:
    size = sum(len(message["content"]) for message in body["messages"])
    usage = {"prompt_tokens": 1 + size // 4, "completion_tokens": 2}
    return completion(**{"text": "one, two", "model": body["model"], "usage": usage, **changes})


def chat(reply: Callable[[dict[str, Any]], dict[str, Any]] = said) -> Answer:
    """Answer with ``reply(body)``, with status 400 unless it is a completion."""

    async def answer(http: web.Request) -> web.Response:
        content = reply(await http.json())
        return web.json_response(content, status=200 if "choices" in content else 400)

    return answer


answering = chat()


def listing(*names: str, status: int = 200, **changes: Any) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def models(_: web.Request) -> web.Response:
        entries = [{"id": name, "object": "model", "created": 0, "owned_by": "vllm", **changes} for name in names]
        return web.json_response({"object": "list", "data": entries}, status=status)

    return models


@pytest.fixture
def preset(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("GMR_ENDPOINTS", str(folder / "endpoints.yaml"))
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)
    prepared = resolve("cpu_server", PRESET)
    prepare_questions(prepared.name)
    return prepared


def point(*entries: dict[str, Any]) -> None:
    """Put the entries of the backbones where the check reads them."""
    Path("endpoints.yaml").write_text(yaml.safe_dump(dict(zip(POOL, entries, strict=True))))


async def problems(preset: Run) -> list[str]:
    with pytest.raises(UserError) as caught:
        await servers.check(preset)
    first, *lines = str(caught.value).splitlines()
    number = len([line for line in lines if "->" not in line])
    assert first == f"{number} problem{'s'[: number > 1]} with the servers of preset cpu_server:"
    assert not layout.served(preset.name).exists()
    return [line.strip() for line in lines]


def refuse_systems(body: dict[str, Any]) -> dict[str, Any]:
    has_system = body["messages"][0]["role"] == "system"
    return {"error": {"message": "System role not supported"}} if has_system else said(body)


def want_another_name(body: dict[str, Any]) -> dict[str, Any]:
    reason = "'max_tokens' and 'seed' are not supported with this model; use 'max_completion_tokens'"
    return {"detail": reason} if "max_tokens" in body or "seed" in body else said(body)


def think(body: dict[str, Any], **message: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": "length"}
    return said(body, choices=[choice])


async def test_every_problem_is_named_at_once(preset: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-1234")
    async with served_at(models=listing("other/model")) as other, served_at(models=listing(status=401)) as locked:
        point({"url": other}, {"url": locked, "key_env": "MY_KEY"})
        lines = await problems(preset)
    dead = "http://127.0.0.1:9/v1"
    point({"url": dead}, {"url": dead.replace("v1", "v2")})
    both_dead = await problems(preset)
    assert (len(lines), len(both_dead)) == (4, 3)
    assert lines[0].startswith(f"{other} does not serve 'random/llama-3.2-3B' (it serves other/model)")
    assert lines[1].startswith(f"{locked} refuses the API key of llama-3.1-8B (")
    assert both_dead[0].startswith(f"endpoint {dead} of llama-3.2-3B does not answer")
    # What helps with both servers is said once.
    place = Path("endpoints.yaml").resolve()
    assert both_dead[2].startswith(f"-> start the server, correct {place}, or name another file")
    assert "sk-secret" not in "".join(lines)


async def take_time(http: web.Request) -> web.Response:
    await asyncio.sleep(0.05)
    return await answering(http)


OWN = {"model": "me/mine", "parameters_b": 2, "description": "A model of my own.", "max_tokens": 640}
WINDOW = {"max_model_len": 8192}
THINKS = r"thinks before it answers: of 2 tokens none was answer. A call has max_tokens 640 for both"
FEW = {"prompt_tokens": 4, "completion_tokens": 2}
NO_STREAM = {"error": {"message": "This model only supports stream mode."}}
STREAMS = UserError(r"only streams its replies, .*\n  -> use another server of the")
# Eight replies of two tokens in at least 0.05 s: 640 tokens of each take at least 16 s.
SLOW = r"writes 640 tokens in \d+ s with 8 requests at once, and an attempt ends after 15 s: lower max_in_flight"
NO_WINDOW = r"does not report its context length \(8192 in its entry\): start it with room for \d{4} "
SHORT = r"takes 1024 tokens, .* the longest questions of gsm_hard \(\d{4}\)\n  -> start it with --max-model-len \d{4} "
# What calls would fail at is known before the first, with what helps.
NO_SYSTEM = r"refuses a short .*\(.*System role .*\n  -> .*`omit: .*`extra_body: .* needs `system: merge` there"
OTHER_NAME = r"answers with a completion of the model 'my-model'.*\n  -> .*--served-model-name"


@pytest.mark.parametrize(
    ("chat", "entry", "server", "listed", "lack"),
    [
        (take_time, {}, {"timeout_s": 15, "max_in_flight": 8}, WINDOW, SLOW),
        (chat(partial(think, reasoning_content="The user wants")), {}, {}, WINDOW, THINKS),
        (chat(lambda body: said(body, text="")), {}, {}, WINDOW, r"replies without text .*stop, 2 tokens.*reasoning"),
        (chat(lambda body: said(body, usage=FEW)), {}, {}, WINDOW, r"counts 4 tokens for a prompt of 1\d{3} bytes"),
        (chat(lambda _: NO_STREAM), {}, {}, WINDOW, STREAMS),
        (chat(want_another_name), {}, {"omit": ["seed"], "max_completion_tokens": True}, WINDOW, None),
        # A template without a system role is asked as calls are.
        (chat(refuse_systems), {"system": "merge"}, {}, WINDOW, None),
        (chat(refuse_systems), {}, {}, WINDOW, UserError(NO_SYSTEM)),
        (chat(lambda body: said(body, model="my-model")), {}, {}, WINDOW, UserError(OTHER_NAME)),
        # The context is what llama.cpp says of it, else that of the entry.
        (answering, {}, {}, {"meta": {"n_ctx": 8192, "n_params": 7}}, None),
        (answering, {"context_length": 8192}, {}, {}, NO_WINDOW),
        (answering, {"context_length": 1024}, {}, {}, UserError(SHORT)),
    ],
)
@pytest.mark.usefixtures("preset")
async def test_what_a_server_lacks_is_told_or_refused(
    chat: Answer,
    entry: dict[str, Any],
    server: dict[str, Any],
    listed: dict[str, Any],
    lack: str | UserError | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(servers, "_LONGEST_WAIT_S", 0.0)
    pool = {"backbones": ["mine"], "large": None, "pool": {"mine": {**OWN, **entry}}, "weights": None}
    preset = resolve("cpu_server", {**PRESET, **pool})
    async with served_at(models=listing("me/mine", **listed), chat=chat) as url:
        Path("endpoints.yaml").write_text(yaml.safe_dump({"mine": {"url": url, "timeout_s": 1e6, **server}}))
        if isinstance(lack, UserError):
            assert re.match(f"{url} of mine {lack}", "\n  ".join(await problems(preset)))
            return
        await servers.check(preset)
    record = orjson.loads(layout.served(preset.name).read_bytes())["backbones"]["mine"]
    assert (record["at_once"] in (8, 16), record["write"] > 0 < record["read"]) == (True, True)
    assert [bool(re.match(lack or "$", text)) for text in record["lacks"]] == ([True] if lack else [])
    speed = rf"writes [\d.e+]+ and reads [\d.e+]+ tokens a second with {record['at_once']} requests at once"
    assert re.search(f"{url} of mine {speed}", caplog.text)


async def test_results_note_a_parameter_that_is_not_sent(preset: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # The questions need no program, and this machine need not be able to confine one.
    monkeypatch.setattr("harness.runner.resources.check_confinement", lambda *_, **__: None)
    async with served_at(chat=answering, models=listing(*NAMES.values())) as url:
        point({"url": url, "omit": ["seed"]}, {"url": url})
        made = await cell.run(plan(preset, Cell("single", "gsm_hard", "llama-3.2-3B", 0)))
    assert "llama-3.2-3B: seed not sent, since its server rejects it" in made["notes"]


@pytest.mark.parametrize("preset", [resolve("smoke"), resolve("cpu_server")], ids=lambda preset: preset.name)
def test_programs_of_simulated_models_alone_do_without_the_best_sandbox(
    preset: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.sandbox.pool.refusal", {"full": "unshare: no", "rlimit": ""}.get)
    found = gmr("check", "sandbox", "--preset", preset.name)
    assert found.stdout.splitlines() == ["sandbox full: does not work: unshare: no", "sandbox rlimit: works"]
    assert found.exit_code == int(preset.name == "cpu_server")
    with pytest.raises(UserError, match="unknown check 'sandbx'; did you mean 'sandbox'"):
        gmr("check", "sandbx")


def test_gold_that_its_benchmark_does_not_grade_as_right_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["check", "gold", "--preset", "smoke", "--set", "benchmarks=[gsm_hard]"]
    assert "gold answer right: 160 of 160" in gmr(*words).stdout
    monkeypatch.setattr("harness.benchmarks.validate.present", lambda *_: "nothing")
    found = gmr(*words)
    assert (found.exit_code, "gold answer right: 0 of 160; not for " in found.stdout) == (1, True)

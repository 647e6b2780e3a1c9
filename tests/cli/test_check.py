"""Before a run: ``gmr check`` of sandbox, servers and gold answers, and forecasts against runs and sums by hand."""

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from aiohttp import web

from cli import servers
from cli.forecast import TABLE, forecast, lines, measured
from harness.errors import UserError
from harness.files import ROOT
from harness.runner import cell, layout
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.runner.results import CALLS, TRAINING_TABLES
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


# Forecasts.

COT, GMR = Cell("cot", "gsm_hard", "qwen-2.5-14B", 0), Cell("gmr", "gsm_hard", "pool", 0)
RATES = pd.read_csv(TABLE, comment="#", index_col=["method", "phase"])
TOKENS = ["prompt_tokens", "completion_tokens"]


def test_the_table_is_that_of_a_simulated_run_and_its_roughness_that_of_a_recorded_one(
    finished: Path, tmp_path: Path
) -> None:
    with ZipFile(ROOT / "evidence/open_grid/open_grid.zip") as archive:
        archive.extractall(tmp_path)
    for folder, name, methods in (
        (finished, "smoke", {"single", "gmr", "masrouter", "puppeteer"}),
        (tmp_path, "open_grid", {"single"}),
    ):
        with contextlib.chdir(folder):
            # What a search asks, and who learns from each backbone's answer, is another number by pool and questions.
            ratios = (measured(name) / RATES).drop(index=["aflow", "knn_router"], errors="ignore").dropna()
        assert methods <= {*ratios.index.unique("method")}
        assert ratios["calls"].between(1 / 2, 2).all(), ratios
        # Replies of the preset smoke have a tenth of their length.
        assert name == "smoke" or ratios[TOKENS].apply(lambda column: column.between(1 / 4, 4)).all(axis=None), ratios
    assert set(resolve("paper").methods) <= {*RATES.index.unique("method")}


def test_it_needs_nothing_prepared_and_no_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    output = gmr("forecast", "--preset", "paper", "main_table", "--speed", "8000", "1000").output
    assert "165 cells of preset paper, 0 estimated from finished cells" in output
    calls = sum(n for n in (416, 1056, 500, 129, 880)) * 5
    assert re.search(rf"^single +{calls:,} ", output, re.MULTILINE)
    assert "Hours at full load: llama-3.2-3B " in output
    assert [*tmp_path.iterdir()] == []


def test_limits_by_benchmark_answers_to_training_questions_and_second_askings_are_counted() -> None:
    preset = resolve("open_grid")
    cells = [*preset.cells(), *preset.asked_again()]
    asked = forecast(preset, cells, RATES)["calls"].sum()
    assert asked == 2 * (3 * (100 + 200) + (100 + 500) + 2 * (32 + 129))


def finish(cell: Cell, test: Sequence[str], train: Sequence[str] = (), passes: int = 1) -> None:
    """Write what a finished cell leaves: its calls by key, of 100 + 10 tokens each, about 2 and 4 questions."""
    folder = layout.cell("embedded", cell)
    folder.mkdir(parents=True)
    tokens = {"prompt_tokens": 100, "completion_tokens": 10}
    for file, schema, keys in (("calls", CALLS, test), ("training_calls", TRAINING_TABLES["training_calls"], train)):
        rows = [{"item_id": "a", "key": key, "epoch": passes, **tokens} for key in keys]
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{file}.parquet")
    (folder / "run.json").write_text(json.dumps({"data": {"n_test": 4, "n_train": 2}}))


def test_distinct_calls_of_finished_cells_are_scaled_to_questions_and_passes(folder: Path) -> None:
    finish(COT, ["a", "b", "b", "c", "d", "e", "f"])
    finish(GMR, ["a"] * 8, ["a", "b", "c", "c", *"defghijkl"], passes=3)
    preset = resolve("embedded", {"benchmarks": ["gsm_hard"], "limit": {"test": 20, "train": 10}})
    rates = measured("embedded").combine_first(RATES)
    [cot] = forecast(preset, [COT], rates).to_dict("records")
    assert [cot[name] for name in ("method", "backbone", "calls", *TOKENS)] == ["cot", "qwen-2.5-14B", 30, 3000, 300]
    # A router's calls are divided evenly; GSM-Hard has five passes, unless the run has fewer.
    for limit, passes in (({}, 5), ({"epochs": 2}, 2)):
        shorter = resolve("embedded", {"limit": {"test": 20, "train": 10, **limit}})
        amounts = forecast(shorter, [GMR], rates)
        assert amounts["calls"].tolist() == [pytest.approx((20 / 4 + 10 * passes * 12 / 2 / 3) / 5)] * 5
    # A variant is forecast as the first method of its module.
    assert forecast(preset, [replace(GMR, method="gmr_dot")], rates)["calls"].sum() > 0


def test_hours_are_by_the_speeds_that_the_check_measured_and_costs_by_the_prices_of_the_pool(folder: Path) -> None:
    finish(COT, ["a", "b", "c", "d"])
    about = {"model": "me/mine", "parameters_b": 1, "description": "My own."}
    keys = {"endpoints": "served", "benchmarks": ["gsm_hard"], "limit": {"test": 36}, "large": None}

    def said(**price: Any) -> str:
        preset = resolve("embedded", {**keys, "backbones": ["mine"], "pool": {"mine": {**about, **price}}})
        return "\n".join(lines(preset, [replace(COT, backbone="mine")]))

    # 36 calls of 100 + 10 tokens.
    priced = said(price={"input": 2.0, "output": 30.0})
    assert "Cost at the prices of the pool: 0.018.\nNo hours: state --speed, or let `gmr check" in priced
    assert "Cost at" not in said()
    path = layout.served("embedded")
    speed = {"at_once": 4, "write": 1.0, "read": 10.0}
    path.write_text(json.dumps({"weights": None, "backbones": {"mine": speed}}))
    assert said().endswith("Hours at full load: mine 0.2; 0.2 if all share one server.")

"""A server whose replies depend on its load is found out, one whose replies do not is not, and a wrong one is told."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from harness.benchmarks.items import Status, Verdict
from harness.benchmarks.prepare import prepare
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import load
from harness.llm.budget import BudgetError
from harness.llm.endpoints import Endpoint
from harness.llm.request import Reply
from harness.llm.served import Served
from harness.runner import config, layout
from tests.harness.llm.serving import completion, served_at
from workflow.flips import Answer, Passes, _turns, measure
from workflow.flips_text import Flips, flips, to_csv, to_markdown, write

KEYS = ("llama-3.2-3B", "qwen-2.5-14B")
REQUESTS = 12

Say = Callable[[str, int, int], str]


def served_preset(*backbones: str) -> config.Preset:
    changes = {"benchmarks": ["gsm_hard"], "endpoints": "served", "backbones": list(backbones), "limit": {"test": 20}}
    return config.preset("smoke", changes)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    prepare("gsm_hard", "embedded", "official", layout.items("smoke", "gsm_hard"), layout.manifest("smoke", "gsm_hard"))
    return tmp_path


@contextlib.asynccontextmanager
async def serving(monkeypatch: pytest.MonkeyPatch, folder: Path, say: Say, *keys: str) -> AsyncIterator[list[int]]:
    """A server of some backbones that says what it is told of a prompt, its load and how often it was asked it.

    Gives the loads at which it was asked.
    """
    declared = load(ROOT / "config" / "backbones.yaml")
    names = [declared[key].model for key in keys]
    asked: dict[str, int] = {}
    loads: list[int] = []
    now = 0

    async def chat(http: web.Request) -> web.Response:
        nonlocal now
        body = await http.json()
        assert body["temperature"] == 0.0
        prompt = body["model"] + body["messages"][-1]["content"]
        now += 1
        await asyncio.sleep(0.02)
        loads.append(now)
        text = say(prompt, now, asked.setdefault(prompt, 0))
        asked[prompt] += 1
        now -= 1
        return web.json_response(completion(text, body["model"]))

    async def models(http: web.Request) -> web.Response:
        entries = [
            {"id": name, "object": "model", "created": 0, "owned_by": "made-up", "max_model_len": 99} for name in names
        ]
        return web.json_response({"object": "list", "data": entries})

    async with served_at(chat=chat, models=models) as url:
        entries = folder / "endpoints.yaml"
        entries.write_text(yaml.safe_dump({key: {"url": url, "max_in_flight": 64} for key in KEYS}))
        monkeypatch.setattr("harness.llm.endpoints.declared_in", lambda: entries)
        monkeypatch.setattr("harness.runner.setup.check_confinement", lambda *_: None)
        monkeypatch.setattr("workflow.flips.check_confinement", lambda *_: None)
        yield loads


def of(prompt: str, *more: object) -> int:
    return hashlib.sha256(f"{prompt} {more}".encode()).digest()[0]


async def test_a_steady_server_flips_nothing(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    async with serving(monkeypatch, place, lambda prompt, load, times: f"It is {of(prompt)}", *KEYS) as loads:
        found = await measure(served_preset(*KEYS), REQUESTS)
    assert [one.backbone for one in found] == list(KEYS)
    for one in found:
        assert flips(one.alone, one.again) == flips(one.alone, one.loaded) == Flips(REQUESTS)
    # Both backbones are at one server, so that two passes of each met no company at all.
    assert loads[: 2 * REQUESTS] == [1] * (2 * REQUESTS)
    assert 1 < max(loads) <= REQUESTS
    assert len(loads) == len(KEYS) * 3 * REQUESTS


async def test_what_depends_on_the_load_is_found_out(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    def say(prompt: str, load: int, times: int) -> str:
        return f"It is {of(prompt)}" if load == 1 or of(prompt) % 2 else f"It is {of(prompt)}, or so"

    async with serving(monkeypatch, place, say, KEYS[0]):
        (found,) = await measure(served_preset(KEYS[0]), REQUESTS)
    assert flips(found.alone, found.again) == Flips(REQUESTS)
    loaded = flips(found.alone, found.loaded)
    assert 0 < loaded.replies < REQUESTS
    assert loaded.verdicts == 0
    assert sum("or so" in one.reply.text for one in found.loaded) == loaded.replies


async def test_what_differs_by_itself_is_found_out_and_graded(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    golds = golds_by_question()

    def say(prompt: str, load: int, times: int) -> str:
        gold = next(gold for question, gold in golds.items() if question in prompt)
        return f"The answer is {gold}" if times == 0 else "The answer is 0.123"

    async with serving(monkeypatch, place, say, KEYS[0]):
        (found,) = await measure(served_preset(KEYS[0]), 5)
    assert flips(found.alone, found.again) == Flips(5, 0, 5, 5)
    assert flips(found.again, found.loaded) == Flips(5)


def golds_by_question() -> dict[str, str]:
    from harness.runner.config import Cell
    from harness.runner.plan import plan

    items = plan(served_preset(KEYS[0]), Cell("single", "gsm_hard", KEYS[0], 0)).test
    return {item.question: item.gold for item in items}


async def test_a_preset_with_fewer_questions_is_asked_all_of_them(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    async with serving(monkeypatch, place, lambda *_: "4", KEYS[0]):
        (found,) = await measure(served_preset(KEYS[0]), 1000)
    assert len(found.alone) == 20


async def test_a_wrong_endpoint_is_one_line_before_any_call(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    async with serving(monkeypatch, place, lambda *_: "4", KEYS[0]) as loads:
        with pytest.raises(UserError, match=r"does not serve 'Qwen/Qwen2\.5-14B-Instruct'"):
            await measure(served_preset(*KEYS), REQUESTS)
    assert loads == []
    with pytest.raises(UserError, match="does not answer"):
        await measure(served_preset(*KEYS), REQUESTS)


async def test_a_replay_asks_nobody(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    async with serving(monkeypatch, place, lambda *_: "4", KEYS[0]) as loads:
        with pytest.raises(UserError, match="a recorded run asks no server"):
            await measure(served_preset(KEYS[0]).model_copy(update={"recorded": True}), REQUESTS)
    assert loads == []


async def test_its_calls_are_paid_from_the_budget_of_the_run(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    preset = served_preset(KEYS[0]).model_copy(update={"budget": config.Budget(calls=7)})
    async with serving(monkeypatch, place, lambda *_: "4", KEYS[0]) as loads:
        with pytest.raises(BudgetError, match="7 of 7 calls"):
            await measure(preset, REQUESTS)
    assert len(loads) == 7


def test_backbones_that_share_a_server_take_turns() -> None:
    at = {key: Endpoint(tuple(urls)) for key, urls in {"a": "1", "b": "23", "c": "4", "d": "31", "e": "5"}.items()}
    assert sorted(map(sorted, _turns(at))) == [["a", "b", "d"], ["c"], ["e"]]


def answer(text: str, correct: bool, error: str | None = None) -> Answer:
    status = Status.GRADED if error is None else Status.CALL_FAILED
    return Answer(Reply(text, 1, 1, "stop", "m", error), Verdict(correct, text, status))


def passes(owner: str) -> Passes:
    alone = (answer("a", True), answer("b", True), answer("", False, "refused"), answer("d", False))
    again = (answer("a", True), answer("c", False), answer("c", True), answer("d", False))
    return Passes("m", Served("some/model", owner, {"max_model_len": 99}), alone, again, alone)


def test_failed_calls_are_told_and_not_compared() -> None:
    found = passes("vllm")
    assert flips(found.alone, found.again) == Flips(requests=3, failed=1, replies=1, verdicts=1)


def test_the_report_has_rates_intervals_and_what_served(place: Path) -> None:
    said = to_markdown([passes("vllm")])
    assert "SIMULATED" not in said
    # Wilson's interval of 1 in 3, by hand: (1/3 + z²/6 ± z·sqrt((2/9)/3 + z²/36)) / (1 + z²/3), z = 1.95996.
    assert "| m | one at a time, twice | 3 | 1 | 1 (33.3%) | 6.1% to 79.2% | 1 (33.3%) | 6.1% to 79.2% |" in said
    assert "| all | one at a time, all at once | 3 | 1 | 0 (0.0%) | 0.0% to 56.1% |" in said
    assert "`some/model` (max_model_len 99, served by vllm)" in said
    assert "weights" not in said
    assert "weights random (noise)" in to_markdown([dataclasses.replace(passes("vllm"), weights="random (noise)")])
    assert to_csv([passes("vllm")]).splitlines()[2] == 'm,"one at a time, twice",3,1,1,1,false'
    assert [path.read_text() for path in write([passes("vllm")], place / "reports")] == [said, to_csv([passes("vllm")])]


def test_simulated_backbones_are_called_so_in_both_files() -> None:
    assert "SIMULATED BACKBONES" in to_markdown([passes("simulated")]).splitlines()[2]
    assert to_csv([passes("simulated")]).startswith("# SIMULATED BACKBONES")
    assert to_csv([passes("simulated")]).splitlines()[-1].endswith(",true")

"""One budget for several processes: never exceeded in calls, spent to the last, counted through kills, never twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from harness.concurrency import gather
from harness.files import ROOT
from harness.llm.attempts import AttemptLog
from harness.llm.backbones import Backbone
from harness.llm.budget import BudgetError, Prices, Spent, refusal, spent_in, spent_up
from harness.llm.call_log import CallLog, logs_below
from harness.llm.client import ChatClient
from harness.llm.endpoints import Endpoint, simulated
from harness.llm.request import Reply
from harness.llm.spending import Spending
from harness.llm.spending_table import SpendingTable, name_of
from harness.runner.config import Budget
from tests.harness.llm.serving import ANSWER, ERROR, MODEL, Scripted, completion, request, served_at

WORKER = "tests.harness.llm.spending_worker"
M = Backbone("m", MODEL, None, 8, 4096, "a model")
PRICES = Prices([M])
# Of the reply that servers of these tests give.
TOKENS = ANSWER.prompt_tokens + ANSWER.completion_tokens
COST = M.cost(ANSWER.prompt_tokens, ANSWER.completion_tokens)

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts workers in the folder of the test; each waits for a line before it asks."""
    started: list[subprocess.Popen[str]] = []

    def start(name: str, calls: int, wanted: int, *hang: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", WORKER, str(tmp_path), name, *map(str, (calls, wanted, *hang))],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def let_go(*processes: subprocess.Popen[str]) -> None:
    """Let workers ask as soon as all are ready."""
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()


def ended(process: subprocess.Popen[str]) -> tuple[int, int, str]:
    """Calls a worker asked, calls in its log, and what it was told."""
    asked, kept, said = process.communicate(timeout=60)[0].splitlines()[-1].split(" ", 2)
    return int(asked), int(kept), said


def logged(folder: Path) -> int:
    return sum(spent_in(log, PRICES).calls for log in folder.glob("cells/*/calls.sqlite"))


def test_processes_together_ask_exactly_what_they_may(start: Start, tmp_path: Path) -> None:
    workers = [start(name, 150, 200) for name in "abc"]
    let_go(*workers)
    found = [ended(worker) for worker in workers]
    assert sum(asked for asked, _, _ in found) == sum(kept for _, kept, _ in found) == logged(tmp_path) == 150
    assert all("150 of 150 calls" in said for _, _, said in found)


def test_what_a_killed_process_had_logged_counts_and_what_it_had_not_does_not(start: Start, tmp_path: Path) -> None:
    killed = start("a", 100, 200, 30)
    let_go(killed)
    assert killed.stdout
    assert killed.stdout.readline() == "hanging\n"
    killed.kill()
    killed.wait()
    kept = logged(tmp_path)
    assert 0 < kept <= 30
    another = start("b", 100, 200)
    let_go(another)
    assert ended(another)[0] == 100 - kept
    assert logged(tmp_path) == 100


@pytest.fixture
async def attempts(tmp_path: Path) -> AttemptLog:
    return AttemptLog(tmp_path / "attempts.jsonl")


async def ask(folder: Path, budget: Budget, server: Scripted, attempts: AttemptLog, *texts: str) -> None:
    path = folder / "calls.sqlite"
    others = [log for log in logs_below(folder) if log != path]
    with CallLog(path) as log:
        spending = Spending("p", budget, SpendingTable(folder / "spending"), path, others, PRICES)
        client = ChatClient({"m": simulated()}, log, attempts, in_process=server, spending=spending)
        async with client:
            await asyncio.gather(*(client.complete("m", request(text)) for text in texts))


async def test_a_raised_budget_goes_on_and_pays_for_nothing_again(tmp_path: Path, attempts: AttemptLog) -> None:
    server, texts = Scripted(), [str(number) for number in range(60)]
    for most in (25, 25, 59):
        with pytest.raises(BudgetError, match=f"{most} of {most} calls"):
            await ask(tmp_path, Budget(calls=most), server, attempts, *texts)
        assert len(server.asked) == spent_in(tmp_path / "calls.sqlite", PRICES).calls == most
    await ask(tmp_path, Budget(calls=60), server, attempts, *texts)
    assert sorted(body["messages"][0]["content"] for body in server.asked) == sorted(texts)


async def test_calls_from_before_there_was_a_budget_count(tmp_path: Path, attempts: AttemptLog) -> None:
    async def without(*texts: str) -> None:
        with CallLog(tmp_path / "before" / "calls.sqlite") as log:
            for text in texts:
                await log.append(request(text), ANSWER)

    server = Scripted()
    for most, before in ((3, ["a", "b"]), (6, ["c", "d"])):
        await without(*before)
        with pytest.raises(BudgetError, match=f"{most} of {most} calls"):
            await ask(tmp_path, Budget(calls=most), server, attempts, "e", "f", "g")
    assert len(server.asked) == 2


async def test_tokens_stop_a_run_with_no_more_than_was_in_flight(tmp_path: Path, attempts: AttemptLog) -> None:
    server, most = Scripted(), Budget(tokens=4 * TOKENS)
    for text in "abcd":
        await ask(tmp_path, most, server, attempts, text)
    with pytest.raises(BudgetError, match=f"{4 * TOKENS} of {4 * TOKENS} tokens"):
        await ask(tmp_path, most, server, attempts, "e")
    assert len(server.asked) == 4


async def test_all_that_is_in_flight_is_recorded_before_a_run_stops(tmp_path: Path, attempts: AttemptLog) -> None:
    async def chat(http: web.Request) -> web.Response:
        await asyncio.sleep(0.2)
        return web.json_response(completion())

    path = tmp_path / "calls.sqlite"
    async with served_at(chat=chat) as url:
        with CallLog(path) as log:
            spending = Spending("p", Budget(calls=5), SpendingTable(tmp_path / "spending"), path, [], PRICES)
            async with ChatClient({"m": Endpoint((url,))}, log, attempts, spending=spending) as client:
                with pytest.raises(BudgetError):
                    await gather(client.complete("m", request(str(number))) for number in range(9))
            assert len(log) == 5


async def test_the_log_and_failed_calls_cost_nothing(tmp_path: Path, attempts: AttemptLog) -> None:
    await ask(tmp_path, Budget(calls=1), Scripted((400, ERROR)), attempts, "refused")
    await ask(tmp_path, Budget(calls=1), Scripted(), attempts, "refused", "answered")
    server = Scripted()
    await ask(tmp_path, Budget(calls=1), server, attempts, "refused", "answered")
    assert server.asked == []
    with pytest.raises(BudgetError, match="1 of 1 calls"):
        await ask(tmp_path, Budget(calls=1), server, attempts, "another")
    assert server.asked == []


async def test_cost_is_in_the_unit_of_the_tables(tmp_path: Path, attempts: AttemptLog) -> None:
    await ask(tmp_path, Budget(cost=3 * COST), Scripted(), attempts, "a", "b")
    assert spent_in(tmp_path / "calls.sqlite", PRICES) == Spent(2, 2 * TOKENS, pytest.approx(2 * COST))
    await ask(tmp_path, Budget(cost=3 * COST), Scripted(), attempts, "c")
    with pytest.raises(BudgetError, match=r"of \S+ cost"):
        await ask(tmp_path, Budget(cost=2.9 * COST), Scripted(), attempts, "d")


async def test_calls_that_another_log_answered_are_counted_where_they_were_asked(tmp_path: Path) -> None:
    with CallLog(tmp_path / "calls.sqlite") as log:
        await log.append(request("both"), ANSWER, asked=False)
        await log.append(request("own"), ANSWER)
    assert spent_in(log.path, PRICES).calls == 1


def test_what_is_spent_is_one_line() -> None:
    assert spent_up(Budget(calls=5, tokens=9), Spent(4, 8, 1.0)) is None
    assert spent_up(Budget(), Spent(4, 8, 1.0)) is None
    assert spent_up(Budget(calls=5, tokens=9), Spent(4, 9, 1.0)) == "9 of 9 tokens"
    said = str(refusal("paper", "5 of 5 calls", Spent(5, 1234, 0.5)))
    assert "\n" not in said
    assert "budget of preset paper is spent: 5 of 5 calls (in all 5 calls, 1,234 tokens, cost 0.5)" in said
    assert "--config budget='{...}'" in said


def test_an_unknown_model_counts_without_a_price() -> None:
    assert PRICES.of("other", Reply("x", 3, 4, "stop", "other")) == Spent(1, 7, 0.0)


def test_logs_of_different_folders_have_different_rows(tmp_path: Path) -> None:
    assert name_of(tmp_path / "a" / "calls.sqlite") != name_of(tmp_path / "b" / "calls.sqlite")

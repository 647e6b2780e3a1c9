"""Budgets: the calls that count, when a cell stops, and that calls in flight are kept."""

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.concurrency import gather
from harness.llm import budget as budget_module
from harness.llm.budget import Budget, BudgetError, Spending
from harness.llm.call_log import AttemptLog, CallLog
from harness.llm.client import ChatClient
from harness.llm.request import Reply, Request
from harness.scripted import backbone
from tests.harness.llm.serving import ANSWER, MODEL, request

M = backbone("m", 8, MODEL)
TOKENS = ANSWER.prompt_tokens + ANSWER.completion_tokens
COST = M.cost(ANSWER.prompt_tokens, ANSWER.completion_tokens)


class Slow:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, request: Request) -> Reply:
        self.asked.append(request.messages[0].content)
        await asyncio.sleep(0.01)
        return Reply.failed(MODEL, "refused") if self.asked[-1] == "fail" else ANSWER

    async def close(self) -> None:
        pass


async def run_cell(budget: Budget, server: Slow, log: Path, logs: Callable[[], Any], work: Any) -> None:
    with CallLog(log) as opened, AttemptLog(log.with_suffix(".jsonl")) as attempts:
        spending = Spending("p", budget, logs, [M])
        async with ChatClient({}, opened, attempts, spending=spending) as client:
            client._backbones = {"m": server}  # type: ignore[dict-item]
            await work(client)


@pytest.fixture
def server() -> Slow:
    return Slow()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls.sqlite"


def ask(server: Slow, log: Path, budget: Budget, *texts: str) -> None:
    async def work(client: ChatClient) -> None:
        await gather(client.complete("m", request(text)) for text in texts)

    asyncio.run(run_cell(budget, server, log, lambda: [log], work))


def spent_in(*logs: Path) -> Counter[str]:
    return Spending("p", Budget(), lambda: logs, [M]).spent


def test_what_a_log_answers_and_failed_calls_cost_nothing(server: Slow, log: Path) -> None:
    for _ in range(2):
        ask(server, log, Budget(calls=1), "fail", "answered")
    assert server.asked == ["fail", "answered"]
    with pytest.raises(BudgetError, match="1 of 1 calls"):
        ask(server, log, Budget(calls=1), "another")


def test_tokens_and_cost_are_those_of_the_tables(server: Slow, log: Path) -> None:
    for text in "ab":
        ask(server, log, Budget(tokens=2 * TOKENS, cost=1.9 * COST), text)
    assert spent_in(log) == {"calls": 2, "tokens": 2 * TOKENS, "cost": pytest.approx(2 * COST)}
    with pytest.raises(BudgetError, match=f"{2 * TOKENS} of {2 * TOKENS} tokens"):
        ask(server, log, Budget(tokens=2 * TOKENS), "c")
    with pytest.raises(BudgetError, match=r"of \S+ cost"):
        ask(server, log, Budget(cost=1.9 * COST), "c")


def ask_until_it_is_spent(folder: Path, name: str, calls: int) -> None:
    """Ask one call after another in a process of its own, for a cell whose preset has a budget of so many."""
    budget_module.CHECK_EVERY = 4

    async def work(client: ChatClient) -> None:
        for number in range(10 * calls):
            await client.complete("m", request(f"{name} {number}"))

    log = folder / f"{name}.sqlite"
    with pytest.raises(BudgetError):
        asyncio.run(run_cell(Budget(calls=calls), Slow(), log, lambda: sorted(folder.glob("*.sqlite")), work))


def test_two_processes_share_a_budget(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn").Process
    both = [spawn(target=ask_until_it_is_spent, args=(tmp_path, name, 60)) for name in ("one", "other")]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    # Each may be short of what the other has asked since the last reading of its log.
    assert 60 <= spent_in(*tmp_path.glob("*.sqlite"))["calls"] <= 60 + 2 * 4

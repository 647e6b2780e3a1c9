"""A budget: what counts, when a cell stops, and that what is in flight is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from harness.concurrency import gather
from harness.llm import budget as budget_module
from harness.llm.budget import Budget, BudgetError, Spending, Spent
from harness.llm.call_log import AttemptLog, CallLog
from harness.llm.client import ChatClient
from harness.llm.request import Reply, Request, Served
from tests.harness.llm.serving import ANSWER, MODEL, request
from tests.scripted import backbone

M = backbone("m", 8, MODEL)
TOKENS = ANSWER.prompt_tokens + ANSWER.completion_tokens
COST = M.cost(ANSWER.prompt_tokens, ANSWER.completion_tokens)


class Slow:
    """Backbones that take a while; those asked to fail do."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def served(self, model: str) -> Served:
        return Served(model, None)

    async def ask(self, request: Request) -> Reply:
        self.asked.append(request.messages[0].content)
        await asyncio.sleep(0.01)
        return Reply.failed(MODEL, "refused") if self.asked[-1] == "fail" else ANSWER

    async def close(self) -> None:
        pass


@pytest.fixture
def server() -> Slow:
    return Slow()


Ask = Callable[..., None]


def spent_in(path: Path) -> Spent:
    return Spending("p", Budget(), lambda: [path], [M]).spent


@pytest.fixture
def ask(server: Slow, tmp_path: Path) -> Ask:
    """Asks all at once within a budget."""

    async def asking(budget: Budget, texts: Iterable[str]) -> None:
        with CallLog(tmp_path / "calls.sqlite") as log, AttemptLog(tmp_path / "attempts.jsonl") as attempts:
            spending = Spending("p", budget, lambda: [log.path], [M], log.path)
            async with ChatClient({}, log, attempts, spending=spending) as client:
                client._backbones = {"m": server}
                await gather(client.complete("m", request(text)) for text in texts)

    def ask(budget: Budget, *texts: str) -> None:
        asyncio.run(asking(budget, texts))

    return ask


def test_calls_are_never_exceeded_and_what_is_in_flight_is_recorded(ask: Ask, server: Slow, tmp_path: Path) -> None:
    texts = [str(number) for number in range(60)]
    for most in (25, 25, 59):
        with pytest.raises(BudgetError, match=f"budget of preset p is spent: {most} of {most} calls .in all {most}"):
            ask(Budget(calls=most), *texts)
        assert len(server.asked) == spent_in(tmp_path / "calls.sqlite").calls == most
    ask(Budget(calls=60), *texts)
    assert sorted(server.asked) == sorted(texts)


def test_what_a_log_answers_and_failed_calls_cost_nothing(ask: Ask, server: Slow) -> None:
    for _ in range(2):
        ask(Budget(calls=1), "fail", "answered")
    assert server.asked == ["fail", "answered"]
    with pytest.raises(BudgetError, match="1 of 1 calls"):
        ask(Budget(calls=1), "another")


def test_tokens_and_cost_are_those_of_the_tables(ask: Ask, tmp_path: Path) -> None:
    for text in "ab":
        ask(Budget(tokens=2 * TOKENS, cost=1.9 * COST), text)
    assert spent_in(tmp_path / "calls.sqlite") == Spent(2, 2 * TOKENS, pytest.approx(2 * COST))
    with pytest.raises(BudgetError, match=f"{2 * TOKENS} of {2 * TOKENS} tokens"):
        ask(Budget(tokens=2 * TOKENS), "c")
    with pytest.raises(BudgetError, match=r"of \S+ cost"):
        ask(Budget(cost=1.9 * COST), "c")


def test_what_other_cells_ask_meanwhile_is_looked_up_now_and_then(
    server: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_module, "CHECK_EVERY", 4)
    others: list[Path] = []
    threads: list[threading.Thread] = []

    async def other_cell() -> None:
        with CallLog(tmp_path / "other.sqlite") as log:
            await gather(log.append(request(f"other {number}"), ANSWER) for number in range(90))
        others.append(log.path)

    def logs() -> list[Path]:
        """Adding up takes long; the event loop has other things to do."""
        threads.append(threading.current_thread())
        return [tmp_path / "calls.sqlite", *others]

    async def asking() -> None:
        with CallLog(tmp_path / "calls.sqlite") as log, AttemptLog(tmp_path / "attempts.jsonl") as attempts:
            spending = Spending("p", Budget(calls=90), logs, [M], log.path)
            threads.clear()
            async with ChatClient({}, log, attempts, spending=spending) as client:
                client._backbones = {"m": server}
                await other_cell()
                for number in range(9):
                    await client.complete("m", request(str(number)))

    with pytest.raises(BudgetError, match="94 of 90 calls"):
        asyncio.run(asking())
    assert len(server.asked) == 4
    assert threads
    assert threading.main_thread() not in threads


def test_replies_that_can_be_no_answer_count_here_and_in_every_other_process(tmp_path: Path) -> None:
    async def asking() -> None:
        with CallLog(tmp_path / "calls.sqlite") as log, AttemptLog(tmp_path / "attempts.jsonl") as attempts:
            spending = Spending("p", Budget(calls=2), lambda: [log.path], [M], log.path)
            async with ChatClient({}, log, attempts, spending=spending) as client:
                for _ in range(2):
                    await client._charge(MODEL, 7, 2)
                await client.complete("m", request("one more"))

    with pytest.raises(BudgetError, match="2 of 2 calls"):
        asyncio.run(asking())
    assert spent_in(tmp_path / "calls.sqlite") == Spent(2, 18, pytest.approx(2 * COST))


@pytest.mark.parametrize("kept", [True, False])
def test_what_this_process_asked_counts_once_whoever_is_looked_up(
    kept: bool, ask: Ask, server: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also calls that are committed together, and those of a timing, whose log is not among the others."""
    monkeypatch.setattr(budget_module, "CHECK_EVERY", 7)
    ask(Budget(), "before")

    async def asking() -> None:
        path = tmp_path / ("calls.sqlite" if kept else "passing.sqlite")
        with CallLog(path) as log, AttemptLog(tmp_path / "attempts.jsonl") as attempts:
            own = log.path if kept else None
            spending = Spending("p", Budget(calls=60), lambda: [tmp_path / "calls.sqlite"], [M], own)
            async with ChatClient({}, log, attempts, spending=spending) as client:
                client._backbones = {"m": server}
                await gather(client.complete("m", request(str(number))) for number in range(80))

    with pytest.raises(BudgetError, match="60 of 60 calls"):
        asyncio.run(asking())
    assert len(server.asked) == 60

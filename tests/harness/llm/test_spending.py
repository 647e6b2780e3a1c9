"""A budget: what counts, when a cell stops, and that what is in flight is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.concurrency import gather
from harness.llm import budget as budget_module
from harness.llm.attempts import AttemptLog
from harness.llm.budget import Budget, BudgetError, Prices, Spending, Spent, spent_in
from harness.llm.call_log import CallLog
from harness.llm.client import ChatClient
from harness.llm.request import Reply, Request
from harness.llm.served import Served
from tests.harness.llm.serving import ANSWER, MODEL, request
from tests.scripted import backbone

M = backbone("m", 8, MODEL)
PRICES = Prices([M])
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


@pytest.fixture
def ask(server: Slow, tmp_path: Path) -> Ask:
    """Asks all at once within a budget, of which some has been spent elsewhere."""

    async def asking(budget: Budget, texts: tuple[str, ...], elsewhere: Callable[[], Spent]) -> None:
        with CallLog(tmp_path / "calls.sqlite") as log:
            own = spent_in([log.path], PRICES)
            spending = Spending("p", budget, lambda: own.plus(elsewhere()), PRICES)
            client = ChatClient({}, log, AttemptLog(tmp_path / "attempts.jsonl"), spending=spending)
            client._asked = {"m": server}
            async with client:
                await gather(client.complete("m", request(text)) for text in texts)

    def ask(budget: Budget, *texts: str, elsewhere: Callable[[], Spent] = Spent) -> None:
        asyncio.run(asking(budget, texts, elsewhere))

    return ask


def test_calls_are_never_exceeded_and_what_is_in_flight_is_recorded(ask: Ask, server: Slow, tmp_path: Path) -> None:
    texts = [str(number) for number in range(60)]
    for most in (25, 25, 59):
        with pytest.raises(
            BudgetError, match=f"budget of preset p is spent: {most} of {most} calls .in all {most}"
        ) as told:
            ask(Budget(calls=most), *texts)
        assert "\n" not in str(told.value)
        assert len(server.asked) == spent_in([tmp_path / "calls.sqlite"], PRICES).calls == most
    ask(Budget(calls=60), *texts)
    assert sorted(server.asked) == sorted(texts)


def test_the_log_and_failed_calls_cost_nothing(ask: Ask, server: Slow) -> None:
    ask(Budget(calls=1), "fail", "answered")
    ask(Budget(calls=1), "fail", "answered")
    assert server.asked == ["fail", "answered"]
    with pytest.raises(BudgetError, match="1 of 1 calls"):
        ask(Budget(calls=1), "another")


def test_tokens_and_cost_are_those_of_the_tables(ask: Ask, tmp_path: Path) -> None:
    for text in "ab":
        ask(Budget(tokens=2 * TOKENS, cost=1.9 * COST), text)
    assert spent_in([tmp_path / "calls.sqlite"], PRICES) == Spent(2, 2 * TOKENS, pytest.approx(2 * COST))
    with pytest.raises(BudgetError, match=f"{2 * TOKENS} of {2 * TOKENS} tokens"):
        ask(Budget(tokens=2 * TOKENS), "c")
    with pytest.raises(BudgetError, match=r"of \S+ cost"):
        ask(Budget(cost=1.9 * COST), "c")
    assert PRICES.of("other", ANSWER) == Spent(1, TOKENS, 0.0)


async def test_what_other_cells_ask_meanwhile_is_looked_up_now_and_then(
    server: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_module, "CHECK_EVERY", 4)
    sums = iter([Spent(), Spent(1004)])
    spending = Spending("p", Budget(calls=1000), lambda: next(sums), PRICES)
    for _ in range(4):
        await spending.pay(request(), lambda: server.ask(request()))
    with pytest.raises(BudgetError, match="1,004 of 1,000 calls"):
        await spending.pay(request(), lambda: server.ask(request()))
    assert len(server.asked) == 4


async def test_calls_that_a_shared_log_answered_are_counted_where_they_were_asked(tmp_path: Path) -> None:
    with CallLog(tmp_path / "calls.sqlite") as log:
        await log.append(request("both"), ANSWER, asked=False)
        await log.append(request("own"), ANSWER)
    assert spent_in([log.path], PRICES).calls == 1

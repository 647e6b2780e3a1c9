"""Budgets: the calls that count, and when a cell stops."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

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
    for texts in (("fail", "a"), ("fail", "a", "b")):
        spent = await ask(server, log, Budget(calls=2, **limits), *texts)
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

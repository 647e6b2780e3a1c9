"""Lines of progress: calls and tokens while no question or update has ended, and a time left only when it is known."""

import asyncio
import re
from pathlib import Path

import pytest

from harness.agents.runtime import Context
from harness.benchmarks.items import Item
from harness.llm.request import Message
from harness.runner.evaluation import evaluate, progress
from tests.fixtures import Client, questions, runtime, training
from tests.harness.training.test_loop import Counter

ITEMS = questions(2)
SLOW = {"tokens": (100, 1000), "late": lambda number: 20}


@pytest.fixture(autouse=True)
def every_turn(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Log a line in every turn of the event loop."""
    monkeypatch.setattr("harness.runner.evaluation.INTERVAL_S", 0.0)
    caplog.set_level("INFO", "harness.runner.evaluation")


class Chain:
    """Three calls, one after another."""

    async def solve(self, item: Item, context: Context) -> str:
        replies = [await context.ask("small", (Message("user", f"{item.id} {number}"),)) for number in range(3)]
        return replies[-1].text


async def test_a_question_that_takes_long_is_told_by_its_calls(caplog: pytest.LogCaptureFixture) -> None:
    await evaluate(Chain(), ITEMS, runtime(Client(**SLOW)), "toy", in_flight=2)
    *before, last = caplog.messages
    under_way = [line for line in before if line.startswith("toy: 0/2 questions")]
    assert all("[00:00<?], " in line for line in under_way), "nothing is said of the time left"
    told = [re.search(r"\], (\d) calls, ([\d,]+) tokens written", line) for line in under_way]
    assert {one.groups() for one in told if one} >= {("0", "0"), ("2", "2,000"), ("4", "4,000")}
    assert re.match(r"toy: 2/2 questions .* 0\.0 % right, cost \S+ a question, 6 calls, 6,000 tokens", last)


async def test_an_update_that_takes_long_is_told_by_its_attempts_and_calls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(lambda backbone, request: "right", **SLOW)
    its = training(tmp_path, client, ITEMS)
    with progress(client, its.so_far):
        await Counter().fit(its, 2)
    first, *_ = [line for line in caplog.messages if "4 calls" in line]
    assert first.startswith("toy cell: training, 0/4 attempts at the next update, 4 calls, 4,000 tokens")
    between = [line for line in caplog.messages if "update 1/2" in line and "attempts" in line]
    assert between
    assert all("of training left, " in line for line in between)
    assert "epoch 2, update 2/2, 100.0 % right" in caplog.messages[-1]
    assert "left" not in caplog.messages[-1], "the test is still to come"


async def test_what_fails_ends_its_lines(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError), progress(Client(), lambda: "x"):  # type: ignore[arg-type]
        raise ZeroDivisionError
    for _ in range(3):
        await asyncio.sleep(0)
    assert not caplog.messages

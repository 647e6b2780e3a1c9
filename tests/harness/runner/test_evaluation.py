"""Concurrent questions: independence of order, errors versus wrong answers, progress by calls."""

import re
from dataclasses import replace
from unittest.mock import AsyncMock

import pytest

from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.llm.request import Message, Reply, Request
from harness.method import Context
from harness.runner.evaluation import evaluate, progress
from tests.fixtures import Client, Repeat, Toy, answered_by, questions, runtime, training
from tests.harness.training.test_loop import Counter


@pytest.mark.parametrize("failing", [2, 3])
async def test_a_cell_finishes_unless_too_many_of_all_its_questions_fail(failing: int) -> None:
    """The longest questions begin first, and a refusal comes back before any reply."""
    items = [Item(id=str(n), benchmark="toy", question="x" * (60 - n), gold="right") for n in range(60)]

    def refuse(backbone: str, request: Request) -> str | Reply:
        return Reply.failed("m", "too long") if len(request.messages[0].content) > 60 - failing else "right"

    client = Client(refuse, late=lambda number: 0 if number <= failing else 5)
    cell = answered_by(Repeat(), client, items, limit=0.04)
    if failing == 2:
        assert [one.verdict.status for one in await cell] == [Status.CALL_FAILED] * 2 + [Status.GRADED] * 58
        return
    with pytest.raises(UserError, match=r"3 of 60 attempts failed \(limit 4%\)"):
        await cell
    assert len(client.asked) < 60


async def test_an_error_is_told_from_a_wrong_answer_and_what_is_cut_off_from_what_is_stated() -> None:
    unfinished = "multiply both sides by 2 to get"
    told = [
        (Reply.failed("m", "context too long"), (Status.CALL_FAILED, None, False)),
        (Reply(unfinished, 1, 2048, "length", "m"), (Status.TRUNCATED, None, True)),
        (Reply(" ", 1, 2048, "length", "m"), (Status.TRUNCATED, None, True)),
        (Reply("-", 1, 5, "stop", "m"), (Status.UNPARSABLE, None, False)),
        (Reply("", 1, 0, "stop", "m"), (Status.EMPTY, None, False)),
        (Reply("", 1, 9, "tool_calls", "m"), (Status.TOOL_CALLS, None, False)),
        (Reply(unfinished, 1, 9, "stop", "m"), (Status.GRADED, "2", False)),
        (Reply(f"The answer is 5. Check: {unfinished}", 1, 2048, "length", "m"), (Status.GRADED, "5", True)),
    ]
    client = Client(lambda backbone, request: told[int(request.messages[0].content)][0])
    items = [Item(str(n), "gsm_hard", str(n), "5.0" if n == len(told) - 1 else "0.0") for n in range(len(told))]
    graded = replace(runtime(client), benchmark=benchmark("gsm_hard"))
    answered = await evaluate([(Repeat().solve, item) for item in items], graded, "gsm_hard", in_flight=8)
    found = [(one.verdict.status, one.verdict.answer, one.trajectory.cut_off) for one in answered]
    assert found == [expected for _, expected in told]
    assert [one.verdict.correct for one in answered] == [False] * (len(told) - 1) + [True]


async def test_a_failing_sandbox_stops_the_run_instead_of_counting_as_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = AsyncMock(return_value=Verdict(False, "", Status.SANDBOX_ERROR, "cannot fork"))
    monkeypatch.setattr(Toy, "grade", broken)
    with pytest.raises(UserError, match=r"the sandbox failed on question q\d \(cannot fork\)"):
        await answered_by(Repeat(), Client(), questions(2))


SLOW = {"tokens": (100, 1000), "late": lambda number: 20}


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Log a line of progress in every turn of the event loop."""
    monkeypatch.setattr("harness.runner.evaluation.INTERVAL_S", 0.0)
    caplog.set_level("INFO", "harness.runner.evaluation")
    return caplog


class Chain:
    async def solve(self, item: Item, context: Context) -> str:
        replies = [await context.ask("small", (Message("user", f"{item.id} {number}"),)) for number in range(3)]
        return replies[-1].text


async def test_a_long_question_is_told_by_its_calls(lines: pytest.LogCaptureFixture) -> None:
    await answered_by(Chain(), Client(**SLOW), questions(2))
    *before, last = lines.messages
    under_way = [line for line in before if line.startswith("toy: 0/2 questions")]
    assert all("[00:00<?], " in line for line in under_way), "nothing is said of the time left"
    told = [re.search(r"\], (\d) calls, ([\d,]+) tokens written", line) for line in under_way]
    assert {one.groups() for one in told if one} >= {("0", "0"), ("2", "2,000"), ("4", "4,000")}
    assert re.match(r"toy: 2/2 questions .* 0\.0 % right, cost \S+ a question, 6 calls, 6,000 tokens", last)


async def test_a_long_update_is_told_by_its_calls(lines: pytest.LogCaptureFixture) -> None:
    client = Client(lambda backbone, request: "right", **SLOW)
    run = training(client, questions(2))
    with progress(client, run.progress):  # type: ignore[arg-type]
        await Counter().fit(run, 2)
    first, *_ = [line for line in lines.messages if "4 calls" in line]
    assert re.match(r"toy cell, training, epoch 0: 0/\S+ updates \[00:00<\?\], 4 calls, 4,000 tokens", first)
    assert any("epoch 1: 1/2 updates" in line for line in lines.messages)
    assert re.match(r"toy cell, training, epoch 2: 2/2 updates .* 100\.0 % right, depth 1", lines.messages[-1])

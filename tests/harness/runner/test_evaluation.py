"""Questions in flight: their order shows in no result, and an error is told from a wrong answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.agents.trajectory import Answered
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.llm.request import Reply, Request
from harness.runner import results
from harness.runner.evaluation import evaluate
from tests.fixtures import Client, Repeat, Toy, content, runtime

ITEMS = [Item(id=str(number), benchmark="toy", question=f"{number}", gold=str(number)) for number in range(40)]


async def run(client: Client, in_flight: int = 8, limit: float = 0.1) -> list[Answered]:
    return await evaluate(Repeat(), ITEMS, runtime(client, limit=limit), "toy", in_flight=in_flight)


def echo(order: int, replies: dict[str, Reply] | None = None) -> Client:
    """Answers with the question, in an order of its own."""
    given = replies or {}
    text = lambda backbone, request: given.get(request.messages[0].content, request.messages[0].content)  # noqa: E731
    return Client(text, late=lambda number: number * order % 7)


async def test_results_are_the_same_bytes_whatever_the_order(tmp_path: Path) -> None:
    for name, order, in_flight in (("a", 1, 1), ("b", 3, 8), ("c", 5, 100)):
        results.write(tmp_path / name, await run(echo(order), in_flight), {"cell": "toy", "simulated": False})
    assert content(tmp_path / "a") == content(tmp_path / "b") == content(tmp_path / "c")
    items, calls = (pq.read_table(tmp_path / "a" / f"{name}.parquet").to_pydict() for name in ("items", "calls"))
    assert items["item_id"] == [item.id for item in ITEMS] == calls["item_id"]
    assert sum(calls["cost"]) == pytest.approx(sum(items["cost_total"]))


@pytest.mark.parametrize("failing", [2, 3])
async def test_a_cell_finishes_unless_too_many_of_all_its_questions_fail(failing: int) -> None:
    """The longest questions begin first, and a refusal comes back before any reply."""
    items = [Item(id=str(n), benchmark="toy", question="x" * (60 - n), gold="right") for n in range(60)]

    def refuse(backbone: str, request: Request) -> str | Reply:
        return Reply.failed("m", "too long") if len(request.messages[0].content) > 60 - failing else "right"

    client = Client(refuse, late=lambda number: 0 if number <= failing else 5)
    cell = evaluate(Repeat(), items, runtime(client, limit=0.04), "toy", in_flight=8)
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
        (Reply(unfinished, 1, 9, "stop", "m"), (Status.GRADED, "2", False)),
        (Reply(f"The answer is 5. Check: {unfinished}", 1, 2048, "length", "m"), (Status.GRADED, "5", True)),
    ]
    place = replace(
        runtime(echo(1, {str(n): reply for n, (reply, _) in enumerate(told)})), benchmark=benchmark("gsm_hard")
    )
    items = [Item(str(n), "gsm_hard", str(n), "5.0" if n == len(told) - 1 else "0.0") for n in range(len(told))]
    answered = await evaluate(Repeat(), items, place, "gsm_hard", in_flight=8)
    found = [(one.verdict.status, one.verdict.answer, one.trajectory.cut_off) for one in answered]
    assert found == [expected for _, expected in told]
    assert [one.verdict.correct for one in answered] == [False] * (len(told) - 1) + [True]


async def test_a_failing_sandbox_stops_the_run_instead_of_counting_as_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: Toy, item: Item, text: str, tools: Any, cut_off: bool) -> Verdict:
        return Verdict(False, text, Status.SANDBOX_ERROR, "cannot fork")

    monkeypatch.setattr(Toy, "grade", broken)
    with pytest.raises(UserError, match=r"the sandbox failed on question 10 \(cannot fork\)"):
        await run(echo(1), in_flight=1)

import asyncio
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.agents import results
from harness.agents.error_share import ErrorShare
from harness.agents.results import Answered
from harness.agents.runtime import Runtime
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item, Status, Verdict
from harness.errors import UserError
from harness.llm.endpoints import Endpoint, simulated
from harness.llm.request import Message, Reply, Request
from harness.runner.evaluation import evaluate, questions_in_flight
from harness.runner.progress import Progress
from tests.exact import Exact
from tests.scripted import backbones

ITEMS = [Item(id=str(number), benchmark="toy", question=str(number), gold=str(number)) for number in range(40)]


class Echo:
    """Answers with the question after a wait that depends on the order given."""

    def __init__(self, order: int = 1, replies: dict[str, Reply] | None = None) -> None:
        self.order, self.replies = order, replies or {}

    async def complete(self, backbone: str, request: Request) -> Reply:
        text = request.messages[0].content
        await asyncio.sleep(((int(text) * self.order) % 7) / 500)
        return self.replies.get(text, Reply(text, 10, 1, "stop", request.model))


class Repeat:
    async def solve(self, item: Item, context: Context) -> str:
        return (await context.ask("small", (Message("user", item.question),))).text


class Dashed(Exact):
    """A dash cannot be parsed."""

    async def grade(self, item: Item, text: str, tools: Any) -> Verdict:
        if text in ("", "-"):
            return Verdict(False, None, Status.UNPARSABLE if text else Status.EMPTY)
        return await super().grade(item, text, tools)


def runtime(client: Echo, limit: float = 0.1) -> Runtime:
    return Runtime(
        client=client,  # type: ignore[arg-type]
        backbones=backbones(),
        benchmark=Dashed(),  # type: ignore[arg-type]
        tools=None,  # type: ignore[arg-type]
        code_tools=None,  # type: ignore[arg-type]
        embeddings=None,  # type: ignore[arg-type]
        seed=0,
        errors=ErrorShare(limit),
    )


async def run(client: Echo, in_flight: int = 8, limit: float = 0.1) -> list[Answered]:
    return await evaluate(Repeat(), ITEMS, runtime(client, limit), Progress("toy", len(ITEMS)), in_flight=in_flight)


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_results_are_the_same_bytes_whatever_the_order(tmp_path: Path) -> None:
    for name, order, in_flight in (("a", 1, 1), ("b", 3, 8), ("c", 5, 100)):
        results.write(tmp_path / name, await run(Echo(order), in_flight=in_flight), {"cell": "toy"})
    assert folder_bytes(tmp_path / "a") == folder_bytes(tmp_path / "b") == folder_bytes(tmp_path / "c")


class Begun:
    """Notes which questions begin, and how many exist at once."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.now = self.most = 0

    async def solve(self, item: Item, context: Context) -> str:
        self.order.append(item.id)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(len(item.question) / 1000)
        self.now -= 1
        return item.gold


async def test_the_longest_question_begins_first_and_results_stay_in_the_order_given() -> None:
    lengths = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    items = [Item(id=str(n), benchmark="toy", question="x" * length, gold=str(n)) for n, length in enumerate(lengths)]
    method = Begun()
    answered = await evaluate(method, items, runtime(Echo()), Progress("toy", 10), in_flight=3)
    assert method.order == ["5", "7", "4", "8", "2", "0", "9", "6", "1", "3"]
    assert [one.trajectory.item.id for one in answered] == [str(n) for n in range(10)]
    assert method.most == 3


def test_the_window_holds_twice_what_the_servers_take_together() -> None:
    one, other = (
        Endpoint(url="http://a/v1", max_in_flight=256),
        Endpoint(urls=("http://b/v1", "http://c/v1"), max_in_flight=16),
    )
    assert questions_in_flight([one]) == 512
    assert questions_in_flight([one, other]) == 2 * (256 + 2 * 16)
    assert questions_in_flight([one, one, other, other]) == 2 * (256 + 2 * 16)
    assert questions_in_flight([simulated()] * 5) == questions_in_flight([simulated()])


async def test_an_error_is_told_from_a_wrong_answer() -> None:
    replies = {
        Status.CALL_FAILED: Reply.failed("m", "context too long"),
        Status.TRUNCATED: Reply("-", 1, 2048, "length", "m"),
        Status.UNPARSABLE: Reply("-", 1, 5, "stop", "m"),
        Status.EMPTY: Reply("", 1, 0, "stop", "m"),
        Status.GRADED: Reply("wrong", 1, 2048, "length", "m"),
    }
    answered = await run(Echo(replies={str(number): reply for number, reply in enumerate(replies.values())}), limit=1.0)
    assert [one.verdict.status for one in answered[:5]] == list(replies)
    assert [one.verdict.correct for one in answered] == [False] * 5 + [True] * 35


async def test_a_failing_sandbox_stops_the_run_instead_of_counting_as_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: Exact, item: Item, text: str, tools: Any) -> Verdict:
        return Verdict(False, text, Status.SANDBOX_ERROR, "cannot fork")

    monkeypatch.setattr(Exact, "grade", broken)
    with pytest.raises(UserError, match=r"the sandbox failed on question 10 \(cannot fork\)"):
        await run(Echo(), in_flight=1)


async def test_the_tables_hold_a_row_an_item_and_a_row_a_call(tmp_path: Path) -> None:
    results.write(tmp_path, await run(Echo()), {"cell": "toy"})
    items, calls = pq.read_table(tmp_path / "items.parquet"), pq.read_table(tmp_path / "calls.parquet")
    assert items.column("item_id").to_pylist() == [item.id for item in ITEMS]
    assert calls.num_rows == 40
    assert sum(calls.column("cost").to_pylist()) == pytest.approx(sum(items.column("cost_total").to_pylist()))
    assert pq.read_table(tmp_path / "decisions.parquet").num_rows == 0

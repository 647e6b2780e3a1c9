"""The evaluation loop: many questions in flight on one event loop, each solved, then graded."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from tqdm import tqdm

from harness.agents.runtime import Runtime
from harness.agents.trajectory import Answered
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.llm.endpoints import Endpoint
from harness.runner.method import Method
from harness.runner.progress import progress

T = TypeVar("T")

# Lines of many jobs follow one another, so there is no bar that moves.
_LINE = "{desc}: {n_fmt}/{total_fmt} questions [{elapsed}<{remaining}]{postfix}"


async def evaluate(
    method: Method, items: Sequence[Item], runtime: Runtime, label: str, *, in_flight: int
) -> list[Answered]:
    """Answer and grade the questions, in their order; UserError when too many failed, or an endpoint is gone."""
    answered: list[Answered] = []
    runtime.errors.plan(len(items))
    started = time.monotonic()

    async def attempt(item: Item) -> Answered:
        answered.append(one := await runtime.attempt(method.solve, item))
        return one

    with progress(runtime.client, lambda: _so_far(label, answered, len(items), time.monotonic() - started)):
        return await of_each(items, attempt, in_flight)


def _so_far(label: str, answered: Sequence[Answered], total: int, elapsed: float) -> str:
    """Return how many questions are answered, how well and at which cost; the time left once one is."""
    n, found = len(answered), ""
    if n:
        right = 100 * sum(one.verdict.correct for one in answered) / n
        cost = sum(one.trajectory.cost_total for one in answered) / n
        found = f"{right:.1f} % right, cost {cost:.2e} a question"
    return tqdm.format_meter(n, total, elapsed, prefix=label, bar_format=_LINE, postfix=found)


async def of_each(items: Sequence[Item], work: Callable[[Item], Awaitable[T]], in_flight: int) -> list[T]:
    """What work gives for each question, so many worked on at a time, in the order of the questions.

    Long questions begin first: begun last, one would be worked on alone while the servers idle. The order cannot show
    in a result, for chance follows from seed and question, and nothing from what other questions are doing.
    """
    found: dict[int, T] = {}
    waiting = iter(sorted(range(len(items)), key=lambda position: -len(items[position].question)))

    async def worker() -> None:
        for position in waiting:
            found[position] = await work(items[position])

    await gather(worker() for _ in range(min(in_flight, len(items))))
    return [found[position] for position in range(len(items))]


def questions_in_flight(endpoints: Iterable[Endpoint]) -> int:
    """How many questions a cell works on at a time, where its preset does not say: twice the calls its servers take.

    Each server counts once; while a reply is graded or embedded, the call of another question has its place.
    """
    capacities = {url: endpoint.max_in_flight for endpoint in endpoints for url in endpoint.urls}
    return 2 * sum(capacities.values())

"""The evaluation loop: many questions in flight on one event loop, each solved, then graded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.agents.results import Answered
from harness.agents.runtime import Runtime
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.llm.endpoints import Endpoint
from harness.runner.method import Method
from harness.runner.progress import Progress


async def evaluate(
    method: Method, items: Sequence[Item], runtime: Runtime, progress: Progress, *, in_flight: int
) -> list[Answered]:
    """Answer and grade every question; return the answers in the order of the questions.

    Questions begin in descending order of their length, which stands for how long they will take: a long one begun last
    would be worked on alone while the servers idle. The order cannot show in a result: what happens to a question
    follows from the question, the trained method and the replies, its chance from seed and question, and nothing of it
    from what other questions are doing.

    Args:
        method: The method, trained if it learns.
        items: The questions.
        runtime: Gives each question a context and grades its answer.
        progress: Told of every finished question.
        in_flight: Questions worked on at the same time.

    Raises:
        UserError: Too many questions failed, or an endpoint is gone.
    """
    answers: dict[int, Answered] = {}
    waiting = iter(longest_first(items))

    async def work() -> None:
        for position in waiting:
            answered = await runtime.attempt(method.solve, items[position])
            answers[position] = answered
            progress.item(*answered)

    await gather(work() for _ in range(min(in_flight, len(items))))
    return [answers[position] for position in range(len(items))]


def questions_in_flight(endpoints: Iterable[Endpoint]) -> int:
    """How many questions a cell works on at the same time, where its preset does not say.

    Most methods ask one call a question at a time, so there are twice as many questions as its servers take calls
    together: while a reply is graded, or looked at as an embedding, the call of another question has its place. A
    question in flight is some twenty kilobytes.

    Args:
        endpoints: Of the backbones the cell may ask; one that serves several counts once.
    """
    capacities = {url: endpoint.max_in_flight for endpoint in endpoints for url in endpoint.urls}
    return 2 * sum(capacities.values())


def longest_first(items: Sequence[Item]) -> list[int]:
    """Positions of questions in descending order of their length; equally long ones stay in their order."""
    return sorted(range(len(items)), key=lambda position: -len(items[position].question))

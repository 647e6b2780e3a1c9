"""The evaluation loop: many questions in flight on one event loop, each solved, then graded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.answers import Answers
from harness.items import Item
from harness.llm.endpoints import Endpoint
from harness.method import Method
from harness.progress import Progress
from harness.together import together
from harness.workplace import Workplace


async def evaluate(
    method: Method, items: Sequence[Item], workplace: Workplace, progress: Progress, *, in_flight: int, folder: Path
) -> Answers:
    """Answer and grade every question.

    Questions begin in descending order of their length, which stands for how long they will take: a long one begun last
    would be worked on alone while the servers idle. The order cannot show in a result: what happens to a question
    follows from the question, the trained method and the replies, its chance from seed and question, and nothing of it
    from what other questions are doing.

    Args:
        method: The method, trained if it learns.
        items: The questions; the result is in their order whatever begins or finishes first.
        workplace: Gives each question a desk and grades its answer.
        progress: Told of every finished question.
        in_flight: Questions worked on at the same time; of the others, nothing exists yet or any more in memory.
        folder: On whose disk the answers wait until all are there.

    Raises:
        UserError: Too many questions failed, an endpoint is gone, or the disk is full.
    """
    answers = Answers(items, folder)
    waiting = iter(longest_first(items))

    async def work() -> None:
        for position in waiting:
            answered = await workplace.attempt(method.solve, items[position])
            answers.add(position, answered)
            progress.item(*answered)

    await together(work() for _ in range(min(in_flight, len(items))))
    return answers


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

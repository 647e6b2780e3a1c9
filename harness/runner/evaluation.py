"""Evaluation loop: solve and grade many questions concurrently."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from harness.agents.runtime import Runtime
from harness.agents.trajectory import Answered
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.llm.client import ChatClient
from harness.method import Solve
from harness.training.loop import progress_line

logger = logging.getLogger(__name__)

# Seconds between two progress lines.
INTERVAL_S = 10.0


async def evaluate(
    attempts: Sequence[tuple[Solve, Item]], runtime: Runtime, label: str, *, in_flight: int, unit: str = "questions"
) -> list[Answered]:
    """Solve and grade questions, each in the way given with it. Return the results in order.

    Long questions start first, so that no server idles at the end, and attempts at the same question follow each other,
    since their prompts share parts. The order does not change results: random numbers depend on seed and question only.

    Args:
        attempts: Pairs of a solver and its question.
        runtime: Client, tools and embeddings of the cell.
        label: Name of the cell in progress lines.
        in_flight: Maximum number of concurrent attempts.
        unit: What progress lines count.

    Raises:
        UserError: if too many questions failed, or an endpoint is unreachable.
    """
    started = time.monotonic()
    runtime.errors.expect_attempts(len(attempts))
    results: dict[int, Answered] = {}
    questions = [item.question for _, item in attempts]
    waiting = iter(sorted(range(len(attempts)), key=lambda index: (-len(questions[index]), questions[index])))

    async def worker() -> None:
        for index in waiting:
            results[index] = await runtime.attempt(*attempts[index])

    def line() -> str:
        n, measures = len(results), ""
        if n:
            right = 100 * sum(each.verdict.correct for each in results.values()) / n
            cost = sum(each.trajectory.cost_total for each in results.values()) / n
            measures = f"{right:.1f} % right, cost {cost:.2e} a question"
        return progress_line(n, len(attempts), time.monotonic() - started, label, unit, measures)

    with progress(runtime.client, line):
        await gather(worker() for _ in range(min(in_flight, len(attempts))))
    return [results[index] for index in range(len(attempts))]


@contextmanager
def progress(client: ChatClient, done: Callable[[], str]) -> Iterator[None]:
    """Log ``done()`` with call and token counts every ten seconds, and at the end of the block if calls were made."""
    started, calls, tokens = time.monotonic(), client.calls_answered, client.tokens_written
    logged = client.counts["log"]

    def report_progress() -> None:
        answered, count = client.calls_answered - calls, client.tokens_written - tokens
        rate = count / max(time.monotonic() - started, 1e-9)
        repeated = client.counts["log"] - logged
        kept = f", {repeated:,} of them repeated from the log" if repeated else ""
        logger.info(f"{done()}, {answered:,} calls{kept}, {count:,} tokens written ({rate:,.0f}/s)")

    async def report_often() -> None:
        while True:
            await asyncio.sleep(INTERVAL_S)
            report_progress()

    reports = asyncio.create_task(report_often())
    try:
        yield
        if client.calls_answered > calls:
            report_progress()
    finally:
        reports.cancel()

"""The verdict on a whole trajectory, where an error or a cut-off text is told from a wrong answer."""

from __future__ import annotations

from dataclasses import replace

from harness.agents.trajectory import Trajectory
from harness.benchmarks import Benchmark, Tools
from harness.benchmarks.items import Status, Verdict
from harness.errors import UserError


async def grade(benchmark: Benchmark, trajectory: Trajectory, tools: Tools) -> Verdict:
    """Grade the answer of a trajectory.

    Raises:
        UserError: The sandbox failed twice, so there is no verdict at all.
    """
    final = trajectory.final_call
    if final is not None and final.error is not None and not trajectory.answer.strip():
        return Verdict(False, None, Status.CALL_FAILED, final.error)
    verdict = await benchmark.grade(trajectory.item, trajectory.answer, tools)
    if verdict.status is Status.SANDBOX_ERROR:
        raise UserError(
            f"the sandbox failed on question {trajectory.item.id} ({verdict.detail}); mend the cause, then give the "
            "same command again (finished calls are kept)"
        )
    cut = final is not None and final.finish_reason == "length"
    if cut and verdict.status in (Status.UNPARSABLE, Status.EMPTY):
        return replace(verdict, status=Status.TRUNCATED)
    return verdict

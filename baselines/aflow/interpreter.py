"""Running a workflow on a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from baselines.aflow.operators import RUN, Outcome, Turn
from baselines.aflow.workflow import Node, Status, Workflow
from harness.agents.prompts import Record
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.concurrency import gather


class Result(NamedTuple):
    """What a node leaves for later ones: at least one text, and a status if it ran and judges."""

    texts: tuple[str, ...]
    status: Status | None


class Interpreter:
    """Runs a checked workflow, node after node; the runs of one node are concurrent.

    The steps of a trajectory are the places of the nodes, so the call of the last node is the last one recorded. Where
    that node passes an earlier text on unchanged, it is the last call that had a say in it.

    Args:
        workflow: What to run.
        executor: Key of the backbone that the operators ask.
    """

    def __init__(self, workflow: Workflow, executor: str) -> None:
        self._workflow = workflow
        self._executor = executor

    async def solve(self, item: Item, context: Context) -> str:
        """The answer: the output of the last node."""
        results: dict[str, Result] = {}
        for step, node in enumerate(self._workflow.nodes, 1):
            results[node.id] = await self._run(node, step, results, context)
        return results[self._workflow.nodes[-1].id].texts[0]

    async def _run(self, node: Node, step: int, results: Mapping[str, Result], context: Context) -> Result:
        if node.when is not None and results[node.when.node].status != node.when.outcome:
            return _passed_through(node, results)
        records = _records(node, results)
        turns = [Turn(context, self._executor, step, repetition) for repetition in range(node.repeat)]
        return _joined(await gather(_operate(node, turn, records) for turn in turns))


async def _operate(node: Node, turn: Turn, records: list[Record]) -> Outcome:
    return await RUN[node.operator](turn, node.instruction, records)


def _passed_through(node: Node, results: Mapping[str, Result]) -> Result:
    """A node that does not run leaves what its first input did, or, if it reads the question alone, the one it watches.

    It has no status, so no condition on it holds.
    """
    watched = [node.when.node] if node.when else []
    return Result(results[(*node.sources, *watched)[0]].texts, None)


def _records(node: Node, results: Mapping[str, Result]) -> list[Record]:
    """All outputs of the inputs; what a failed call left empty is not shown."""
    return [Record(f"Result of {name}", text) for name in node.sources for text in results[name].texts if text.strip()]


def _joined(outcomes: list[Outcome]) -> Result:
    """Of several runs that judge, those that passed come first; one is enough."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.status == "failed")
    return Result(tuple(outcome.text for outcome in ordered), ordered[0].status)

"""The model calls of one node and of one edge, whatever the order in which nodes run (D-MAC-2, D-MAC-5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from baselines.macnet import prompts
from baselines.macnet.topology import Graph
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.llm.request import Kind, Message

_KINDS: Mapping[str, Kind] = {"critique": "critique", "revise": "revise", "merge": "aggregate"}


class Turn(NamedTuple):
    """Where a call stands: its step and slot, and the temperature of its node."""

    step: int
    slot: int
    temperature: float


class Exchange:
    """Agents of one backbone on a graph, at work on one question.

    A node is a step. Its calls have places of their own in a numbering of all calls (:attr:`Graph.slots`), the same
    whoever answers first. Above temperature 0 this number is also the index of the sample, so equal prompts of
    different nodes are sampled independently; at temperature 0 equal prompts are one call (D-MAC-6).

    Args:
        graph: Where the agents stand.
        backbone: Key of the backbone behind all of them.
        checks: What critics look at.
        item: The question.
        context: Where models are asked.
    """

    def __init__(self, graph: Graph, backbone: str, checks: str, item: Item, context: Context) -> None:
        self.graph = graph
        self._backbone = backbone
        self._checks = checks
        self._item = item
        self._context = context

    async def solve(self, node: int) -> str:
        """The solution of a node that nothing is handed to."""
        return await self._ask(self._turn(node, 0), "solve", prompts.solve_prompt(self._context.rules, self._item))

    async def refine(self, solution: str, node: int, edge: int) -> str:
        """One edge: a critic reads the solution handed on, then the actor writes a better one.

        The actor is asked even if the critic approves or its call failed. An empty solution has nothing to criticise:
        the actor then answers as if it were the first.

        Args:
            solution: What the node before handed on.
            node: The node the edge leads to, whose temperature both calls use.
            edge: Place of the edge among those to the node, counted from 0.
        """
        rules, item = self._context.rules, self._item
        critic, actor = self._turn(node, 2 * edge), self._turn(node, 2 * edge + 1)
        if not solution.strip():
            return await self._ask(actor, "solve", prompts.solve_prompt(rules, item))
        prompt = prompts.critique_prompt(self._checks, rules, item, solution)
        advice = prompts.advice_in(await self._ask(critic, "critique", prompt))
        return await self._ask(actor, "revise", prompts.revise_prompt(rules, item, solution, advice))

    async def merge(self, candidates: Sequence[str], node: int, number: int = 0) -> str:
        """One solution made from the candidates of a node, in one call; see :func:`present` for empty ones.

        A single candidate that is left of several is put to this call as well. So the call that gives a node its
        solution is the node's last one, whatever failed before it. Without any candidate there is no call.

        Args:
            candidates: What the edges to the node delivered, in their order.
            node: The node, whose temperature the call uses.
            number: Which of the merges of this node.
        """
        place = 2 * len(self.graph.predecessors[node]) + number
        return await self._merged(candidates, self._turn(node, place))

    async def conclude(self, candidates: Sequence[str]) -> str:
        """The answer made from the solutions of several leaves: a merge behind all nodes, at temperature 0."""
        end = len(self.graph.nodes)
        return await self._merged(candidates, Turn(end + 1, self.graph.slots[end], 0.0), is_step=False)

    async def _merged(self, candidates: Sequence[str], turn: Turn, *, is_step: bool = True) -> str:
        shown = present(candidates)
        if not shown:
            return ""
        prompt = prompts.merge_prompt(self._context.rules, self._item, shown)
        return await self._ask(turn, "merge", prompt, is_step=is_step)

    def _turn(self, node: int, place: int) -> Turn:
        return Turn(node + 1, self.graph.slots[node] + place, self.graph.temperatures[node])

    async def _ask(self, turn: Turn, purpose: str, prompt: tuple[Message, ...], *, is_step: bool = True) -> str:
        reply = await self._context.ask(
            self._backbone,
            prompt,
            step=turn.step,
            slot=turn.slot,
            purpose=purpose,
            kind=_KINDS.get(purpose, "solve"),
            is_step=is_step,
            temperature=turn.temperature,
            draw=turn.slot if turn.temperature else 0,
        )
        return reply.text


def present(candidates: Sequence[str]) -> list[str]:
    """The candidates that hold anything: an empty one has nothing to give to a merge."""
    return [candidate for candidate in candidates if candidate.strip()]

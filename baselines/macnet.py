"""MacNet (Qian et al.): agents on a fixed directed acyclic graph hand their solutions along its edges."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

from pydantic import PositiveInt

from harness.agents.prompts import Record, team_prompt
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.errors import unknown
from harness.files import Declaration
from harness.llm.request import Kind, Message, Turn
from harness.runner.method import Setting

Topology = Literal["chain", "tree", "complete"]


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph with one agent on each node."""

    predecessors: tuple[tuple[int, ...], ...]  # for each node those with an edge to it, ascending; all come before it

    @property
    def nodes(self) -> range:
        """The nodes, in a topological order."""
        return range(len(self.predecessors))

    @property
    def leaves(self) -> tuple[int, ...]:
        """Nodes without an edge to another, ascending."""
        inner = {before for these in self.predecessors for before in these}
        return tuple(node for node in self.nodes if node not in inner)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Edges on the longest path to each node."""
        depths: list[int] = []
        for these in self.predecessors:
            depths.append(max((depths[before] + 1 for before in these), default=0))
        return tuple(depths)

    @cached_property
    def temperatures(self) -> tuple[float, ...]:
        """Sampling temperature of each node, 1 - (d + 1) / (D + 2) for its depth d of at most D (D-MAC-6)."""
        deepest = max(self.depths)
        # A quotient of whole numbers is the float nearest to it; its difference from 1 need not be.
        return tuple((deepest + 1 - depth) / (deepest + 2) for depth in self.depths)

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """Where the calls of each node begin in a numbering of all calls, and where the last one's end."""
        # For k edges to a node 3k + 1 numbers, which are draws too; it makes 2k + 1 calls at most, others stay free.
        return tuple(accumulate((3 * len(these) + 1 for these in self.predecessors), initial=0))


def graph_of(topology: Topology, agents: int) -> Graph:
    """The topology with so many nodes; edges lead from the one root outwards, in the tree to two nodes each."""
    match topology:
        case "chain":
            later = [(node - 1,) for node in range(1, agents)]
        case "tree":
            later = [((node - 1) // 2,) for node in range(1, agents)]
        case "complete":
            return Graph(tuple(tuple(range(node)) for node in range(agents)))
    return Graph(((), *later))


# One line for every node of every benchmark (D-MAC-4).
PROFILE = "You are an expert in the field of the question."

SOLVE = (
    "Answer the question. Give a complete solution, since whoever goes on with it will see nothing else of your work."
)
CRITICISE = (
    "A colleague's solution stands below the question. Point out the single most important defect in it and say how to "
    "mend it. Be brief, and leave the writing of a new solution to the colleague."
)
REVISE = (
    "A solution and a critic's advice on it stand below the question. Revise the solution: follow the advice where it "
    "is right, keep what is sound, and mend what you see is faulty even if the advice is silent about it. Give the "
    "complete solution, since whoever goes on with it will see nothing else of your work."
)
MERGE = (
    "Candidate solutions stand below the question. Weigh the candidates against each other, and produce one complete "
    "solution that is better than each of them: build on what is sound and leave out what is wrong."
)

# What a critic looks at, by domain of the benchmark.
CHECKS: Mapping[str, str] = {
    "Math": "Check the logic of each deduction, the arithmetic, the units, and the form of the answer.",
    "Code": (
        "Check the signature that was asked for, the examples given in the question, edge cases such as empty or "
        "extreme input, and the syntax."
    ),
    "Commonsense": (
        "Check that each option was considered and the others were ruled out for good reasons, and that the answer is "
        "one letter in the form asked for."
    ),
}

NO_REVISION = "NO REVISION NEEDED"
_APPROVAL = f"If you find no defect, reply with these words alone: {NO_REVISION}"
_FORM = "The colleague, not you, has to keep to this form:"

NO_ADVICE = "None."
NOTHING_TO_REVISE = f"Advice: {NO_ADVICE}"

SOLUTION_HEADER = "The colleague's solution:"
ADVICE_HEADER = "The solution, and the advice on it:"
CANDIDATES_HEADER = "The candidates:"

_EMPHASIS = " \t*_`#>\"'.!"


def advice_in(critique: str) -> str:
    """The advice a critique holds, empty where a line of its own approves; within a sentence approval is none."""
    lines = [line.strip(_EMPHASIS).upper() for line in critique.splitlines()]
    return "" if NO_REVISION in lines else critique.strip()


_KINDS: Mapping[str, Kind] = {"critique": "critique", "revise": "revise", "merge": "aggregate"}


@dataclass(frozen=True)
class Exchange:
    """Agents of one backbone on a graph, at work on one question; a node is a step, a slot a draw (D-MAC-6)."""

    graph: Graph
    backbone: str
    checks: str
    item: Item
    context: Context

    async def solve(self, node: int, place: int = 0) -> str:
        """The solution of a node that nothing is handed to."""
        system = (PROFILE, SOLVE, self.context.rules)
        return await self._ask(node, place, "solve", team_prompt(system, self.item, (), NOTHING_TO_REVISE))

    async def refine(self, solution: str, node: int, edge: int) -> str:
        """One edge: a critic reads the solution handed on, then the actor, whatever the critic says, betters it."""
        critic, actor, rules = 2 * edge, 2 * edge + 1, self.context.rules
        if not solution.strip():
            return await self.solve(node, actor)
        shown = Record("Solution", solution)
        system = (PROFILE, CRITICISE, self.checks, _APPROVAL, f"{_FORM} {rules}" if rules else "")
        prompt = team_prompt(system, self.item, [shown], header=SOLUTION_HEADER)
        advice = advice_in(await self._ask(node, critic, "critique", prompt))
        records = [shown, Record("Advice", advice or NO_ADVICE)]
        prompt = team_prompt((PROFILE, REVISE, rules), self.item, records, header=ADVICE_HEADER)
        return await self._ask(node, actor, "revise", prompt)

    async def merge(self, candidates: Sequence[str], node: int) -> str:
        """One solution from the candidates of a node, in one call; none without any candidate."""
        # A single one that is left of several is merged, too: a node's solution is always that of its last call.
        records = [Record("Candidate", candidate) for candidate in candidates if candidate.strip()]
        if not records:
            return ""
        place = 2 * len(self.graph.predecessors[node]) if node in self.graph.nodes else 0
        prompt = team_prompt((PROFILE, MERGE, self.context.rules), self.item, records, header=CANDIDATES_HEADER)
        return await self._ask(node, place, "merge", prompt)

    async def _ask(self, node: int, place: int, purpose: str, prompt: tuple[Message, ...]) -> str:
        is_step = node in self.graph.nodes
        temperature, slot = self.graph.temperatures[node] if is_step else 0.0, self.graph.slots[node] + place
        reply = await self.context.ask(
            self.backbone,
            prompt,
            Turn(_KINDS.get(purpose, "solve")),
            step=node + 1,
            slot=slot,
            purpose=purpose,
            is_step=is_step,
            temperature=temperature,
            draw=slot if temperature else 0,
        )
        return reply.text


async def run(exchange: Exchange) -> str:
    """Run the graph, each node once its predecessors have delivered; return the solution of its leaf or leaves."""
    graph = exchange.graph
    solutions = [""] * len(graph.nodes)
    delivered = [asyncio.Event() for _ in graph.nodes]

    async def deliver(node: int) -> None:
        for before in graph.predecessors[node]:
            await delivered[before].wait()
        solutions[node] = await _solution(exchange, node, [solutions[before] for before in graph.predecessors[node]])
        delivered[node].set()

    await gather(deliver(node) for node in graph.nodes)
    final = [solutions[leaf] for leaf in graph.leaves]
    return final[0] if len(final) == 1 else await exchange.merge(final, len(graph.nodes))


async def _solution(exchange: Exchange, node: int, handed: list[str]) -> str:
    if not handed:
        return await exchange.solve(node)
    candidates = await gather(exchange.refine(solution, node, edge) for edge, solution in enumerate(handed))
    return candidates[0] if len(candidates) == 1 else await exchange.merge(candidates, node)


class Config(Declaration):
    """What distinguishes the rows."""

    topology: Topology
    agents: PositiveInt = 6  # nodes of the graph


@dataclass(frozen=True)
class MacNet:
    """Agents of one backbone on a graph."""

    backbone: str
    graph: Graph
    checks: str

    async def solve(self, item: Item, context: Context) -> str:
        """The solution of the last node, or the one made from all leaves."""
        return await run(Exchange(self.graph, self.backbone, self.checks, item, context))


def build(setting: Setting, config: Config) -> MacNet:
    """The method for one backbone and a benchmark of a domain that critics have rules for."""
    if setting.domain not in CHECKS:
        raise unknown("domain of critics", setting.domain, CHECKS, "baselines/macnet.py")
    return MacNet(setting.one_backbone, graph_of(config.topology, config.agents), CHECKS[setting.domain])

"""MacNet (Qian et al.): agents on a fixed directed acyclic graph pass solutions along its edges."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

from pydantic import PositiveInt

from harness.agents.prompts import Record, team_prompt
from harness.concurrency import gather
from harness.errors import check_names
from harness.files import Declaration
from harness.method import CallSpec, Context, Item, Message
from harness.runner.setting import Setting

Topology = Literal["chain", "tree", "complete"]
Purpose = Literal["solve", "critique", "revise", "merge"]


@dataclass(frozen=True)
class Graph:
    """Directed acyclic graph with one agent per node."""

    predecessors: tuple[tuple[int, ...], ...]  # by node, sorted; predecessors have smaller indices

    @property
    def nodes(self) -> range:
        return range(len(self.predecessors))

    @property
    def leaves(self) -> tuple[int, ...]:
        inner = set().union(*self.predecessors)
        return tuple(node for node in self.nodes if node not in inner)

    @cached_property
    def temperatures(self) -> tuple[float, ...]:
        """Sampling temperature by node: 1 - (d + 1) / (D + 2), with depth d (longest path) and maximum depth D.

        As upstream, but without upstream's virtual source and sink (D-MAC-6).
        """
        depths: list[int] = []
        for predecessors in self.predecessors:
            depths.append(max((depths[node] + 1 for node in predecessors), default=0))
        # A single division is correctly rounded; a subtraction from 1 would add a second rounding.
        return tuple((max(depths) + 1 - depth) / (max(depths) + 2) for depth in depths)

    @cached_property
    def first_slots(self) -> tuple[int, ...]:
        """First slot of each node, then the total number of slots."""
        # A node with k predecessors reserves 3k + 1 slots, which also key its draws. At most 2k + 1 of them are calls.
        return tuple(accumulate((3 * len(nodes) + 1 for nodes in self.predecessors), initial=0))


def graph_of(topology: Topology, agents: int) -> Graph:
    """Build a topology. Edges lead away from the root; tree nodes have two children."""
    predecessors: dict[Topology, Callable[[int], tuple[int, ...]]] = {
        "chain": lambda node: (node - 1,),
        "tree": lambda node: ((node - 1) // 2,),
        "complete": lambda node: tuple(range(node)),
    }
    return Graph(((), *map(predecessors[topology], range(1, agents))))


# The same profile for every node and benchmark (D-MAC-4).
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

# Checklist of critics by domain.
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
    """Extract the advice of a critique. Empty if a whole line approves. Approval inside a sentence does not count."""
    lines = [line.strip(_EMPHASIS).upper() for line in critique.splitlines()]
    return "" if NO_REVISION in lines else critique.strip()


@dataclass(frozen=True)
class Exchange:
    """One question on a graph of agents. Nodes are steps, and slots key the random draws (D-MAC-6)."""

    graph: Graph
    backbone: str
    checks: str
    item: Item
    context: Context

    async def solve(self, node: int, offset: int = 0) -> str:
        """Solve the question at a node without predecessors."""
        system = (PROFILE, SOLVE, self.context.rules)
        return await self._ask(node, offset, "solve", team_prompt(system, self.item, (), NOTHING_TO_REVISE))

    async def refine(self, solution: str, node: int, edge: int) -> str:
        """Process one edge: a critic comments on the solution, then the actor revises it in any case."""
        critic, actor, rules = 2 * edge, 2 * edge + 1, self.context.rules
        if not solution.strip():
            return await self.solve(node, actor)
        record = Record("Solution", solution)
        system = (PROFILE, CRITICISE, self.checks, _APPROVAL, f"{_FORM} {rules}" if rules else "")
        prompt = team_prompt(system, self.item, [record], header=SOLUTION_HEADER)
        advice = advice_in(await self._ask(node, critic, "critique", prompt))
        records = [record, Record("Advice", advice or NO_ADVICE)]
        prompt = team_prompt((PROFILE, REVISE, rules), self.item, records, header=ADVICE_HEADER)
        return await self._ask(node, actor, "revise", prompt)

    async def merge(self, candidates: Sequence[str], node: int) -> str:
        """Merge the candidates of a node in one call. Empty if all candidates are empty."""
        # A single non-empty candidate is merged too, since a node's solution comes from its last call.
        records = [Record("Candidate", candidate) for candidate in candidates if candidate.strip()]
        if not records:
            return ""
        offset = 2 * len(self.graph.predecessors[node]) if node in self.graph.nodes else 0
        prompt = team_prompt((PROFILE, MERGE, self.context.rules), self.item, records, header=CANDIDATES_HEADER)
        return await self._ask(node, offset, "merge", prompt)

    async def _ask(self, node: int, offset: int, purpose: Purpose, prompt: tuple[Message, ...]) -> str:
        is_step = node in self.graph.nodes
        temperature = self.graph.temperatures[node] if is_step else 0.0
        slot = self.graph.first_slots[node] + offset
        draw = slot if temperature else 0
        spec = CallSpec(node + 1, purpose, slot, temperature=temperature, draw=draw, is_step=is_step)
        return (await self.context.ask(self.backbone, prompt, spec)).text


class Config(Declaration):
    """Settings of MacNet."""

    topology: Topology
    agents: PositiveInt = 6  # nodes of the graph


class MacNet:
    """Agents of one backbone on a graph. Raises UserError if the domain has no checklist for critics."""

    def __init__(self, setting: Setting, config: Config) -> None:
        check_names("domain of critics", [setting.domain], CHECKS, "baselines/macnet.py")
        self._backbone, self._checks = setting.one_backbone, CHECKS[setting.domain]
        self._graph = graph_of(config.topology, config.agents)

    async def solve(self, item: Item, context: Context) -> str:
        """Run each node as soon as its predecessors have finished. Several leaves are merged."""
        graph, exchange = self._graph, Exchange(self._graph, self._backbone, self._checks, item, context)
        solutions = [""] * len(graph.nodes)
        delivered = [asyncio.Event() for _ in graph.nodes]

        async def deliver(node: int) -> None:
            for predecessor in graph.predecessors[node]:
                await delivered[predecessor].wait()
            received = [solutions[predecessor] for predecessor in graph.predecessors[node]]
            refined = await gather(exchange.refine(solution, node, edge) for edge, solution in enumerate(received))
            candidates = refined or [await exchange.solve(node)]
            solutions[node] = candidates[0] if len(candidates) == 1 else await exchange.merge(candidates, node)
            delivered[node].set()

        await gather(deliver(node) for node in graph.nodes)
        final = [solutions[leaf] for leaf in graph.leaves]
        return final[0] if len(final) == 1 else await exchange.merge(final, len(graph.nodes))


build = MacNet

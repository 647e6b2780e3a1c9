"""The graphs agents stand on: four topologies of any size, their depths and their temperatures (D-MAC-6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

Topology = Literal["chain", "star", "tree", "complete"]


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph with one agent on each node.

    Attributes:
        predecessors: For each node those with an edge to it, ascending; all of them come before it.
        root_depth: Depth of a node without predecessors.
    """

    predecessors: tuple[tuple[int, ...], ...]
    root_depth: int = 0

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
        """Edges on the longest path to each node, counted from the depth of a root."""
        depths: list[int] = []
        for these in self.predecessors:
            depths.append(max((depths[before] + 1 for before in these), default=self.root_depth))
        return tuple(depths)

    @cached_property
    def temperatures(self) -> tuple[float, ...]:
        """Sampling temperature of each node, 1 - depth / greatest depth (D-MAC-6); 0 where no node is deeper than 0."""
        deepest = max(self.depths)
        return tuple(1 - depth / deepest if deepest else 0.0 for depth in self.depths)

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """Where the calls of each node begin in a numbering of all calls; one entry more says where it ends.

        A node with k edges to it makes at most k critiques, k solutions and k merges, and one call without any edge.
        """
        return tuple(accumulate((3 * len(these) + 1 for these in self.predecessors), initial=0))


def graph_of(topology: Topology, agents: int) -> Graph:
    """The topology with so many nodes; edges lead from the one root outwards.

    The tree is the complete binary one, numbered layer by layer from the root.
    """
    match topology:
        case "chain":
            later = [(node - 1,) for node in range(1, agents)]
        case "star":
            later = [(0,)] * (agents - 1)
        case "tree":
            later = [((node - 1) // 2,) for node in range(1, agents)]
        case "complete":
            return Graph(tuple(tuple(range(node)) for node in range(agents)))
    return Graph(((), *later))


def between_terminals(graph: Graph) -> Graph:
    """The graph as released code runs it, between a virtual source and a virtual sink (D-MAC-3).

    The sink is one agent more, behind all leaves. The source never asks a model and hands on nothing, so all it does
    is to push every node one layer down.
    """
    return Graph((*graph.predecessors, graph.leaves), root_depth=graph.root_depth + 1)

"""The schedule of the idea: a node runs once everything handed to it has arrived.

This is what the rows of the tables run. For six agents it makes 11 calls on a chain, 12 on a tree, 35 on the complete
graph (D-MAC-1, D-MAC-2, D-MAC-3).
"""

from __future__ import annotations

import asyncio

from baselines.macnet.exchange import Exchange
from harness.concurrency import gather


async def textbook(exchange: Exchange) -> str:
    """Run the graph and return the solution of its leaf, or one made from those of several leaves.

    A node starts as soon as all its predecessors have delivered, whatever goes on elsewhere, and the edges to it run
    at the same time. All their candidates are merged in one call.
    """
    graph = exchange.graph
    solutions = [""] * len(graph.nodes)
    delivered = [asyncio.Event() for _ in graph.nodes]

    async def run(node: int) -> None:
        for before in graph.predecessors[node]:
            await delivered[before].wait()
        solutions[node] = await _solution(exchange, node, [solutions[before] for before in graph.predecessors[node]])
        delivered[node].set()

    await gather(run(node) for node in graph.nodes)
    final = [solutions[leaf] for leaf in graph.leaves]
    return final[0] if len(final) == 1 else await exchange.conclude(final)


async def _solution(exchange: Exchange, node: int, handed: list[str]) -> str:
    if not handed:
        return await exchange.solve(node)
    candidates = await gather(exchange.refine(solution, node, edge) for edge, solution in enumerate(handed))
    return candidates[0] if len(candidates) == 1 else await exchange.merge(candidates, node)

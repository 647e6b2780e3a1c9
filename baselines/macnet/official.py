"""The schedule of the released code, defects included, for comparison (D-MAC-1, D-MAC-2, D-MAC-3).

A virtual sink is one agent more, merges are made in pairs, and the scheduler throws work away: of what six agents on
the complete graph write, the answer depends on two solutions and the sink's. For six agents it makes 13 calls on a
chain, 22 on a star, 19 on a tree, 36 on the complete graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from baselines.macnet.exchange import Exchange, present
from harness.concurrency import gather

MOST_POOLED = 4


async def official(exchange: Exchange) -> str:
    """Run the graph layer by layer and return the solution of its last node, the sink.

    A layer are the nodes to which no edge is left. When the edges from a layer have delivered, and before they are
    removed, each node they lead to settles on a solution; one with edges left does so again after a later layer.
    """
    graph = exchange.graph
    left = {node: set(before) for node, before in enumerate(graph.predecessors)}
    candidates: defaultdict[int, list[str]] = defaultdict(list)
    solutions: dict[int, str] = {}
    layer = [node for node in graph.nodes if not left[node]]
    solutions.update(zip(layer, await gather(map(exchange.solve, layer)), strict=True))
    while layer:
        edges = [(before, node) for before in layer for node in graph.nodes if before in left[node]]
        refined = await gather(_refined(exchange, solutions[before], before, node) for before, node in edges)
        for (_, node), candidate in zip(edges, refined, strict=True):
            candidates[node].append(candidate)
        reached = sorted({node for _, node in edges})
        settled = await gather(_settled(exchange, node, candidates[node], len(left[node])) for node in reached)
        solutions.update(zip(reached, settled, strict=True))
        for before, node in edges:
            left[node].remove(before)
        layer = [node for node in reached if not left[node]]
    return solutions[graph.nodes[-1]]


async def _refined(exchange: Exchange, solution: str, before: int, node: int) -> str:
    predecessors = exchange.graph.predecessors[node]
    # The first candidate is what a node keeps unless it merges, so its calls are numbered last: the answer then comes
    # from the last call.
    edge = len(predecessors) - 1 - predecessors.index(before)
    return await exchange.refine(solution, node, edge)


async def _settled(exchange: Exchange, node: int, candidates: Sequence[str], left: int) -> str:
    """What a node takes for its solution after a layer.

    The scheduler means to ask whether all predecessors have delivered, but compares with those whose edges are left.
    So a node merges when it has half of its candidates, or all of them from one layer, and otherwise takes the first.
    """
    if len(candidates) == 1 or len(candidates) != left:
        return candidates[0]
    return await _pooled(exchange, node, candidates)


async def _pooled(exchange: Exchange, node: int, candidates: Sequence[str]) -> str:
    """Merge candidates in pairs and the results again, until one call has made the last one or two into one.

    More than four are halved first. Released code keeps those whose programs run best; without such a score the first
    ones stay. It also draws the pairs, which are neighbours here (D-MAC-7).
    """
    pool = present(candidates)
    if len(pool) > MOST_POOLED:
        pool = pool[: len(pool) // 2]
    merges = 0
    while len(pool) > 2:
        pairs = [pool[start : start + 2] for start in range(0, len(pool) - 1, 2)]
        made = await gather(exchange.merge(pair, node, merges + number) for number, pair in enumerate(pairs))
        merges += len(made)
        pool = [*made, *pool[2 * len(pairs) :]]
    return await exchange.merge(pool, node, merges)
